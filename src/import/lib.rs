//! Imports into the log: the TypeScript claude-mem, Claude Code transcripts, and our own export.
//!
//! Every event gets an id derived from its content, so that an interrupted import can be repeated,
//! and a second one adds nothing. No request is sent to a provider.

pub mod export;
mod home;
mod lines;
mod sink;
mod transcripts;
mod upstream;
mod upstream_rows;

pub use home::transcripts_dir;
pub use sink::{Report, Scope, Sink};
pub use transcripts::{importable_sessions, transcript_files};

use std::{
    fs::{self, File},
    io::Read,
    path::Path,
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
    /// What `claude-mem export` wrote
    Export,
}

impl From {
    /// Name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ts => "the TypeScript claude-mem",
            Self::Transcripts => "transcripts",
            Self::Export => "an export",
        }
    }
}

/// Imports the file or folder at `path`.
pub fn import(app: &App, sink: &mut Sink<'_>, from: From, path: &Path) -> Result<(), Failure> {
    match from {
        From::Ts => upstream::import(app, sink, path)?,
        From::Transcripts => transcripts::import(app, sink, path)?,
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
        return Ok(From::Ts);
    }
    let mut lines = Lines::open(path).map_err(failed)?;
    let first = match lines.next().map_err(failed)? {
        Some(Line { bytes: Some(bytes), .. }) => bytes,
        _ => &[],
    };
    let fields: serde_json::Value = serde_json::from_slice(first).unwrap_or_default();
    match &fields {
        serde_json::Value::Object(line) if line.contains_key("envelope") => Ok(From::Export),
        serde_json::Value::Object(line) if line.contains_key("observations") => Ok(From::Ts),
        serde_json::Value::Object(_) => Ok(From::Transcripts),
        _ if begin.trim_ascii_start().starts_with(b"{") => Ok(From::Ts),
        _ => Err(Failure::new(format!("{} is nothing that can be imported", path.display()))
            .meaning("it is no database, no transcript and no export")
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
