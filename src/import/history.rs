//! Imports the prompts in Claude Code's `history.jsonl`, which remain when transcripts are deleted.
//!
//! A session with an existing transcript is skipped: the import of transcripts provides more than
//! prompts.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use claude_mem_events::{PromptSubmitted, Submitter};
use serde::Deserialize;

use crate::{
    cannot_read,
    home::{Home, transcripts_dir},
    lines::{Line, Lines},
    sink::{Sink, stable_id},
    transcripts::transcript_files,
};
use claude_mem_capture::{CLAUDE_CODE, envelope, submitter};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::redact_text;

/// A prompt that was recorded by a hook or a transcript has a slightly different time.
const MARGIN_US: u64 = 60_000_000;

/// A line of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    /// The prompt, with placeholders for pasted text.
    display: String,
    /// Milliseconds since 1970.
    timestamp: u64,
    /// The folder in which it was typed.
    project: String,
    /// Missing in lines of older clients.
    #[serde(default)]
    session_id: String,
}

pub(super) fn import_history(app: &App, sink: &mut Sink<'_>, path: &Path) -> Result<(), Failure> {
    let failed = |error: std::io::Error| cannot_read(path, &error);
    let transcripts = with_transcripts(app);
    let mut home = Home::new(app);
    let mut lines = Lines::open(path).map_err(failed)?;
    while let Some(Line { bytes, is_ended }) = lines.next().map_err(failed)? {
        let Some(bytes) = bytes else {
            sink.refuse("lines that are too long");
            continue;
        };
        match serde_json::from_slice::<Entry>(bytes) {
            Ok(entry) => take(sink, &mut home, &transcripts, &entry)?,
            Err(_) if is_ended && !bytes.trim_ascii().is_empty() => {
                sink.refuse("lines that are not prompts");
            }
            // The client is still writing this line.
            Err(_) => {}
        }
    }
    sink.report.bytes += lines.read;
    Ok(())
}

fn take(
    sink: &mut Sink<'_>,
    home: &mut Home<'_>,
    transcripts: &HashSet<String>,
    entry: &Entry,
) -> Result<(), Failure> {
    let text = entry.display.trim();
    // A command of the client, of the shell, or a line for `CLAUDE.md`.
    if text.is_empty() || text.starts_with(['/', '!', '#']) {
        sink.leave_out("commands");
        return Ok(());
    }
    if transcripts.contains(&entry.session_id) {
        sink.leave_out("prompts in transcripts");
        return Ok(());
    }
    let Some(project) = home.project_in(&entry.project) else {
        sink.leave_out("prompts in projects that are excluded");
        return Ok(());
    };
    let time_us = entry.timestamp.saturating_mul(1_000);
    // Older lines do not name their session: those of one day in a project are treated as one
    // session.
    let session = match entry.session_id.as_str() {
        "" => format!("history-{}-{}", time_us / DAY_US, project.label),
        id => id.to_owned(),
    };
    let id = stable_id(time_us, &["history", &entry.project, text]);
    let redacted = redact_text(text, home.policy);
    if !sink.store.has_event(id)?
        && sink.store.has_prompt_near(&redacted.text, time_us, MARGIN_US)?
    {
        sink.recorded_otherwise(id);
        return Ok(());
    }
    let envelope = envelope(CLAUDE_CODE.name, &session, project);
    sink.add("PromptSubmitted", id, &envelope, || {
        let is_private = redacted.wholly_private;
        let prompt = PromptSubmitted {
            prompt: if is_private { String::new() } else { redacted.text },
            is_private,
            submitter: match submitter(text) {
                Submitter::UserMedia => Submitter::User,
                other => other,
            },
            prompt_id: String::new(),
            cwd: entry.project.clone(),
            extra: String::new(),
        };
        prompt.into()
    })
}

const DAY_US: u64 = 86_400_000_000;

/// The sessions that still have a transcript.
fn with_transcripts(app: &App) -> HashSet<String> {
    let files = transcripts_dir(app).and_then(|dir| transcript_files(&dir).ok());
    let name = |file: PathBuf| Some(file.file_stem()?.to_string_lossy().into_owned());
    files.unwrap_or_default().into_iter().filter_map(name).collect()
}
