//! Reads the end of a client's transcript: the texts of the last turn, and the last messages for
//! clients whose stop event lacks them.
//!
//! The file contains JSON lines and can have any size. Another program writes it while we read. It
//! is read backwards in blocks, up to a limit, and invalid lines are skipped. The latest rows may
//! be missing; we do not wait for them. The client's module parses a line; this module decides
//! which lines may be used.

use std::{
    fs::{File, OpenOptions},
    io::Read as _,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use memchr::{memchr_iter, memrchr};

use crate::incoming::ToolUse;
use claude_mem_core::os::{FileExt as _, OpenOptionsExt as _};
use claude_mem_privacy::{Policy, redact_text};

/// Block size and maximum size. One answer has less than a megabyte, and the rows after it are
/// mostly small; a longer line is skipped.
const BLOCK_BYTES: usize = 64 << 10;
const BYTES_MAX: usize = 8 << 20;

/// One message of a transcript.
#[derive(Debug, PartialEq)]
pub struct Message {
    pub speaker: Speaker,
    /// Empty if there are only tools and their results.
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    User,
    Assistant,
}

/// The last message of each side; empty where there is none.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LastTexts {
    pub(super) user: String,
    pub(super) assistant: String,
    /// Whether the last message is the assistant's.
    pub(super) is_answered: bool,
}

/// The last messages, from a transcript that may lag up to `lag` behind the event. An answer to an
/// earlier prompt is ignored.
pub(super) fn last_messages_within(
    path: &Path,
    lag: Duration,
    read_line: impl Fn(&[u8]) -> Option<Message>,
) -> LastTexts {
    let begun = Instant::now();
    loop {
        let mut last = last_messages(path, &read_line);
        if last.is_answered || lag.is_zero() {
            return last;
        }
        if begun.elapsed() >= lag {
            last.assistant.clear();
            return last;
        }
        thread::sleep(LAG_PAUSE);
    }
}

/// How long to wait before a transcript is read again.
const LAG_PAUSE: Duration = Duration::from_millis(20);

/// The last messages in this transcript; `read_line` parses one line.
///
/// An answer from before the last prompt is used only if its own prompt has been seen, because the
/// text of a private turn is private.
pub(super) fn last_messages(
    path: &Path,
    read_line: impl Fn(&[u8]) -> Option<Message>,
) -> LastTexts {
    let mut last = LastTexts::default();
    let Some(mut lines) = Lines::open(path) else { return last };
    let mut is_public = true;
    while let Some(line) = lines.next_back() {
        let message = read_line(line).filter(|message| !message.text.trim().is_empty());
        let Some(Message { speaker, text }) = message else { continue };
        match speaker {
            Speaker::Assistant if last.assistant.is_empty() => {
                is_public = last.user.is_empty();
                last.is_answered = is_public;
                last.assistant = text;
            }
            Speaker::Assistant => {}
            Speaker::User => {
                let is_private = redact_text(&text, Policy::default()).wholly_private;
                if last.user.is_empty() {
                    last.user = text;
                }
                if !last.assistant.is_empty() {
                    is_public = !is_private;
                    break;
                }
            }
        }
    }
    if !is_public {
        last.assistant.clear();
    }
    last
}

/// The parts of a turn in one line of a transcript.
#[derive(Debug)]
pub enum TurnRow {
    /// No part of a turn.
    Other,
    /// A prompt: the turn begins.
    Prompt { text: String, prompt_id: String },
    /// The stop hooks have run; an earlier one has read the rows before.
    Stopped,
    /// Parts of the conversation, in order. `prompt_id` may be empty.
    Parts { parts: Vec<TurnPart>, prompt_id: String },
}

impl TurnRow {
    /// A prompt without a turn id.
    pub(crate) fn prompt(text: String) -> Self {
        Self::Prompt { text, prompt_id: String::new() }
    }

    /// Parts of a turn without a turn id.
    pub(crate) fn parts(parts: Vec<TurnPart>) -> Self {
        Self::Parts { parts, prompt_id: String::new() }
    }
}

/// A part of a turn.
#[derive(Debug, PartialEq)]
pub enum TurnPart {
    /// Text of the assistant.
    AssistantText(String),
    Called {
        tool_use_id: String,
        tool: String,
        /// JSON.
        input: String,
    },
    /// A tool has run.
    Done {
        tool_use_id: String,
        /// JSON.
        output: String,
    },
    /// A tool failed or did not run.
    Failed { tool_use_id: String, error: String },
    /// The client's summary of the earlier conversation.
    Compacted(String),
    /// An error of the model's API.
    ApiError(String),
}

/// The parts of the last turn in this transcript, in order. A compaction directly before its prompt
/// belongs to it, because the turn before is over.
///
/// The rows may belong to another turn if those of this one are not written yet. So the turn ids
/// must match, or without ids, the prompt must have been seen. The text of a private turn is
/// private.
pub(super) fn turn_parts(
    path: &Path,
    prompt_id: &str,
    read_row: fn(&[u8]) -> TurnRow,
) -> Vec<TurnPart> {
    let Some(mut lines) = Lines::open(path) else { return Vec::new() };
    let is_other = |id: &str| !prompt_id.is_empty() && !id.is_empty() && id != prompt_id;
    let (mut parts, mut is_begun, mut is_known) = (Vec::new(), false, false);
    while let Some(line) = lines.next_back() {
        match read_row(line) {
            TurnRow::Other => {}
            TurnRow::Stopped => {
                is_known = true;
                break;
            }
            TurnRow::Parts { parts: of_row, .. } if is_begun => {
                let is_compaction = |part: &TurnPart| matches!(part, TurnPart::Compacted(_));
                if !of_row.iter().all(is_compaction) {
                    break;
                }
                parts.extend(of_row);
            }
            TurnRow::Parts { parts: of_row, prompt_id: of_turn } => {
                if is_other(&of_turn) {
                    return Vec::new();
                }
                is_known |= !of_turn.is_empty() && of_turn == prompt_id;
                parts.extend(of_row.into_iter().rev());
            }
            TurnRow::Prompt { .. } if is_begun => break,
            TurnRow::Prompt { text, prompt_id: of_turn } => {
                if is_other(&of_turn) || redact_text(&text, Policy::default()).wholly_private {
                    return Vec::new();
                }
                (is_begun, is_known) = (true, true);
            }
        }
    }
    if !is_known {
        return Vec::new();
    }
    let is_compaction = |part: &TurnPart| matches!(part, TurnPart::Compacted(_));
    if parts.iter().any(is_compaction) && mentions_private(path) {
        parts.retain(|part| !is_compaction(part));
    }
    parts.reverse();
    parts
}

/// How far back a turn is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Turn,
    /// Its end, back to a few messages with successful calls, or one megabyte. The hooks of these
    /// calls have read the rows before, but some tools have no hook.
    End,
}

const END_MESSAGES: usize = 4;

/// The failed calls of the last turn that no hook reported, as tool uses in order. `was_reported`
/// returns whether a line shows that the hook reported the call.
pub(super) fn hidden_failures(
    path: &Path,
    extent: Extent,
    read_row: fn(&[u8]) -> TurnRow,
    was_reported: impl Fn(&[u8], &str) -> bool,
) -> Vec<ToolUse<'static>> {
    let mut failed: Vec<ToolUse<'static>> = Vec::new();
    let Some(mut lines) = Lines::open(path) else { return failed };
    // Calls of one message run in parallel: their results follow the last call.
    let (mut has_success, mut messages) = (false, 0);
    let bytes_max = if extent == Extent::End { LATEST_BYTES_MAX } else { BYTES_MAX };
    'lines: while lines.read <= bytes_max
        && let Some(line) = lines.next_back()
    {
        let parts = match read_row(line) {
            TurnRow::Parts { parts, .. } => parts,
            TurnRow::Other => Vec::new(),
            TurnRow::Stopped => break,
            TurnRow::Prompt { text, .. } => {
                if redact_text(&text, Policy::default()).wholly_private {
                    return Vec::new();
                }
                break;
            }
        };
        for part in parts.into_iter().rev() {
            match part {
                TurnPart::Done { .. } | TurnPart::Failed { .. }
                    if messages >= END_MESSAGES && extent == Extent::End =>
                {
                    break 'lines;
                }
                TurnPart::Done { .. } => has_success = true,
                TurnPart::Failed { tool_use_id, error } => failed.push(ToolUse {
                    error: error.into(),
                    has_failed: true,
                    tool_use_id: tool_use_id.into(),
                    ..ToolUse::default()
                }),
                TurnPart::Called { tool_use_id, tool, input } => {
                    messages += usize::from(has_success);
                    has_success = false;
                    if let Some(used) = failed.iter_mut().find(|it| it.tool_use_id == tool_use_id) {
                        (used.tool, used.input) = (tool.into(), input.into());
                    }
                }
                _ => {}
            }
        }
        let count = failed.len();
        failed.retain(|used| !was_reported(line, &used.tool_use_id));
        has_success |= failed.len() < count;
    }
    failed.retain(|used| !used.tool.is_empty());
    failed.reverse();
    failed
}

/// Every tool use reads this much at most.
const LATEST_BYTES_MAX: usize = 1 << 20;

/// The value that `read_line` finds in the latest matching line, for a command that has just ended.
pub(super) fn find_latest<T>(path: &Path, read_line: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
    let mut lines = Lines::open(path)?;
    while lines.read <= LATEST_BYTES_MAX {
        if let Some(found) = read_line(lines.next_back()?) {
            return Some(found);
        }
    }
    None
}

/// A longer transcript is not searched, and treated as if it contained private text.
const SEARCHED_BYTES_MAX: u64 = 256 << 20;

/// Whether a transcript contains a private tag. A summary of such a conversation may paraphrase
/// private text. Returns true if in doubt.
pub(super) fn mentions_private(path: &Path) -> bool {
    let Ok(mut file) = OpenOptions::new().read(true).no_wait().open(path) else { return true };
    let is_short = |found: std::fs::Metadata| found.is_file() && found.len() <= SEARCHED_BYTES_MAX;
    if !file.metadata().is_ok_and(is_short) {
        return true;
    }
    let (mut bytes, mut kept) = (vec![0; 1 << 20], 0);
    loop {
        match file.read(&mut bytes[kept..]) {
            Ok(0) => return false,
            Ok(read) => {
                let end = kept + read;
                if has_private_tag(&bytes[..end]) {
                    return true;
                }
                // A tag may continue in the next block.
                kept = end.min(TAG_BYTES_MAX);
                bytes.copy_within(end - kept..end, 0);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return true,
        }
    }
}

/// `<`, spaces, the tag name.
const TAG_BYTES_MAX: usize = 32;

fn has_private_tag(bytes: &[u8]) -> bool {
    const NAME: &[u8] = b"private";
    memchr_iter(b'<', bytes).any(|at| {
        let rest = bytes[at + 1..].trim_ascii_start();
        rest.get(..NAME.len()).is_some_and(|name| name.eq_ignore_ascii_case(NAME))
    })
}

/// The lines of a file, the last one first.
struct Lines {
    file: File,
    /// The offset of `bytes` in the file.
    start: u64,
    /// Bytes read, of which the first `end` are not yet returned.
    bytes: Vec<u8>,
    end: usize,
    read: usize,
}

impl Lines {
    /// Opens the file without blocking on a pipe or device in its place.
    fn open(path: &Path) -> Option<Self> {
        let file = OpenOptions::new().read(true).no_wait().open(path).ok()?;
        let found = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
        Some(Self { file, start: found.len(), bytes: Vec::new(), end: 0, read: 0 })
    }

    fn next_back(&mut self) -> Option<&[u8]> {
        loop {
            if let Some(newline) = memrchr(b'\n', &self.bytes[..self.end]) {
                let line = newline + 1..self.end;
                self.end = newline;
                return Some(&self.bytes[line]);
            }
            if self.start == 0 {
                let line = 0..std::mem::take(&mut self.end);
                return (!line.is_empty()).then(|| &self.bytes[line]);
            }
            self.read_before()?;
        }
    }

    /// Reads the previous block and puts it before the rest.
    fn read_before(&mut self) -> Option<()> {
        // A line longer than one block is read in increasingly large ones, so that it is copied
        // less often.
        let wanted = BLOCK_BYTES.max(self.end).min(self.start as usize);
        self.read += wanted;
        if self.read > BYTES_MAX {
            return None;
        }
        let mut block = vec![0; wanted + self.end];
        self.file.read_exact_at(&mut block[..wanted], self.start - wanted as u64).ok()?;
        block[wanted..].copy_from_slice(&self.bytes[..self.end]);
        self.start -= wanted as u64;
        self.end = block.len();
        self.bytes = block;
        Some(())
    }
}

#[cfg(test)]
mod tests;
