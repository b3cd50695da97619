//! Forgets memories by condition: session, project, time, file or text.

use std::{collections::BTreeSet, iter};

use claude_mem_events::{Event, Forgotten, Id, Recorded};
use claude_mem_log::{Item, Log};
use claude_mem_projections::{ForgetTargets, MemorySource, Store, host_logs};

use super::{append, known_project, project_of};
use crate::{semantic::erase_hidden, store};
use claude_mem_capture::redaction;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::redact_text;

/// What to forget: everything that matches all conditions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// The client's session id.
    pub session: Option<String>,
    /// Project key.
    pub project: Option<String>,
    /// From this time on.
    pub since_us: Option<u64>,
    /// Before this time.
    pub until_us: Option<u64>,
    /// Anything about this file or folder.
    pub file: Option<String>,
    /// Anything that contains this text, ignoring case.
    pub text: Option<String>,
}

/// The matches of a condition.
#[derive(Debug)]
pub struct ForgetMatches {
    forgotten: Forgotten,
    /// Number of matching events.
    pub events: u64,
    /// Matching memories.
    pub memories: Vec<MemorySource>,
    /// Keys of projects where the text is only in the name or path.
    pub projects: BTreeSet<String>,
}

impl ForgetMatches {
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.memories.is_empty()
    }
}

/// Finds the matches. Files and texts are resolved to events now: recording the condition would
/// keep the text to be forgotten.
pub fn select(app: &App, store: &Store, condition: &Condition) -> Result<ForgetMatches, Failure> {
    let mut forgotten = Forgotten {
        session: condition.session.clone().unwrap_or_default(),
        project: condition.project.clone().unwrap_or_default(),
        since_us: condition.since_us,
        until_us: condition.until_us,
        ..Forgotten::default()
    };
    let mut found: Option<ForgetTargets> = None;
    let mut projects = BTreeSet::new();
    if let Some(file) = &condition.file {
        found = Some(store.forget_targets_by_file(file)?);
    }
    if let Some(text) = &condition.text {
        let holding = holding(app, store, text, &mut projects)?;
        found = Some(match found {
            Some(touching) => both(touching, &holding),
            None => holding,
        });
    }
    if let Some(found) = found {
        // A memory has no time or place itself: it matches if its source events do.
        let is_narrowed = forgotten != Forgotten::default();
        let rows = found.rows.iter().filter(|row| !is_narrowed || fits(store, &forgotten, row));
        let rows = rows.cloned().collect();
        forgotten.events = found.events.iter().map(|id| *id.as_bytes()).collect();
        if forgotten.events.is_empty() {
            forgotten = Forgotten::default();
        }
        forgotten.rows = rows;
    }
    let would = match forgotten == Forgotten::default() {
        true => claude_mem_projections::ForgetPreview::default(),
        false => store.forget_preview(&forgotten)?,
    };
    let mut memories = Vec::new();
    for name in would.memories {
        memories.extend(store.memory_source(name)?);
    }
    Ok(ForgetMatches { forgotten, events: would.events, memories, projects })
}

/// Forgets the matches. Returns the id of the `Forgotten` event, for undo.
pub fn forget_matches(
    app: &mut App,
    store: &mut Store,
    matches: &ForgetMatches,
    reason: &str,
) -> Result<Id, Failure> {
    let reason = redact_text(reason, redaction::policy(&app.settings)).text;
    let forgotten = Forgotten { reason, ..matches.forgotten.clone() };
    let project = match (forgotten.project.as_str(), forgotten.session.as_str()) {
        ("", "") => project_of(store, &matches.memories)?,
        ("", session) => known_project(store.project_of(session)?),
        (key, _) => known_project(store.project_named(key)?),
    };
    let id = append(app, &project, forgotten)?;
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    erase_hidden(app, store)?;
    Ok(id)
}

/// Whether a memory identified by its row matches the other conditions.
fn fits(store: &Store, forgotten: &Forgotten, row: &str) -> bool {
    let event = row.split_once('/').map_or(row, |(event, _)| event);
    let Some(event) = Id::parse(event) else { return false };
    let alone = Forgotten { events: vec![*event.as_bytes()], ..forgotten.clone() };
    store.forget_preview(&alone).is_ok_and(|would| would.events > 0)
}

fn both(one: ForgetTargets, other: &ForgetTargets) -> ForgetTargets {
    ForgetTargets {
        events: one.events.into_iter().filter(|id| other.events.contains(id)).collect(),
        rows: one.rows.into_iter().filter(|row| other.rows.contains(row)).collect(),
    }
}

/// Everything that contains a text, on all machines: memories by row, events by their recorded
/// content. Projects with a matching name or path are listed separately.
fn holding(
    app: &App,
    store: &Store,
    text: &str,
    projects: &mut BTreeSet<String>,
) -> Result<ForgetTargets, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::usage("the text is empty").meaning("nothing was forgotten"));
    }
    let wanted = written(text);
    let mut touching = store.forget_targets_by_text(text)?;
    let mut events: BTreeSet<Id> = touching.events.iter().copied().collect();
    let of_replies: BTreeSet<&str> =
        touching.rows.iter().filter_map(|row| Some(row.split_once('/')?.0)).collect();
    let own = Log::open(&app.paths.log(), claude_mem_log::Options::default())?;
    let others = host_logs(&app.paths.foreign())?.into_iter().map(|copy| copy.log);
    for log in iter::once(own).chain(others) {
        let mut reader = log.read_from_start();
        while let Some(item) = reader.next()? {
            let Item::Record(entry) = item else { continue };
            if !is_in(entry.payload, &wanted) {
                continue;
            }
            let recorded = Recorded::from_entry(&entry);
            let is_meant = match &recorded.event {
                // If its memories are listed, they are forgotten together with their sources.
                Event::AgentReplied(_) => !of_replies.contains(recorded.id.to_string().as_str()),
                Event::Forgotten(_)
                | Event::ProjectMerged(_)
                | Event::ReprocessStarted(_)
                | Event::ReprocessFinished(_)
                | Event::LogCompacted(_)
                | Event::MemoryInjected(_)
                | Event::SessionStarted(_)
                | Event::SessionEnded(_) => false,
                _ => true,
            };
            // The path is in every event of a session; that alone is not a match.
            if is_only_in_envelope(&recorded, &wanted) {
                projects.insert(recorded.envelope.project.key);
            } else if is_meant {
                events.insert(recorded.id);
            }
        }
    }
    touching.events = events.into_iter().collect();
    Ok(touching)
}

/// A text in lower case: plain, as JSON, and as JSON within JSON.
fn written(text: &str) -> [String; 3] {
    let quoted = |text: &str| {
        let json = serde_json::to_string(text).expect("a text can be written");
        json[1..json.len() - 1].to_owned()
    };
    let once = quoted(text);
    let twice = quoted(&once);
    [text.to_lowercase(), once.to_lowercase(), twice.to_lowercase()]
}

fn is_in(bytes: &[u8], wanted: &[String; 3]) -> bool {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    wanted.iter().any(|wanted| text.contains(wanted))
}

fn is_only_in_envelope(recorded: &Recorded, wanted: &[String; 3]) -> bool {
    let body = Recorded { envelope: claude_mem_events::Envelope::default(), ..recorded.clone() };
    !matches!(recorded.event, Event::Unknown { .. } | Event::Erased { .. })
        && body.payload().is_ok_and(|(_, _, payload)| !is_in(&payload, wanted))
}
