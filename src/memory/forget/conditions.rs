//! Forgetting by what things are about: a session, a project, a time, a file, a text.

use std::collections::BTreeSet;

use claude_mem_events::{Event, Forgotten, Id, Recorded};
use claude_mem_log::{Item, Log};
use claude_mem_projections::{ForgetTargets, MemorySource, Store};

use super::{append, known, project_of};
use crate::store;
use claude_mem_capture::redaction;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::clean_text;

/// What is to be forgotten: all that fits every condition given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Condition {
    /// This session, by the watched program's id.
    pub session: Option<String>,
    /// This project, by key.
    pub project: Option<String>,
    /// From this moment on.
    pub since_us: Option<u64>,
    /// Before this moment.
    pub until_us: Option<u64>,
    /// Whatever touches this file, or a file in this folder.
    pub file: Option<String>,
    /// Whatever holds this text, in whatever case of letters.
    pub text: Option<String>,
}

/// What a condition stands for now.
#[derive(Debug)]
pub struct Meant {
    forgotten: Forgotten,
    /// How many events it takes away.
    pub events: u64,
    /// The memories that go.
    pub memories: Vec<MemorySource>,
    /// Keys of projects of which the text is only the name or the place.
    pub projects: BTreeSet<String>,
}

impl Meant {
    /// Whether there is nothing that fits.
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.memories.is_empty()
    }
}

/// Finds what fits. Files and texts are looked up now and named by their events: neither is recorded, since
/// that would keep what is to be forgotten.
pub fn select(app: &App, store: &Store, condition: &Condition) -> Result<Meant, Failure> {
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
        // A memory has no time and no place of its own: it goes with what it was made of, if that fits.
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
    Ok(Meant { forgotten, events: would.events, memories, projects })
}

/// Forgets it. Gives the forgetting, by which it can be taken back.
pub fn forget_meant(
    app: &mut App,
    store: &mut Store,
    meant: &Meant,
    reason: &str,
) -> Result<Id, Failure> {
    let reason = clean_text(reason, redaction::policy(&app.settings)).text;
    let forgotten = Forgotten { reason, ..meant.forgotten.clone() };
    let project = match (forgotten.project.as_str(), forgotten.session.as_str()) {
        ("", "") => project_of(store, &meant.memories)?,
        ("", session) => known(store.project_of(session)?),
        (key, _) => known(store.project_named(key)?),
    };
    let id = append(app, &project, forgotten)?;
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    Ok(id)
}

/// Whether a memory by its address also fits the other conditions.
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

/// Everything that holds a text: memories by their rows, and events by what was recorded. Projects that are called
/// so, or are in a folder that is, are told apart.
fn holding(
    app: &App,
    store: &Store,
    text: &str,
    projects: &mut BTreeSet<String>,
) -> Result<ForgetTargets, Failure> {
    if text.trim().is_empty() {
        return Err(
            Failure::usage("an empty text is in everything").meaning("nothing was forgotten")
        );
    }
    let wanted = written(text);
    let mut touching = store.forget_targets_by_text(text)?;
    let mut events: BTreeSet<Id> = touching.events.iter().copied().collect();
    let of_replies: BTreeSet<&str> =
        touching.rows.iter().filter_map(|row| Some(row.split_once('/')?.0)).collect();
    let log = Log::open(&app.paths.log(), claude_mem_log::Options::default())?;
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        if !is_in(entry.payload, &wanted) {
            continue;
        }
        let recorded = Recorded::from_entry(&entry);
        let is_meant = match &recorded.event {
            // If memories of it are named, they go, and so does everything around them.
            Event::AgentReplied(_) => !of_replies.contains(recorded.id.to_string().as_str()),
            Event::Forgotten(_)
            | Event::ProjectMerged(_)
            | Event::ReprocessStarted(_)
            | Event::ReprocessFinished(_)
            | Event::LogCompacted(_)
            | Event::SessionStarted(_)
            | Event::SessionEnded(_) => false,
            _ => true,
        };
        // Where it happened is in every event of a session; that alone is no reason.
        if is_only_in_envelope(&recorded, &wanted) {
            projects.insert(recorded.envelope.project.key);
        } else if is_meant {
            events.insert(recorded.id);
        }
    }
    touching.events = events.into_iter().collect();
    Ok(touching)
}

/// A text in small letters, as it is, and as it is written in JSON, and in JSON within JSON.
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
