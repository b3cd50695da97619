//! `claude-mem projects`: list, rename and merge projects.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    hit_labels::ago,
    table::{Column, Table},
};
use claude_mem_core::{app::App, failure::Failure, time_arg::rfc3339};
use claude_mem_memory::{
    projects::{self, ListedProject},
    store,
};

/// List, rename or merge projects
///
/// Without a command it lists all projects, the one used last first. Name a project by its name,
/// key or folder. A merge applies on all your machines and to later sessions, and can be undone.
#[derive(Debug, Args)]
pub(crate) struct Projects {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one JSON object per project
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Give a project another name
    Rename {
        /// Name, key or folder of the project
        project: String,
        /// The new name
        name: String,
    },
    /// Move everything of a project, now and later, to another one
    Merge {
        /// Name, key or folder of the project
        from: String,
        /// Name, key or folder of the project that gets its memories
        into: String,
    },
    /// Let a folder or key belong to a project, before anything is recorded in it
    Alias {
        /// A folder, or a key
        folder: String,
        /// Name, key or folder of the project
        project: String,
    },
    /// Undo a merge or an alias
    Split {
        /// Name, key or folder that was merged
        project: String,
    },
}

impl Projects {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let Some(action) = self.action else {
            let store = store::read_folded(app)?;
            return list(app, &projects::list(&store)?, self.json);
        };
        let (mut store, _) = store::open_whole(app)?;
        let done = match action {
            Action::Rename { project, name } => {
                let key = projects::rename(app, &mut store, &project, &name)?;
                format!("{key} is now called {name}")
            }
            Action::Merge { from, into } => {
                let (from, into) = projects::merge(app, &mut store, &from, &into)?;
                format!("{from} belongs to {into}; undo it with `claude-mem projects split {from}`")
            }
            Action::Alias { folder, project } => {
                let (from, into) = projects::alias(app, &mut store, &folder, &project)?;
                format!("{from} belongs to {into}; undo it with `claude-mem projects split {from}`")
            }
            Action::Split { project } => {
                let key = projects::split(app, &mut store, &project)?;
                format!("{key} is a separate project again")
            }
        };
        app.output.line(done)
    }
}

fn list(app: &mut App, listed: &[ListedProject], is_json: bool) -> Result<(), Failure> {
    if is_json {
        return listed.iter().try_for_each(|project| app.output.json(&to_json(project)));
    }
    if listed.is_empty() {
        app.output.say("no project is recorded yet");
        return Ok(());
    }
    let mut table = Table::new([
        Column::text("name"),
        Column::number("sessions"),
        Column::number("memories"),
        Column::number("last"),
        Column::text("folder"),
    ]);
    for ListedProject { stats, aliases } in listed {
        table.row([
            stats.label.clone(),
            stats.sessions.to_string(),
            stats.observations.to_string(),
            stats.at_us.map(|at_us| ago(at_us, app.clock.now())).unwrap_or_default(),
            stats.root.as_ref().unwrap_or(&stats.key).clone(),
        ]);
        for alias in aliases {
            table.row(["", "", "", "also", alias.key.as_str()]);
        }
    }
    table.print(app)
}

fn to_json(ListedProject { stats, aliases }: &ListedProject) -> serde_json::Value {
    json!({
        "project": stats.label,
        "key": stats.key,
        "root": stats.root,
        "sessions": stats.sessions,
        "memories": stats.observations,
        "last_at": stats.at_us.map(rfc3339),
        "aliases": aliases.iter().map(|alias| &alias.key).collect::<Vec<_>>(),
    })
}
