//! Imports into the log: the TypeScript claude-mem, records of clients, and our own export.
//!
//! Every event gets an id derived from its content, so that an interrupted import can be repeated,
//! and a second one adds nothing. No request is sent to a provider.

mod auto_memory;
pub mod export;
mod history;
mod home;
mod lines;
mod sink;
mod transcripts;
mod upstream;
mod upstream_rows;

use home::transcripts_dir;
pub use sink::{Report, Scope, Sink};
pub use transcripts::{importable_sessions, transcript_files};

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use claude_mem_capture::{
    CLAUDE_CODE, Client,
    clients::{self, past::PastSessions},
};
use claude_mem_core::{app::App, failure::Failure};
use lines::{Line, Lines};

/// Formats that can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum From {
    /// The TypeScript claude-mem: its database, or a file it exported
    Ts,
    /// Claude Code's own records of past sessions
    Transcripts,
    /// Codex CLI's records of past sessions
    Codex,
    /// GitHub Copilot CLI's records of past sessions
    Copilot,
    /// Gemini CLI's records of past sessions
    Gemini,
    /// Qwen Code's records of past sessions
    Qwen,
    /// Cursor's transcripts: prompts and answers, dated by their files
    Cursor,
    /// The database of OpenCode
    #[value(name = "opencode")]
    OpenCode,
    /// Prompts in Claude Code's `history.jsonl`, which stay when transcripts are deleted
    History,
    /// Notes that Claude Code writes for itself: `memory/*.md` of each project
    AutoMemory,
    /// What `claude-mem export` wrote
    Export,
}

impl From {
    /// Those that have a usual place.
    pub const WITH_PLACE: [Self; 10] = [
        Self::Ts,
        Self::Transcripts,
        Self::History,
        Self::AutoMemory,
        Self::Codex,
        Self::Copilot,
        Self::Gemini,
        Self::Qwen,
        Self::OpenCode,
        Self::Cursor,
    ];

    /// The value of `--from`.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Transcripts => "transcripts",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
            Self::OpenCode => "opencode",
            Self::Cursor => "cursor",
            Self::History => "history",
            Self::AutoMemory => "auto-memory",
            Self::Export => "export",
        }
    }

    /// Name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ts => "the TypeScript claude-mem",
            Self::Transcripts => "transcripts",
            Self::History => "Claude Code's prompt history",
            Self::AutoMemory => "Claude Code's auto memory",
            Self::Export => "an export",
            _ => self.client().map_or("", |client| client.title),
        }
    }

    /// Where it usually is; `None` if it has no such place.
    pub fn usual_place(self, app: &App) -> Option<PathBuf> {
        match self {
            Self::Ts => Some(app.paths.data.join(DATABASE)),
            Self::Transcripts | Self::AutoMemory => transcripts_dir(app),
            Self::History => Some(transcripts_dir(app)?.with_file_name("history.jsonl")),
            Self::Export => None,
            _ => self.past()?.find(&app.environment, app.paths.home.as_deref()),
        }
    }

    /// Those with sessions of a client.
    pub fn of_sessions() -> impl Iterator<Item = Self> {
        let is_of_client = |from: &Self| *from == Self::Transcripts || from.client().is_some();
        Self::WITH_PLACE.into_iter().filter(is_of_client)
    }

    /// The client whose sessions it means.
    pub fn client_title(self) -> &'static str {
        self.client().unwrap_or(&CLAUDE_CODE).title
    }

    /// The client whose records it means, unless it is Claude Code.
    fn client(self) -> Option<&'static Client> {
        clients::find(self.flag())
    }

    fn past(self) -> Option<&'static PastSessions> {
        self.client()?.past.as_ref()
    }
}

/// Imports the file or folder at `path`.
pub fn import(app: &App, sink: &mut Sink<'_>, from: From, path: &Path) -> Result<(), Failure> {
    match (from, from.client()) {
        (From::Ts, _) => upstream::import(app, sink, path)?,
        (From::Export, _) => export::import(sink, path)?,
        (From::History, _) => history::import(app, sink, path)?,
        (From::AutoMemory, _) => auto_memory::import(app, sink, path)?,
        (_, Some(client)) => transcripts::import_of(app, sink, client, path)?,
        (_, None) => transcripts::import(app, sink, path)?,
    }
    sink.finish()
}

/// Detects the format from the content.
pub fn recognise(path: &Path) -> Result<From, Failure> {
    let failed = |error| cannot_read(path, &error);
    if fs::metadata(path).map_err(failed)?.is_dir() {
        let is_database = path.join(DATABASE).is_file();
        return Ok(if is_database { From::Ts } else { From::Transcripts });
    }
    let mut begin = Vec::new();
    File::open(path).and_then(|file| file.take(16).read_to_end(&mut begin)).map_err(failed)?;
    if begin.starts_with(b"SQLite format 3") {
        let is_opencode = path.file_name().is_some_and(|name| name == "opencode.db");
        return Ok(if is_opencode { From::OpenCode } else { From::Ts });
    }
    let mut lines = Lines::open(path).map_err(failed)?;
    let first = match lines.next().map_err(failed)? {
        Some(Line { bytes: Some(bytes), .. }) => bytes,
        _ => &[],
    };
    let fields: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
    let begins = |from: &From| from.past().is_some_and(|past| (past.begin)(&fields).is_some());
    if let Some(from) = From::WITH_PLACE.into_iter().find(begins) {
        return Ok(from);
    }
    match &fields {
        serde_json::Value::Object(line) if line.contains_key("envelope") => Ok(From::Export),
        serde_json::Value::Object(line) if line.contains_key("observations") => Ok(From::Ts),
        serde_json::Value::Object(line) if line.contains_key("display") => Ok(From::History),
        serde_json::Value::Object(_) => Ok(From::Transcripts),
        _ if begin.trim_ascii_start().starts_with(b"{") => Ok(From::Ts),
        _ => Err(Failure::new(format!("{} cannot be imported", path.display()))
            .meaning("it is not a database, a transcript or an export")
            .remedy("say what it should be with `--from`")),
    }
}

/// File name of the TypeScript claude-mem's database.
pub const DATABASE: &str = "claude-mem.db";

fn cannot_read(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(format!("{} cannot be read: {error}", path.display()));
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            failure.remedy("pass the path of a file or folder: `claude-mem import FILE`")
        }
        _ => failure,
    }
}
