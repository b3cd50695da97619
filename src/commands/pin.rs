//! `claude-mem memory pin`, `unpin`, `wrong` and `supersede`: what sessions get of an observation.

use clap::Args;
use serde_json::json;

use super::hit_labels::plain;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_memory::{
    revise::{Change, Revised, revise},
    store,
};
use claude_mem_projections::search::MemoryId;

/// Put an observation first in the context of new sessions
#[derive(Debug, Args)]
pub(crate) struct Pin {
    /// The observation, such as `12`
    #[arg(value_name = "ID")]
    id: MemoryId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Treat a pinned observation like others again
#[derive(Debug, Args)]
pub(crate) struct Unpin {
    /// The observation, such as `12`
    #[arg(value_name = "ID")]
    id: MemoryId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Mark an observation as wrong
///
/// It is found with a mark, and given to no session. If the same events are distilled again, what
/// repeats it is marked, too.
#[derive(Debug, Args)]
pub(crate) struct Wrong {
    /// The observation, such as `12`
    #[arg(value_name = "ID")]
    id: MemoryId,
    /// Why it is wrong
    #[arg(long, value_name = "TEXT", conflicts_with = "undo")]
    because: Option<String>,
    /// Remove the mark; also undoes `supersede`
    #[arg(long)]
    undo: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Replace an observation by a newer one
///
/// The old one is found with a mark, and given to no session. Undo it with `claude-mem memory wrong OLD
/// --undo`.
#[derive(Debug, Args)]
pub(crate) struct Supersede {
    /// The outdated observation
    #[arg(value_name = "OLD")]
    old: MemoryId,
    /// The observation that replaces it
    #[arg(value_name = "NEW")]
    new: MemoryId,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Pin {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        change(app, self.id, &Change::Pin, "pinned", self.json)
    }
}

impl Unpin {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        change(app, self.id, &Change::Unpin, "unpinned", self.json)
    }
}

impl Wrong {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let Self { id, because, undo, json } = self;
        if undo {
            return change(app, id, &Change::Restore, "restored", json);
        }
        change(app, id, &Change::Wrong(because.unwrap_or_default()), "marked as wrong:", json)
    }
}

impl Supersede {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        change(app, self.old, &Change::Supersede(self.new), "superseded", self.json)
    }
}

fn change(
    app: &mut App,
    id: MemoryId,
    change: &Change,
    done: &str,
    is_json: bool,
) -> Result<(), Failure> {
    let mut store = store::open_folded(app)?;
    let revised = revise(app, &mut store, id, change, "cli")?;
    report(app, id, done, &revised, is_json)
}

/// Prints what was done.
pub(super) fn report(
    app: &mut App,
    id: MemoryId,
    done: &str,
    revised: &Revised,
    is_json: bool,
) -> Result<(), Failure> {
    let Revised { event, is_redacted, title } = revised;
    if is_json {
        return app.output.json(&json!({
            "id": id,
            "event": event.to_string(),
            "is_redacted": is_redacted,
        }));
    }
    if *is_redacted {
        app.output.say("note: private text or secrets were removed");
    }
    app.output.line(format_args!("{done} {id} {}", plain(title)))
}
