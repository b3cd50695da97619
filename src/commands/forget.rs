//! `claude-mem forget`: take memories away, and bring them back.

use std::collections::BTreeSet;

use clap::Args;
use claude_mem_projections::{Store, search::MemoryId};
use serde_json::json;

use super::confirm::confirm;
use claude_mem_core::{app::App, failure::Failure, format, time_arg::Between};
use claude_mem_maintenance::compact::{self, Options};
use claude_mem_memory::{
    forget::{self, Condition},
    resolve, store,
};

/// Forget memories
///
/// Shows what would be gone and asks. Search, timeline and context no longer have it from then on. It can be
/// taken back with `--undo` until the log is compacted; `claude-mem compact`, or `--now`, removes every byte of it
/// from the log, the database and everything beside them, and the next `ship` from the remote.
///
/// Memories that were made of what is forgotten go with it, and are shown. Several conditions must all be met.
#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// Memories, as `search` names them: `12`, `S3`, `P9`
    #[arg(value_name = "ID", conflicts_with_all = ["session", "project", "since", "until", "file", "text"])]
    ids: Vec<MemoryId>,
    /// Everything of this session, by its ID or the beginning of it
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Everything of this project, by its name, key or folder
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    between: Between,
    /// Whatever touches this file, or a file in this folder
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Whatever holds this text, in whatever case of letters
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Take back the last forgetting, or the one of this ID or the beginning of it
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["ids", "reason", "now", "session", "project", "since", "until", "file", "text"])]
    undo: Option<String>,
    /// Remove the bytes at once, for good
    #[arg(long)]
    now: bool,
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

/// No more memories than this are shown before asking.
const LINES_MAX: usize = 40;

impl Forget {
    /// Shows, asks, forgets; or takes back.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = store::open_folded(app)?;
        if let Some(id) = &self.undo {
            let memories = forget::undo(app, &mut store, id)?;
            return match self.json {
                true => app.output.json(&json!({"restored": memories})),
                false => app
                    .output
                    .line(format_args!("brought back: {}", format::count(memories, "memory"))),
            };
        }
        let reason = self.reason.clone().unwrap_or_default();
        let (count, events, id) = if self.ids.is_empty() {
            let meant = forget::select(app, &store, &self.condition(app, &store)?)?;
            if meant.is_nothing() {
                return Err(nothing(&meant.projects));
            }
            let count = meant.memories.len();
            self.ask(app, forget::lines(&meant.memories), count, meant.events)?;
            (count, meant.events, forget::forget_meant(app, &mut store, &meant, &reason)?)
        } else {
            let taken = forget::find(&store, &self.ids)?;
            let count = taken.named.len() + taken.also.len();
            let lines = forget::lines(&taken.named).chain(forget::lines(&taken.also));
            self.ask(app, lines, count, 0)?;
            (count, 0, forget::forget(app, &mut store, &taken, &reason)?)
        };
        drop(store);
        if self.now {
            remove(app)?;
        }
        if self.json {
            let undo = (!self.now).then(|| id.to_string());
            return app.output.json(&json!({"forgotten": count, "events": events, "undo": undo}));
        }
        app.output.line(format_args!("forgot {}", counted(count, events)))?;
        if self.now {
            app.output.say("every byte of it is gone from this machine");
        } else {
            app.output.say(format_args!("take it back with `claude-mem forget --undo {id}`"));
            app.output.say("remove every byte of it with `claude-mem compact`");
        }
        Ok(())
    }

    fn condition(&self, app: &App, store: &Store) -> Result<Condition, Failure> {
        let session = self.session.as_deref().map(|name| resolve::session(store, name));
        let project = self.project.as_deref().map(|name| resolve::only_project(store, name));
        let now = app.clock.now();
        let condition = Condition {
            session: session.transpose()?,
            project: project.transpose()?,
            since_us: self.between.since_us(now),
            until_us: self.between.until_us(now),
            file: self.file.clone(),
            text: self.text.clone(),
        };
        if condition == Condition::default() {
            return Err(Failure::usage("it was not said what is to be forgotten").remedy(
                "name it, as in `claude-mem forget 12 S3`, or choose by `--session`, `--project`, `--since`, \
                 `--until`, `--file` or `--text`",
            ));
        }
        Ok(condition)
    }

    fn ask(
        &self,
        app: &mut App,
        lines: impl Iterator<Item = String>,
        count: usize,
        events: u64,
    ) -> Result<(), Failure> {
        for line in lines.take(LINES_MAX) {
            app.output.say(line);
        }
        if count > LINES_MAX {
            app.output.say(format_args!("… and {} more", count - LINES_MAX));
        }
        if self.yes {
            return Ok(());
        }
        let what = counted(count, events);
        let for_good = if self.now { " for good" } else { "" };
        confirm(
            app,
            &format!("{what} would be forgotten{for_good}"),
            &format!("Forget {what}{for_good}?"),
        )
    }
}

/// Where everything of a project happened is no reason to forget each thing; the whole of it may be meant.
fn nothing(projects: &BTreeSet<String>) -> Failure {
    let failure = Failure::new("nothing fits that").meaning("nothing was forgotten");
    match projects.first() {
        Some(key) => failure.remedy(format!(
            "the text is in the name or the folder of a project: to forget all of that, use `claude-mem forget --project {key}`"
        )),
        None => failure,
    }
}

/// Removes what was forgotten from wherever it is.
fn remove(app: &mut App) -> Result<(), Failure> {
    let options = Options { is_only_forgotten: true, keeps_superseded: true, ..Options::default() };
    let outcome = compact::run(app, &options, |_, _| ())?;
    super::compact::check(&outcome)
}

fn counted(memories: usize, events: u64) -> String {
    match events {
        0 => format::count(memories, "memory"),
        _ => {
            format!("{} and {}", format::count(memories, "memory"), format::count(events, "event"))
        }
    }
}
