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
    sync::LazyLock,
};

use clap::{ValueEnum, builder::PossibleValue};
use claude_mem_capture::{
    CLAUDE_CODE, Client,
    clients::{CLIENTS, past::PastSessions},
};
use claude_mem_core::{app::App, failure::Failure};
use lines::{Line, Lines};

/// Formats that can be imported.
#[derive(Debug, Clone, Copy)]
pub enum From {
    Ts,
    /// Claude Code's records of past sessions.
    Transcripts,
    /// The records of a client that has them in [`PastSessions`].
    Client(&'static Client, &'static PastSessions),
    History,
    AutoMemory,
    Export,
}

static ALL: LazyLock<Vec<From>> = LazyLock::new(|| {
    let past = |client: &&'static Client| Some(From::Client(client, client.past.as_ref()?));
    let clients = CLIENTS.iter().filter_map(past);
    let own = [From::Ts, From::Transcripts];
    own.into_iter().chain(clients).chain([From::History, From::AutoMemory, From::Export]).collect()
});

impl ValueEnum for From {
    fn value_variants<'a>() -> &'a [Self] {
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let help = match self {
            Self::Ts => "The TypeScript claude-mem: its database, or a file it exported".into(),
            Self::Transcripts => "Claude Code's own records of past sessions".into(),
            Self::Client(client, _) => format!("Past sessions of {}", client.title),
            Self::History => {
                "Prompts in Claude Code's `history.jsonl`, which stay when transcripts are deleted"
                    .into()
            }
            Self::AutoMemory => {
                "Notes that Claude Code writes for itself: `memory/*.md` of each project".into()
            }
            Self::Export => "What `claude-mem export` wrote".into(),
        };
        Some(PossibleValue::new(self.flag()).help(help))
    }
}

impl From {
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().copied()
    }

    /// The value of `--from`.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Transcripts => "transcripts",
            Self::Client(client, _) => client.name,
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
            Self::Client(client, _) => client.title,
            Self::History => "Claude Code's prompt history",
            Self::AutoMemory => "Claude Code's auto memory",
            Self::Export => "an export",
        }
    }

    /// Its usual location; `None` if there is none.
    pub fn usual_place(self, app: &App) -> Option<PathBuf> {
        match self {
            Self::Ts => Some(app.paths.data.join(DATABASE)),
            Self::Transcripts | Self::AutoMemory => transcripts_dir(app),
            Self::Client(_, past) => past.find(&app.environment, app.paths.home.as_deref()),
            Self::History => Some(transcripts_dir(app)?.with_file_name("history.jsonl")),
            Self::Export => None,
        }
    }

    /// The client whose sessions it contains; `None` if it contains no sessions.
    pub fn client(self) -> Option<&'static Client> {
        match self {
            Self::Transcripts => Some(&CLAUDE_CODE),
            Self::Client(client, _) => Some(client),
            _ => None,
        }
    }
}

/// Imports the file or folder at `path`.
pub fn import(app: &App, sink: &mut Sink<'_>, from: From, path: &Path) -> Result<(), Failure> {
    match from {
        From::Ts => upstream::import_upstream(app, sink, path)?,
        From::Transcripts => transcripts::import_transcripts(app, sink, path)?,
        From::Client(client, past) => transcripts::import_client(app, sink, client, past, path)?,
        From::History => history::import_history(app, sink, path)?,
        From::AutoMemory => auto_memory::import_auto_memory(app, sink, path)?,
        From::Export => export::import(sink, path)?,
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
        let name = path.file_name();
        let is_named = |from: &From| match from {
            From::Client(_, past) => name.is_some_and(|name| name == past.place),
            _ => false,
        };
        return Ok(From::all().find(is_named).unwrap_or(From::Ts));
    }
    let mut lines = Lines::open(path).map_err(failed)?;
    let first = match lines.next().map_err(failed)? {
        Some(Line { bytes: Some(bytes), .. }) => bytes,
        _ => &[],
    };
    let fields: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
    let begins = |from: &From| match from {
        From::Client(_, past) => (past.begin)(&fields).is_some(),
        _ => false,
    };
    if let Some(from) = From::all().find(begins) {
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
            .remedy("name its format with `--from`")),
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
