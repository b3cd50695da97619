//! Finds transcripts, and groups those of one session.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use claude_mem_events::{Event, SessionStarted};

use crate::lines::Lines;
use claude_mem_capture::transcript_rows::Row;

/// The session id and folder must be in the first bytes of a file.
pub(super) const BEGIN_BYTES_MAX: u64 = 4 << 20;
/// Projects, sessions and subagents are three levels; one more is allowed.
const DEPTH_MAX: usize = 4;

/// The record of one session.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) id: String,
    /// The first working directory.
    pub(super) cwd: String,
    /// When it began.
    time_us: u64,
    /// The session's own first, then those of its subagents.
    pub(super) files: Vec<PathBuf>,
}

impl Recorded {
    /// The fields that the start hook would have recorded.
    pub(super) fn start_event(&self) -> Event {
        let path = self.files.first().map(|file| file.to_string_lossy().into_owned());
        let started = SessionStarted {
            source: "import".into(),
            cwd: self.cwd.clone(),
            transcript_path: path.unwrap_or_default(),
            ..SessionStarted::default()
        };
        started.into()
    }
}

/// All transcripts below a directory, or the one at this path. A session's own file sorts before
/// the folder of the same name.
pub fn transcript_files(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if fs::metadata(path)?.is_dir() {
        gather(path, DEPTH_MAX, &mut files)?;
    } else {
        files.push(path.to_owned());
    }
    files.sort();
    Ok(files)
}

/// All sessions in a file or below a directory, the earliest first.
pub(super) fn sessions(path: &Path) -> io::Result<Vec<Recorded>> {
    let files = transcript_files(path)?;
    let mut sessions: BTreeMap<String, Recorded> = BTreeMap::new();
    for file in files {
        let Some(begin) = begin_of(&file) else { continue };
        let session = sessions.entry(begin.id.clone()).or_default();
        if session.files.is_empty() || begin.time_us < session.time_us {
            session.time_us = begin.time_us;
        }
        if session.cwd.is_empty() || !begin.is_aside && session.is_aside_only() {
            session.cwd = begin.cwd;
        }
        let at = if begin.is_aside { session.files.len() } else { 0 };
        session.files.insert(at, file);
        session.id = begin.id;
    }
    let mut sessions: Vec<Recorded> = sessions.into_values().collect();
    sessions.sort_by_key(|session| session.time_us);
    Ok(sessions)
}

impl Recorded {
    fn is_aside_only(&self) -> bool {
        self.files.iter().all(|file| is_of_subagent(file))
    }
}

fn is_of_subagent(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("agent-"))
}

fn gather(dir: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() && depth > 0 {
            // A folder that cannot be read is skipped.
            let _ = gather(&path, depth - 1, files);
        } else if kind.is_file() && path.extension().is_some_and(|end| end == "jsonl") {
            files.push(path);
        }
    }
    Ok(())
}

/// The session and folder of a transcript, from its first rows.
#[derive(Debug, Default)]
pub(crate) struct TranscriptStart {
    pub id: String,
    pub cwd: String,
    time_us: u64,
    is_aside: bool,
}

/// Reads the start of a transcript; `None` if it names no session.
pub(crate) fn begin_of(file: &Path) -> Option<TranscriptStart> {
    let mut lines = Lines::open(file).ok()?;
    let mut begin =
        TranscriptStart { is_aside: is_of_subagent(file), ..TranscriptStart::default() };
    while lines.read < BEGIN_BYTES_MAX {
        let Some(line) = lines.next().ok()? else { break };
        let text = line.bytes.map(String::from_utf8_lossy).unwrap_or_default();
        let Some(row) = Row::read(&text) else { continue };
        if begin.id.is_empty() {
            begin.id = row.session().into_owned();
        }
        begin.is_aside |= row.is_aside() && begin.cwd.is_empty();
        if begin.time_us == 0 {
            begin.time_us = row.time_us().unwrap_or(0);
        }
        if begin.cwd.is_empty() {
            begin.cwd = row.cwd().into_owned();
        }
        if !begin.id.is_empty() && !begin.cwd.is_empty() && begin.time_us > 0 {
            break;
        }
    }
    // Without a folder, no work was done in it.
    (!begin.id.is_empty() && !begin.cwd.is_empty()).then_some(begin)
}
