//! `claude-mem forget`: forget memories, and undo it.

use std::collections::BTreeSet;

use clap::Args;
use claude_mem_projections::{
    MemorySource, Store,
    search::{Kind, MemoryId},
};
use serde_json::json;

use super::{
    confirm::confirm,
    memory_rows::{MemoryRow, memory_lines},
};
use claude_mem_core::{app::App, failure::Failure, format, time_arg::TimeRange};
use claude_mem_maintenance::compact::{self, Options};
use claude_mem_memory::{
    forget::{self, Condition},
    resolve, store,
};

/// Forget memories
///
/// Lists what matches and asks for confirmation. Forgotten memories no longer appear in search,
/// timeline and context. `--undo` restores them until the log is compacted; `claude-mem compact`,
/// or `--now`, removes every byte from the data directory, and the next `ship` from the remote.
///
/// Memories that were distilled from a forgotten event are forgotten, too, and are listed. Several
/// conditions must all match.
#[derive(Debug, Args)]
pub(crate) struct Forget {
    /// IDs of memories, as `search` prints them: `12`, `S3`, `P9`
    #[arg(value_name = "ID", conflicts_with_all = ["session", "project", "since", "until", "file", "text"])]
    ids: Vec<MemoryId>,
    /// Everything in this session; a prefix of its ID is enough
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Everything in this project: its name, key or folder
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    #[command(flatten)]
    between: TimeRange,
    /// Everything that touches this file, or a file in this folder
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Everything that contains this text; case does not matter
    #[arg(long, value_name = "TEXT")]
    text: Option<String>,
    /// Undo the last `forget`, or the one with this ID; a prefix is enough
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["ids", "reason", "now", "session", "project", "since", "until", "file", "text"])]
    undo: Option<String>,
    /// Remove the bytes now; this cannot be undone
    #[arg(long)]
    now: bool,
    /// A reason to store with it
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const LINES_MAX: usize = 40;

impl Forget {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let mut store = store::open_folded(app)?;
        if let Some(id) = &self.undo {
            let memories = forget::undo(app, &mut store, id)?;
            return match self.json {
                true => app.output.json(&json!({"restored": memories})),
                false => {
                    app.output.line(format_args!("restored {}", format::count(memories, "memory")))
                }
            };
        }
        let reason = self.reason.clone().unwrap_or_default();
        let (count, events, id) = if self.ids.is_empty() {
            let matches = forget::select(app, &store, &self.condition(app, &store)?)?;
            if matches.is_nothing() {
                return Err(nothing(&matches.projects));
            }
            let count = matches.memories.len();
            self.ask(app, &matches.memories.iter().collect::<Vec<_>>(), matches.events)?;
            (count, matches.events, forget::forget_matches(app, &mut store, &matches, &reason)?)
        } else {
            let selection = forget::find(&store, &self.ids)?;
            let count = selection.named.len() + selection.also.len();
            self.ask(app, &selection.named.iter().chain(&selection.also).collect::<Vec<_>>(), 0)?;
            (count, 0, forget::forget(app, &mut store, &selection, &reason)?)
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
            app.output.say("every byte is removed from this machine");
        } else {
            app.output.say(format_args!("undo it with `claude-mem forget --undo {id}`"));
            app.output.say("remove every byte with `claude-mem compact`");
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
            return Err(Failure::usage("nothing was selected to forget").remedy(
                "pass IDs, as in `claude-mem forget 12 S3`, or select with `--session`, \
                 `--project`, `--since`, `--until`, `--file` or `--text`",
            ));
        }
        Ok(condition)
    }

    fn ask(&self, app: &mut App, memories: &[&MemorySource], events: u64) -> Result<(), Failure> {
        let count = memories.len();
        let rows: Vec<MemoryRow> = memories.iter().copied().take(LINES_MAX).map(row).collect();
        let columns = app.output.stderr_columns();
        let lines = memory_lines(&app.output, columns, &rows, |_, text| text.to_owned());
        lines.iter().flatten().for_each(|line| app.output.say(line));
        if count > LINES_MAX {
            app.output.say(format_args!("… and {} more", count - LINES_MAX));
        }
        if self.yes {
            return Ok(());
        }
        let what = counted(count, events);
        let for_good = if self.now { " permanently" } else { "" };
        confirm(
            app,
            &format!("{what} would be forgotten{for_good}"),
            &format!("Forget {what}{for_good}?"),
        )
    }
}

fn row(memory: &MemorySource) -> MemoryRow {
    let MemorySource { name, type_, title, project, .. } = memory;
    MemoryRow {
        id: name.to_string(),
        project: project.clone(),
        label: if name.kind == Kind::Prompt { "prompt".into() } else { type_.clone() },
        colour: "34",
        title: title.clone(),
        ..MemoryRow::default()
    }
}

/// A text in a project's name, folder or branch would match all of its memories, so it does not
/// count as a match. The user may mean the whole project.
fn nothing(projects: &BTreeSet<String>) -> Failure {
    let failure = Failure::new("no memories match").meaning("nothing was forgotten");
    match projects.first() {
        Some(key) => failure.remedy(format!(
            "the text is in the name, the folder or a branch of a project: to forget all of that, \
             use `claude-mem forget --project {key}`"
        )),
        None => failure,
    }
}

/// Compacts, so that no file contains what was forgotten.
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
