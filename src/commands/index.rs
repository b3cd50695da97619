//! `claude-mem index`: bring the database and the vectors up to date, in the foreground.

use std::{
    num::NonZero,
    thread,
    time::{Duration, Instant},
};

use clap::Args;
use claude_mem_projections::Store;
use serde_json::json;

use claude_mem_core::{app::App, failure::Failure, format::number, progress::Progress};
use claude_mem_memory::{
    semantic::{Depth, Embedded, embed_missing},
    store,
};

/// Index new events and embed memories that lack a vector
///
/// The worker does this in the background. The embedding model is part of this program: nothing is
/// sent anywhere, unless you set `CLAUDE_MEM_EMBEDDING_BASE_URL`.
#[derive(Debug, Args)]
pub(crate) struct Index {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Index {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let done = embed_all(app)?;
        if self.json {
            let found = done.map(|done| {
                json!({"embedded": done.embedded, "total": done.counts.total,
                    "missing": done.counts.missing, "is_claimed": done.is_claimed})
            });
            return app.output.json(&json!({ "vectors": found }));
        }
        app.output.line(match done {
            None => "events are indexed; there is no embedding model in use".to_owned(),
            Some(done) if done.is_claimed => format!(
                "another process is embedding; {} of {} vectors missing",
                number(done.counts.missing),
                number(done.counts.total)
            ),
            Some(done) => format!(
                "{} embedded; {} of {} vectors missing",
                number(done.embedded),
                number(done.counts.missing),
                number(done.counts.total)
            ),
        })
    }
}

/// Embeds what is missing. A run ends when another process replaces the database or the vector file;
/// then the next one continues.
fn embed_all(app: &mut App) -> Result<Option<Embedded>, Failure> {
    let mut embedded = 0;
    loop {
        let (store, _) = store::open_whole(app)?;
        let Some(mut done) = embed(app, &store, Depth::Texts, Duration::MAX)? else {
            return Ok(None);
        };
        let is_stuck = done.embedded == 0;
        embedded += done.embedded;
        done.embedded = embedded;
        if is_stuck || done.is_claimed || done.counts.missing == 0 {
            return Ok(Some(done));
        }
    }
}

/// Embeds what is missing for about `time_max`, on all processors, with progress.
pub(crate) fn embed(
    app: &App,
    store: &Store,
    depth: Depth,
    time_max: Duration,
) -> Result<Option<Embedded>, Failure> {
    let (mut progress, began) = (None, Instant::now());
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    embed_missing(app, store, depth, threads, |done, total, _| {
        progress
            .get_or_insert_with(|| Progress::items("embedding", total).with_lines())
            .show(done as u64, "vectors");
        began.elapsed() < time_max
    })
}
