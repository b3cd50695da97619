//! Records that clients keep of past sessions, as `claude-mem import --from CLIENT` reads them.

use claude_mem_core::environment::Environment;
use serde_json::Value;
use std::path::{Path, PathBuf};

use super::config::Dir;
use crate::{incoming::ToolUse, transcript::TurnRow};

/// The records of a client.
#[derive(Debug)]
pub struct PastSessions {
    pub dir: Dir,
    /// Below `dir`: a folder, or the file of a database.
    pub place: &'static str,
    pub form: PastForm,
    /// Reads the identity and folder of a session from one record; `None` if the record has
    /// neither.
    pub begin: fn(&Value) -> Option<PastBegin>,
    /// Reads one record.
    pub row: fn(&[u8]) -> TurnRow,
    /// Converts a tool use with its result to the form in which hooks record it.
    pub finish: fn(&mut ToolUse<'_>),
}

/// The storage format of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastForm {
    /// A file of JSON lines per session, with this at the start and at the end of its name. Each
    /// line has a `timestamp`.
    Lines { start: &'static str, end: &'static str },
    /// The same, but a line replaces an earlier one with the same `id`, and the folder of the
    /// project is in this file next to the folder of the session.
    Journal { end: &'static str, project_file: &'static str },
    /// A file of JSON lines per session, named as the session is, perhaps in a folder of the same
    /// name. Its lines have no times, so the time of the file counts. The folder of the project is
    /// in the name of the directory around the folder with this name, with other signs for those
    /// that are no letters or digits.
    Undated { folder: &'static str },
    /// The database of OpenCode. A record has `timestamp`, `message` and `part`.
    OpenCode,
}

/// The identity and folder of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastBegin {
    /// As hooks name it.
    pub session: String,
    /// Empty if it is unknown.
    pub cwd: String,
    pub branch: String,
    /// If the record is of a subagent, which has a file of its own.
    pub agent_id: String,
}

impl PastSessions {
    /// The path of the records; `None` if the home directory is unknown.
    pub fn find(&self, environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
        Some(self.dir.find(environment, home)?.join(self.place))
    }

    /// Whether a file with this name is the record of a session.
    pub fn is_record(&self, name: &str) -> bool {
        match self.form {
            PastForm::Lines { start, end } => name.starts_with(start) && name.ends_with(end),
            PastForm::Journal { end, .. } => name.ends_with(end),
            PastForm::Undated { .. } => name.ends_with(".jsonl"),
            PastForm::OpenCode => false,
        }
    }
}
