//! Imports clients' records of past sessions, as the events that hooks would have recorded.
//!
//! The files are read completely each time, which takes seconds; known ids are skipped. A session
//! that was copied into another one (a fork) has the same ids there, so it is imported once.
//! Transcripts do not contain the end of a session, so it is not imported.

mod conversation;
mod encoded_folder;
mod records;
mod transcript_files;
mod turn;
mod turns;

use std::{collections::HashSet, io, path::Path};

use claude_mem_events::{Envelope, Event, Id};
use claude_mem_projections::Store;
use conversation::Conversation;
use transcript_files::Recorded;
use turn::{CaptureRules, Found, Outcome, stop_of_unanswered};

use crate::{
    From, cannot_read,
    home::Home,
    lines::{Line, Lines},
    sink::{Sink, stable_id},
};
use claude_mem_capture::{
    CLAUDE_CODE, Client, bounded, clients::past::PastSessions, envelope, transcript_rows::Row,
};
use claude_mem_core::{
    app::App, failure::Failure, progress::Progress, settings::table::SKIP_TOOLS,
};

pub(super) use transcript_files::begin_of;
pub use transcript_files::transcript_files;

/// Hooks and transcript rows read the clock at different times of the same call.
const MARGIN_US: u64 = 1_000_000;

/// Imports one transcript of Claude Code, or all below a directory, the earliest session first.
pub(super) fn import_transcripts(
    app: &App,
    sink: &mut Sink<'_>,
    path: &Path,
) -> Result<(), Failure> {
    let sessions = transcript_files::sessions(path).map_err(|error| cannot_read(path, &error))?;
    take_all(app, sink, CLAUDE_CODE.name, &sessions)
}

/// Imports the records of another client.
pub(super) fn import_client(
    app: &App,
    sink: &mut Sink<'_>,
    client: &'static Client,
    past: &'static PastSessions,
    path: &Path,
) -> Result<(), Failure> {
    let database = records::open(past, path)?;
    let sessions = records::sessions(client, past, path, database.as_ref())?;
    take_all(app, sink, client.name, &sessions)
}

/// A session that can be read as often as needed.
trait PastSession {
    /// The client's id.
    fn id(&self) -> &str;
    /// The folder in which it began; empty if unknown.
    fn cwd(&self) -> &str;
    /// The fields that the start hook would have recorded.
    fn started(&self) -> Event;
    fn walk(&self, habits: &CaptureRules, on: &mut OnItem<'_>) -> Result<(), Failure>;
}

type OnItem<'a> = dyn FnMut(SessionItem<'_>) -> Result<(), Failure> + 'a;

/// An event found in a session, or the reason there is none.
enum SessionItem<'a> {
    Found(Found<'a>),
    /// A line that cannot be used, and why.
    Refused(&'static str),
    /// A file that cannot be read completely.
    Damaged(String),
    /// The bytes of a file.
    Read(u64),
}

fn take_all(
    app: &App,
    sink: &mut Sink<'_>,
    client: &str,
    sessions: &[impl PastSession],
) -> Result<(), Failure> {
    let mut home = Home::new(app);
    let skipped_tools = app.settings.get(&SKIP_TOOLS);
    let habits = CaptureRules { policy: home.policy, skipped_tools };
    let progress = Progress::items("importing", sessions.len());
    for session in sessions {
        progress.advance(1);
        if session.cwd().is_empty() {
            sink.leave_out("sessions without a folder");
            continue;
        }
        let Some(project) = home.project_in(session.cwd()) else {
            sink.leave_out("sessions of projects that are excluded");
            continue;
        };
        let envelope = envelope(client, session.id(), project);
        take(sink, session, envelope, &habits)?;
    }
    Ok(())
}

/// The number of sessions of a client that an import would add: of projects that are not excluded,
/// and without an event in the database.
pub fn importable_sessions(app: &App, store: Option<&Store>, from: From) -> Result<usize, Failure> {
    let Some(path) = from.usual_place(app).filter(|path| path.exists()) else { return Ok(0) };
    match from {
        From::Transcripts => {
            let sessions =
                transcript_files::sessions(&path).map_err(|error| cannot_read(&path, &error))?;
            new_sessions(app, store, &sessions)
        }
        From::Client(client, past) => {
            let database = records::open(past, &path)?;
            new_sessions(app, store, &records::sessions(client, past, &path, database.as_ref())?)
        }
        _ => Ok(0),
    }
}

fn new_sessions(
    app: &App,
    store: Option<&Store>,
    sessions: &[impl PastSession],
) -> Result<usize, Failure> {
    let mut home = Home::new(app);
    let mut new = 0;
    for session in sessions.iter().filter(|session| !session.cwd().is_empty()) {
        let seen_us = store.map(|store| store.last_seen_us(session.id(), i64::MAX as u64));
        let is_known = seen_us.transpose()?.flatten().is_some();
        new += usize::from(!is_known && home.project_in(session.cwd()).is_some());
    }
    Ok(new)
}

/// Imports one session, with its subagents.
fn take(
    sink: &mut Sink<'_>,
    session: &impl PastSession,
    mut envelope: Envelope,
    habits: &CaptureRules,
) -> Result<(), Failure> {
    let recorded = recorded_before(sink.store, &envelope, session, habits)?;
    let mut is_begun = recorded.is_known && !recorded.has_start;
    session.walk(habits, &mut |walked| {
        let found = match walked {
            SessionItem::Found(found) => found,
            SessionItem::Refused(reason) => {
                sink.refuse(reason);
                return Ok(());
            }
            SessionItem::Damaged(what) => {
                sink.report.damage.push(what);
                return Ok(());
            }
            SessionItem::Read(bytes) => {
                sink.report.bytes += bytes;
                return Ok(());
            }
        };
        if !is_begun && recorded.has_start && sink.is_wanted(found.id, &envelope) {
            is_begun = true;
            sink.report.known += 1;
        }
        if found.id.time_us() >= recorded.hooks_from_us {
            sink.recorded_otherwise(found.id);
            return Ok(());
        }
        let make = match found.outcome {
            Outcome::Event(make) => make,
            Outcome::LeftOut(reason) => {
                sink.leave_out_tool_use(found.id, &envelope, reason);
                return Ok(());
            }
        };
        envelope.branch = bounded(found.branch.to_owned());
        if !is_begun && sink.would_add(found.id, &envelope)? {
            is_begun = true;
            let id = stable_id(found.id.time_us(), &["transcript", "start", session.id()]);
            sink.add("SessionStarted", id, &envelope, || session.started())?;
        }
        sink.add(found.what, found.id, &envelope, make)
    })
}

impl PastSession for Recorded {
    fn id(&self) -> &str {
        &self.id
    }

    fn cwd(&self) -> &str {
        &self.cwd
    }

    fn started(&self) -> Event {
        self.start_event()
    }

    fn walk(&self, habits: &CaptureRules, on: &mut OnItem<'_>) -> Result<(), Failure> {
        for file in &self.files {
            let mut conversation = Conversation::new(file, habits);
            let read = read_rows(file, |line| match line {
                Ok(row) => conversation.row(row, &mut |found| on(SessionItem::Found(found))),
                Err(reason) => on(SessionItem::Refused(reason)),
            });
            match read {
                Ok(bytes) => on(SessionItem::Read(bytes))?,
                Err(Problem::Ours(failure)) => return Err(failure),
                Err(Problem::File(error)) => {
                    on(SessionItem::Damaged(format!("{}: {error}", file.display())))?;
                }
            }
            conversation.end_of_record(&mut |found| on(SessionItem::Found(found)))?;
        }
        Ok(())
    }
}

/// The events of a session from elsewhere in the tables.
struct KnownEvents {
    /// Whether there is any event.
    is_known: bool,
    /// Whether its start is there. Transcripts do not contain it, so the import adds one.
    has_start: bool,
    /// The time from which hooks recorded it, or from which another memory imported it.
    hooks_from_us: u64,
}

/// Finds the events of the session that were not imported from these files.
fn recorded_before(
    store: &Store,
    envelope: &Envelope,
    session: &impl PastSession,
    habits: &CaptureRules,
) -> Result<KnownEvents, Failure> {
    let known = store.events_of_session(&envelope.platform, session.id())?;
    let has_start = known.iter().any(|(_, kind)| Event::name_of(*kind) == "SessionStarted");
    let is_known = !known.is_empty();
    let mut before = KnownEvents { is_known, has_start, hooks_from_us: u64::MAX };
    if known.is_empty() {
        return Ok(before);
    }
    let mut ours: HashSet<Id> = HashSet::new();
    // Unreadable files are reported when they are imported.
    session.walk(habits, &mut |walked| {
        if let SessionItem::Found(found) = walked {
            ours.insert(found.id);
            // If the session continued since, an answer follows the prompt.
            if found.what == "PromptSubmitted" {
                ours.insert(stop_of_unanswered(found.id));
            }
        }
        Ok(())
    })?;
    let is_elsewhere =
        |(id, kind): &&(Id, u16)| CAPTURED.contains(&Event::name_of(*kind)) && !ours.contains(id);
    if let Some((first, _)) = known.iter().find(is_elsewhere) {
        before.hooks_from_us = first.time_us().saturating_sub(MARGIN_US);
    }
    Ok(before)
}

/// A session with one of these kinds was recorded by hooks.
const CAPTURED: [&str; 5] =
    ["PromptSubmitted", "ToolUsed", "SummaryRequested", "SessionEnded", "Imported"];

enum Problem {
    File(io::Error),
    Ours(Failure),
}

/// Calls back with each line of a file, or why it cannot be read; returns the number of bytes.
fn read_rows(
    file: &Path,
    mut each: impl FnMut(Result<&Row<'_>, &'static str>) -> Result<(), Failure>,
) -> Result<u64, Problem> {
    let mut lines = Lines::open(file).map_err(Problem::File)?;
    while let Some(Line { bytes, is_ended }) = lines.next().map_err(Problem::File)? {
        let Some(bytes) = bytes else {
            each(Err("lines that are too long")).map_err(Problem::Ours)?;
            continue;
        };
        if bytes.trim_ascii().is_empty() {
            continue;
        }
        let text = String::from_utf8_lossy(bytes);
        match Row::read(&text) {
            Some(row) => each(Ok(&row)).map_err(Problem::Ours)?,
            None if is_ended => {
                each(Err("lines that are not JSON objects")).map_err(Problem::Ours)?;
            }
            // The client is still writing it.
            None => {}
        }
    }
    Ok(lines.read)
}
