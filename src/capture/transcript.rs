//! What was said last, read from the end of the client's own record of a session.
//!
//! For clients that do not say it themselves. The file is JSON lines, of any size, written by another
//! program while we read: it is read backwards in blocks, up to a bound, and lines that make no sense
//! are passed over.

use std::{
    fs::{File, OpenOptions},
    path::Path,
};

use claude_mem_events::StopScope;
use memchr::memrchr;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::payload;
use claude_mem_core::os::{FileExt as _, Opening as _};
use claude_mem_privacy::{Policy, clean_text};

/// How much is read at a time, and at most. One answer is below a megabyte, and what comes after it in
/// the file is mostly small; a line longer than this is not waited for.
const BLOCK_BYTES: usize = 64 << 10;
const BYTES_MAX: usize = 8 << 20;

/// What both sides said last.
#[derive(Debug, Default, PartialEq)]
pub(super) struct LastWords {
    pub(super) user: String,
    pub(super) assistant: String,
}

/// One line, as far as it matters here.
#[derive(Deserialize)]
struct Row<'a> {
    #[serde(rename = "type", default)]
    kind: &'a str,
    #[serde(rename = "isSidechain", default)]
    is_sidechain: bool,
    #[serde(rename = "isMeta", default)]
    is_meta: bool,
    #[serde(borrow, default)]
    message: Option<Message<'a>>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(rename = "type", default)]
    kind: &'a str,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

/// The last words in this transcript; those that cannot be found are empty. A subagent's own file is one
/// side chain; in the main file a side chain is somebody else's conversation.
///
/// An answer from before the last prompt counts only once the prompt it answers has been seen, because
/// what was said in a private turn is private.
pub(super) fn last_words(path: &Path, scope: StopScope) -> LastWords {
    let mut words = LastWords::default();
    let Some(mut lines) = Lines::open(path) else { return words };
    let mut is_vouched_for = true;
    while let Some(line) = lines.next_back() {
        let Some((speaker, said)) = read_row(line, scope) else { continue };
        match speaker {
            Speaker::Assistant if words.assistant.is_empty() => {
                is_vouched_for = words.user.is_empty();
                words.assistant = said;
            }
            Speaker::Assistant => {}
            Speaker::User => {
                let is_private = clean_text(&said, Policy::default()).wholly_private;
                if words.user.is_empty() {
                    words.user = said;
                }
                if !words.assistant.is_empty() {
                    is_vouched_for = !is_private;
                    break;
                }
            }
        }
    }
    if !is_vouched_for {
        words.assistant.clear();
    }
    words
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Speaker {
    User,
    Assistant,
}

/// Who said what in this line, if anybody said anything.
fn read_row(line: &[u8], scope: StopScope) -> Option<(Speaker, String)> {
    let row: Row<'_> = serde_json::from_slice(line).ok()?;
    if row.is_meta || row.is_sidechain && scope == StopScope::Turn {
        return None;
    }
    let speaker = match row.kind {
        "assistant" => Speaker::Assistant,
        "user" => Speaker::User,
        _ => return None,
    };
    let said = spoken(row.message?.content?.get());
    (!said.trim().is_empty()).then_some((speaker, said))
}

/// The words in a message's content: all of a string, the text blocks of a list. Nothing if it is only
/// tools and their results.
fn spoken(content: &str) -> String {
    if content.starts_with('"') {
        return payload::text(content).into_owned();
    }
    let blocks: Vec<Block<'_>> = serde_json::from_str(content).unwrap_or_default();
    let texts: Vec<_> = blocks
        .iter()
        .filter(|block| block.kind == "text")
        .filter_map(|block| Some(payload::text(block.text?.get())))
        .collect();
    texts.join("\n")
}

/// The lines of a file, the last one first.
struct Lines {
    file: File,
    /// Where the bytes in hand begin in the file.
    start: u64,
    /// Bytes in hand, of which `end` are not yet given.
    bytes: Vec<u8>,
    end: usize,
    read: usize,
}

impl Lines {
    /// A pipe or device in the file's place is not waited for.
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

    /// Puts the block before in front of what is left.
    fn read_before(&mut self) -> Option<()> {
        // A line that is longer than one block is read in ever larger ones, to move it less often.
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
mod tests {
    use std::{fs, io::Write};

    use super::*;

    fn said(kind: &str, content: &str) -> String {
        format!("{{\"type\":\"{kind}\",\"message\":{{\"content\":{content}}}}}\n")
    }

    fn read(text: &[u8]) -> LastWords {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.jsonl");
        fs::write(&file, text).unwrap();
        last_words(&file, StopScope::Turn)
    }

    fn words(user: &str, assistant: &str) -> LastWords {
        LastWords { user: user.into(), assistant: assistant.into() }
    }

    #[test]
    fn tools_side_chains_and_nonsense_are_passed_over() {
        let text = said("user", r#""fix \"it\"""#)
            + &said(
                "assistant",
                r#"[{"type":"text","text":"Done."},{"type":"text","text":"Bye."}]"#,
            )
            + &said("assistant", r#"[{"type":"tool_use","name":"Bash","input":{}}]"#)
            + &said("user", r#"[{"type":"tool_result","content":"out"}]"#)
            + "{\"type\":\"assistant\",\"isSidechain\":true,\"message\":{\"content\":\"other\"}}\n"
            + "{\"type\":\"user\",\"isMeta\":true,\"message\":{\"content\":\"meta\"}}\n"
            + "not json\n\n{\"type\":\"assistant\"}\n{\"type\":\"assis";
        assert_eq!(read(text.as_bytes()), words("fix \"it\"", "Done.\nBye."));
        assert_eq!(read(b""), LastWords::default());
        assert_eq!(read(b"\xff\xfe\n\n\n"), LastWords::default());
    }

    #[test]
    fn the_answer_of_a_private_turn_is_not_taken_for_a_later_one() {
        let secret = said("user", "\"<private>x</private>\"") + &said("assistant", "\"hush\"");
        let later = said("user", "\"go on\"") + &said("assistant", "[{\"type\":\"tool_use\"}]");
        assert_eq!(read((secret + &later).as_bytes()), words("go on", ""));
        let public = said("user", "\"hi\"") + &said("assistant", "\"hello\"");
        assert_eq!(read((public + &later).as_bytes()), words("go on", "hello"));
    }

    #[test]
    fn lines_across_blocks_are_read_whole_and_behind_the_bound_nothing() {
        let long = "x".repeat(3 * BLOCK_BYTES + 17);
        let before = said("user", "\"u\"") + &said("assistant", &format!("\"{long}\""));
        let noise = "{\"type\":\"system\"}\n".repeat(20_000);
        let mut text = before + &noise;
        assert_eq!(read(text.as_bytes()), words("u", &long));
        text.push_str(&"y".repeat(BYTES_MAX));
        assert_eq!(read(text.as_bytes()), LastWords::default());
    }

    #[test]
    fn a_gigabyte_costs_no_more_than_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut file = File::create(&path).unwrap();
        // A hole: a gigabyte to whoever reads it, nothing to the disk.
        file.set_len(1 << 30).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
        write!(file, "\n{}{}", said("user", "\"u\""), said("assistant", "\"a\"")).unwrap();
        assert_eq!(last_words(&path, StopScope::Turn), words("u", "a"));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [dir.path(), &pipe, Path::new("/dev/zero"), Path::new("/nowhere")] {
            assert_eq!(last_words(path, StopScope::Turn), LastWords::default());
        }
    }
}
