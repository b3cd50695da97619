//! Records of past sessions of clients other than Claude Code.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    time::UNIX_EPOCH,
};

use claude_mem_events::{Event, SessionStarted};
use claude_mem_projections::OpenCodeRecords;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::{
    OnItem, PastSession, SessionItem, cannot_read, encoded_folder,
    transcript_files::{BEGIN_BYTES_MAX, transcript_files},
    turn::{CaptureRules, RowOrigin},
    turns::Turns,
};
use crate::lines::{Line, Lines};
use claude_mem_capture::{
    Client,
    clients::past::{PastBegin, PastForm, PastSessions},
};
use claude_mem_core::failure::Failure;

/// Maximum number of rows within one microsecond.
const UNDATED_US: u64 = 1_000_000;

/// Marks the first event of a session whose times come from its file.
const DATED_BY_FILE: &str = r#"{"dated_by":"file"}"#;

/// One session.
#[derive(Debug)]
pub(super) struct Records<'a> {
    source: Source<'a>,
    client: &'static Client,
    past: &'static PastSessions,
    begin: PastBegin,
    time_us: u64,
    /// Its own first, then those of its subagents.
    parts: Vec<RecordPart>,
}

/// The record of a session, or of one of its subagents.
#[derive(Debug)]
struct RecordPart {
    agent_id: String,
    /// The file, or the id in the database.
    place: PathBuf,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Files,
    OpenCode(&'a OpenCodeRecords),
}

/// The database, for clients that have one.
pub(super) fn open(past: &PastSessions, path: &Path) -> Result<Option<OpenCodeRecords>, Failure> {
    Ok(match past.form {
        PastForm::OpenCode => Some(OpenCodeRecords::open(path)?),
        PastForm::Lines { .. } | PastForm::Journal { .. } | PastForm::Undated { .. } => None,
    })
}

/// All sessions of a client in a file, below a directory or in its database, the earliest first.
pub(super) fn sessions<'a>(
    client: &'static Client,
    past: &'static PastSessions,
    path: &Path,
    database: Option<&'a OpenCodeRecords>,
) -> Result<Vec<Records<'a>>, Failure> {
    let begun = match database {
        Some(database) => in_database(database)?,
        None => in_files(past, path).map_err(|error| cannot_read(path, &error))?,
    };
    let mut sessions: BTreeMap<String, Records<'_>> = BTreeMap::new();
    for (begin, time_us, place) in begun {
        let is_subagent = !begin.agent_id.is_empty();
        let record = RecordPart { agent_id: begin.agent_id.clone(), place };
        let source = database.map_or(Source::Files, Source::OpenCode);
        let session = sessions.entry(begin.session.clone()).or_insert_with(|| Records {
            source,
            client,
            past,
            begin: begin.clone(),
            time_us,
            parts: Vec::new(),
        });
        session.time_us = session.time_us.min(time_us);
        let at = if is_subagent { session.parts.len() } else { 0 };
        session.parts.insert(at, record);
        if !is_subagent {
            session.begin = begin;
        }
    }
    let mut sessions: Vec<Records<'_>> = sessions.into_values().collect();
    sessions.sort_by_key(|session| session.time_us);
    Ok(sessions)
}

type Begun = (PastBegin, u64, PathBuf);

fn in_files(past: &PastSessions, path: &Path) -> io::Result<Vec<Begun>> {
    let is_dir = fs::metadata(path)?.is_dir();
    let files = transcript_files(path)?.into_iter().filter(|file| {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        !is_dir || past.is_record(&name)
    });
    Ok(files.filter_map(|file| begin_of(past, &file)).collect())
}

/// Reads the start of a record; `None` if it names no session.
fn begin_of(past: &PastSessions, file: &Path) -> Option<Begun> {
    let mut lines = Lines::open(file).ok()?;
    while lines.read < BEGIN_BYTES_MAX {
        let line = lines.next().ok()??;
        let Ok(row) = serde_json::from_slice::<Value>(line.bytes.unwrap_or_default()) else {
            continue;
        };
        let Some(mut begin) = (past.begin)(&row) else { continue };
        if let PastForm::Undated { folder } = past.form {
            let (session, name) = named_session(file, folder)?;
            let cwd = encoded_folder::find(Path::new("/"), &name);
            begin.cwd = cwd.map_or_else(String::new, |cwd| cwd.to_string_lossy().into_owned());
            begin.session = session;
            return Some((begin, file_time_us(file), file.to_owned()));
        }
        if begin.session.is_empty() {
            continue;
        }
        if let PastForm::Journal { project_file, .. } = past.form {
            let place = file.parent()?.parent()?.join(project_file);
            fs::read_to_string(place).unwrap_or_default().trim().clone_into(&mut begin.cwd);
        }
        let start = time_us(&row["timestamp"]).or_else(|| time_us(&row["startTime"]));
        return Some((begin, start.unwrap_or(0), file.to_owned()));
    }
    None
}

/// The session of a file in `folder`, or in a subfolder with the session's name, and the name of
/// the directory around `folder`.
fn named_session(file: &Path, folder: &str) -> Option<(String, String)> {
    let session = file.file_stem()?.to_str()?;
    let is_named = |dir: &&Path, name: &str| dir.file_name().is_some_and(|it| it == name);
    let dir = file.parent()?;
    let own = || dir.parent().filter(|_| is_named(&dir, session));
    let all = Some(dir).filter(|dir| is_named(dir, folder)).or_else(own);
    let all = all.filter(|all| is_named(all, folder))?;
    let name = all.parent()?.file_name()?.to_str()?;
    Some((session.to_owned(), name.to_owned()))
}

/// When the file was last changed.
fn file_time_us(file: &Path) -> u64 {
    let changed = fs::metadata(file).and_then(|found| found.modified()).ok();
    let since = changed.and_then(|changed| changed.duration_since(UNIX_EPOCH).ok());
    since.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(0))
}

fn in_database(database: &OpenCodeRecords) -> Result<Vec<Begun>, Failure> {
    let sessions = database.sessions()?;
    let parents: HashMap<&str, &str> = sessions
        .iter()
        .filter_map(|session| Some((session.id.as_str(), session.parent.as_deref()?)))
        .collect();
    let begun = sessions.iter().map(|session| {
        let mut root = session.id.as_str();
        // A chain longer than all sessions is a cycle.
        for _ in 0..sessions.len() {
            let Some(parent) = parents.get(root) else { break };
            root = parent;
        }
        let is_subagent = root != session.id;
        let begin = PastBegin {
            session: root.to_owned(),
            cwd: session.directory.clone(),
            branch: String::new(),
            agent_id: if is_subagent { session.id.clone() } else { String::new() },
        };
        (begin, session.started_at_ms.saturating_mul(1_000), PathBuf::from(&session.id))
    });
    Ok(begun.collect())
}

/// A time in a record: text, or milliseconds since 1970.
fn time_us(time: &Value) -> Option<u64> {
    match time {
        Value::String(text) => u64::try_from(text.parse::<Timestamp>().ok()?.as_microsecond()).ok(),
        other => other.as_u64()?.checked_mul(1_000),
    }
}

impl PastSession for Records<'_> {
    fn id(&self) -> &str {
        &self.begin.session
    }

    fn cwd(&self) -> &str {
        &self.begin.cwd
    }

    fn started(&self) -> Event {
        let is_undated = matches!(self.past.form, PastForm::Undated { .. });
        let files = matches!(self.source, Source::Files).then(|| self.parts.first()).flatten();
        let path = files.map(|part| part.place.to_string_lossy().into_owned());
        let started = SessionStarted {
            source: "import".into(),
            cwd: self.begin.cwd.clone(),
            transcript_path: path.unwrap_or_default(),
            extra: if is_undated { DATED_BY_FILE.into() } else { String::new() },
            ..SessionStarted::default()
        };
        started.into()
    }

    fn walk(&self, habits: &CaptureRules, on: &mut OnItem<'_>) -> Result<(), Failure> {
        for part in &self.parts {
            let place = RowOrigin {
                cwd: (&self.begin.cwd).into(),
                branch: (&self.begin.branch).into(),
                agent_id: (&part.agent_id).into(),
                ..RowOrigin::default()
            };
            let mut turns = Turns::new(self.past, self.client.name, place, habits);
            // The rows get times before the end of the session, in order.
            let is_undated = matches!(self.past.form, PastForm::Undated { .. });
            let mut next_us = file_time_us(&part.place).saturating_sub(UNDATED_US);
            let mut row = |line: &[u8], on: &mut OnItem<'_>| {
                let Ok(timed) = serde_json::from_slice::<Timed>(line) else {
                    return on(SessionItem::Refused("lines that are not JSON objects"));
                };
                next_us += 1;
                let of_file = is_undated.then_some(next_us);
                let Some(time_us) = of_file.or_else(|| time_us(&timed.timestamp)) else {
                    return Ok(());
                };
                turns
                    .row(time_us, (self.past.row)(line), &mut |found| on(SessionItem::Found(found)))
            };
            match self.source {
                Source::OpenCode(database) => {
                    database.parts(&part.place.to_string_lossy(), |line| row(line, on))?;
                }
                Source::Files if matches!(self.past.form, PastForm::Journal { .. }) => {
                    for line in newest_rows(&part.place, on)? {
                        row(&line, on)?;
                    }
                }
                Source::Files => each_line(&part.place, on, &mut row)?,
            }
            turns.end_of_record(&mut |found| on(SessionItem::Found(found)))?;
        }
        Ok(())
    }
}

/// The fields of a row that determine its time and whether it replaces another.
#[derive(Deserialize)]
struct Timed {
    #[serde(default)]
    timestamp: Value,
    #[serde(default)]
    id: Value,
}

type EachLine<'a> = dyn FnMut(&[u8], &mut OnItem<'_>) -> Result<(), Failure> + 'a;

/// Calls back with each complete line of a file.
fn each_line(file: &Path, on: &mut OnItem<'_>, each: &mut EachLine<'_>) -> Result<(), Failure> {
    let damaged = |error: io::Error| SessionItem::Damaged(format!("{}: {error}", file.display()));
    let mut lines = match Lines::open(file) {
        Ok(lines) => lines,
        Err(error) => return on(damaged(error)),
    };
    loop {
        match lines.next() {
            Ok(Some(Line { bytes: None, .. })) => {
                on(SessionItem::Refused("lines that are too long"))?;
            }
            // The client may still be writing the last one.
            Ok(Some(Line { bytes: Some(bytes), is_ended: true }))
                if !bytes.trim_ascii().is_empty() =>
            {
                each(bytes, on)?;
            }
            Ok(Some(_)) => {}
            Ok(None) => return on(SessionItem::Read(lines.read)),
            Err(error) => return on(damaged(error)),
        }
    }
}

/// The lines of a journal, each in its newest version, at the position of its first version.
fn newest_rows(file: &Path, on: &mut OnItem<'_>) -> Result<Vec<Vec<u8>>, Failure> {
    let mut rows: Vec<Vec<u8>> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    each_line(file, on, &mut |line, _| {
        let id = serde_json::from_slice::<Timed>(line).ok().and_then(|row| match row.id {
            Value::String(id) => Some(id),
            _ => None,
        });
        match id.map(|id| *places.entry(id).or_insert(rows.len())) {
            Some(at) if at < rows.len() => line.clone_into(&mut rows[at]),
            _ => rows.push(line.to_owned()),
        }
        Ok(())
    })?;
    Ok(rows)
}
