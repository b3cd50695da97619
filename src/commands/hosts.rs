//! `claude-mem remote hosts`: other machines whose memories are stored here.

use std::fs;

use clap::{Args, Subcommand};
use claude_mem_events::{Event, EventItem, EventReader, Forgotten, Seq};
use claude_mem_projections::{Host, HostState, Store};
use serde_json::json;

use super::{
    confirm::confirm,
    hit_labels::ago,
    table::{Column, Table},
};
use claude_mem_core::{app::App, failure::Failure, format::count, time_arg::rfc3339};
use claude_mem_memory::{
    remember::{record, session},
    resolve, store,
};
use claude_mem_sync::pull::{self, KnownHost};

/// List, confirm, hide or drop other machines' memories
///
/// Without a command it lists the machines that `claude-mem remote pull` found. What another machine
/// forgets is hidden here; once you confirm that machine, a compaction also erases it from the log. A hidden machine's log
/// stays here and up to date, but search and context leave out its memories. A dropped machine's
/// log is deleted here, and not fetched again until you show the machine. The remote and the
/// machine itself keep it either way.
#[derive(Debug, Args)]
pub(crate) struct Hosts {
    #[command(subcommand)]
    action: Option<Action>,
    /// Print one JSON object per machine
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say that a machine is yours: what it forgets is then also erased from the log here
    Confirm {
        /// Name of the machine, or a prefix of its ID
        name: String,
    },
    /// Keep a machine's log, but leave out its memories
    Hide {
        /// Name of the machine, or a prefix of its ID
        name: String,
    },
    /// Show the memories of a hidden or dropped machine again
    Show {
        /// Name of the machine, or a prefix of its ID
        name: String,
    },
    /// Delete the copy of a machine's log, and its memories here
    Drop {
        /// Name of the machine, or a prefix of its ID
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

impl Hosts {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        match self.action {
            None => list(app, self.json),
            Some(Action::Confirm { name }) => {
                let known = one(app, &name)?;
                change(app, known, |host| host.is_confirmed = true)?;
                app.output.line(format_args!("{name} is confirmed"))
            }
            Some(Action::Hide { name }) => {
                let known = one(app, &name)?;
                change(app, known, |host| host.is_hidden = true)?;
                app.output.line(format_args!("{name} is hidden"))
            }
            Some(Action::Show { name }) => {
                let known = one(app, &name)?;
                let is_gone = known.host.is_dropped;
                change(app, known, |host| {
                    host.is_hidden = false;
                    host.is_dropped = false;
                })?;
                app.output.line(format_args!("{name} is shown"))?;
                if is_gone {
                    app.output.say("fetch its log with `claude-mem remote pull`");
                }
                Ok(())
            }
            Some(Action::Drop { name, yes }) => drop_log(app, &name, yes),
        }
    }
}

fn list(app: &mut App, is_json: bool) -> Result<(), Failure> {
    let store = store::read_folded(app)?;
    let folded = store.hosts()?;
    let all = pull::all(&app.paths)?;
    if all.is_empty() && !is_json {
        return app
            .output
            .line("no memories of other machines; see `claude-mem remote pull --help`");
    }
    let mut table = Table::new([
        Column::number("log"),
        Column::text("name"),
        Column::text("id"),
        Column::text("state"),
    ]);
    for KnownHost { id, host } in all {
        let state = folded.iter().find(|state| state.id == id.0);
        let Host { number, name, is_hidden, is_dropped, is_confirmed } = &host;
        let events = state.map_or(0, |state| state.events);
        let memories = state.map_or(0, |state| state.memories);
        if is_json {
            app.output.json(&json!({
                "number": number, "name": name, "id": id.to_string(), "is_hidden": is_hidden,
                "is_dropped": is_dropped, "is_confirmed": is_confirmed, "events": events, "memories": memories,
                "last_event_at": state.map(|state| rfc3339(state.at_us)),
            }))?;
            continue;
        }
        let line = match (is_dropped, is_hidden) {
            (true, _) => "dropped".into(),
            (_, true) => "hidden".into(),
            _ => shown(app, state, *is_confirmed),
        };
        table.row([&number.to_string(), name, &id.to_string()[..8], &line]);
    }
    if is_json { Ok(()) } else { table.print(app) }
}

fn shown(app: &App, state: Option<&HostState>, is_confirmed: bool) -> String {
    let Some(state) = state else { return "not indexed yet".into() };
    let age = ago(state.at_us, app.clock.now());
    let memories = count(state.memories as usize, "observation");
    let confirmed = if is_confirmed { ", confirmed" } else { "" };
    format!("{memories}, last event {} ago{confirmed}", age.trim())
}

fn one(app: &App, name: &str) -> Result<KnownHost, Failure> {
    let mut found = pull::find(&app.paths, name)?;
    match (found.pop(), found.is_empty()) {
        (Some(known), true) => Ok(known),
        (Some(_), false) => Err(Failure::usage(format!("several machines are called `{name}`"))
            .remedy("pass a prefix of its ID, as listed by `claude-mem remote hosts`")),
        (None, _) => Err(Failure::usage(format!("there is no other machine `{name}`"))
            .remedy("list them with `claude-mem remote hosts`")),
    }
}

/// Saves the change and updates the database.
fn change(app: &mut App, mut known: KnownHost, by: impl FnOnce(&mut Host)) -> Result<(), Failure> {
    by(&mut known.host);
    pull::save(&app.paths, &known)?;
    store::open_whole(app)?;
    Ok(())
}

fn drop_log(app: &mut App, name: &str, is_sure: bool) -> Result<(), Failure> {
    let known = one(app, name)?;
    if !is_sure {
        let what = format!("the copy of {name}'s log would be deleted here");
        confirm(app, &what, &format!("Delete the copy of {name}'s log here?"))?;
    }
    let (store, _) = store::open_whole(app)?;
    if known.host.is_confirmed {
        keep_forgettings(app, &store, &known)?;
    }
    let dir = app.paths.foreign().join(known.id.to_string());
    change(app, known, |host| host.is_dropped = true)?;
    let failed = |error| Failure::new(format!("{} cannot be deleted: {error}", dir.display()));
    for entry in fs::read_dir(&dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.file_name().is_some_and(|file| file != Host::FILE) {
            fs::remove_file(&path).map_err(failed)?;
        }
    }
    app.output.line(format_args!("{name} is dropped"))
}

/// What was forgotten on the dropped machine stays forgotten here: its tombstones are repeated in
/// our own log, for the events that existed when they were written.
fn keep_forgettings(app: &App, store: &Store, known: &KnownHost) -> Result<(), Failure> {
    let copies = claude_mem_projections::host_logs(&app.paths.foreign())?;
    let Some(copy) = copies.into_iter().find(|copy| copy.id == known.id.0) else { return Ok(()) };
    let project = resolve::current_project(app);
    let mut reader = EventReader::from(&copy.log, Seq::START);
    while let Some(met) = reader.next()? {
        let EventItem::Event(recorded) = met else { continue };
        let at_us = recorded.at_us();
        let Event::Forgotten(forgotten) = recorded.event else { continue };
        let found = store.forgettings(&recorded.id.to_string())?;
        if forgotten.undoes.is_some() || found.iter().any(|forgetting| forgetting.is_void) {
            continue;
        }
        let is_named = !forgotten.events.is_empty() || !forgotten.rows.is_empty();
        let until_us = match is_named {
            true => forgotten.until_us,
            false => Some(forgotten.until_us.unwrap_or(u64::MAX).min(at_us)),
        };
        let kept = Forgotten { until_us, ..forgotten };
        record(app, &project, session(app), &kept.into())?;
    }
    Ok(())
}
