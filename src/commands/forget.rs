//! `claude-mem forget`: take memories away, and bring them back.

use clap::Args;
use claude_mem_projections::search::Name;
use serde_json::json;

use super::confirm::confirm;
use crate::{app::App, failure::Failure, forget, memory, words};

/// Forget memories
///
/// Shows what would be gone and asks. Search, timeline and context no longer have it from then on. The log
/// keeps the bytes, so that it can be taken back with `--undo`; removing them for good is another step, which
/// this version does not have yet.
///
/// Memories that were made of what is forgotten go with it, and are shown. What an agent observed may be
/// observed anew by a later `replay` with another prompt.
#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// Memories, as `search` names them: `12`, `S3`, `P9`
    #[arg(value_name = "ID", required_unless_present = "undo")]
    ids: Vec<Name>,
    /// Take back the forgetting of this ID, or the beginning of it
    #[arg(long, value_name = "ID", conflicts_with_all = ["ids", "reason"])]
    undo: Option<String>,
    /// Why, to be kept with it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Forget {
    /// Shows, asks, forgets; or takes back.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = memory::open_folded(app)?;
        if let Some(id) = &self.undo {
            let memories = forget::undo(app, &mut store, id)?;
            return match self.json {
                true => app.output.json(&json!({"restored": memories})),
                false => app
                    .output
                    .line(format_args!("brought back: {}", words::count(memories, "memory"))),
            };
        }
        let taken = forget::find(&store, &self.ids)?;
        for line in forget::lines(&taken.named).chain(forget::lines(&taken.also)) {
            app.output.say(line);
        }
        let count = (taken.named.len() + taken.also.len()) as u64;
        if !self.yes {
            let what = format!("{} would be forgotten", words::count(count, "memory"));
            confirm(app, &what, &format!("Forget {}?", words::count(count, "memory")))?;
        }
        let reason = self.reason.unwrap_or_default();
        let id = forget::forget(app, &mut store, &taken, &reason)?;
        if self.json {
            return app.output.json(&json!({"forgotten": count, "undo": id.to_string()}));
        }
        app.output.line(format_args!("forgot {}", words::count(count, "memory")))?;
        app.output.say(format_args!("take it back with `claude-mem forget --undo {id}`"));
        Ok(())
    }
}
