//! Records of past sessions that clients store, for `claude-mem import --from CLIENT`.

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
    /// Converts a tool use and its result to the format of hooks.
    pub finish: fn(&mut ToolUse<'_>),
}

/// The storage format of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastForm {
    /// A file of JSON lines per session, with this prefix and suffix of its name. Each line has a
    /// `timestamp`.
    Lines { start: &'static str, end: &'static str },
    /// Like `Lines`, but a line replaces an earlier one with the same `id`, and the folder of the
    /// project is in this file next to the folder of the session.
    Journal { end: &'static str, project_file: &'static str },
    /// A file of JSON lines per session, named after the session, possibly in a folder of the same
    /// name. Its lines have no times, so the time of the file is used. The folder of the project is
    /// encoded in the name of the directory around this folder, with every character that is not a
    /// letter or digit replaced.
    Undated { folder: &'static str },
    /// The database of OpenCode. A record has `timestamp`, `message` and `part`.
    OpenCode,
}

/// The identity and folder of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PastBegin {
    /// The session id that hooks report.
    pub session: String,
    /// Empty if unknown.
    pub cwd: String,
    pub branch: String,
    /// Set for the record of a subagent, which has a separate file.
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
