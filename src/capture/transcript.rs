//! The last messages of a session, read from the end of the client's own transcript.
//!
//! For clients whose stop event does not carry them. The file is JSON lines, of any size, written by another
//! program while we read: it is read backwards in blocks, up to a bound, and lines that make no sense are
//! skipped. What a line means is the client's knowledge; which messages may be used is decided here.

use std::{
    fs::{File, OpenOptions},
    path::Path,
};

use memchr::memrchr;

use claude_mem_core::os::{FileExt as _, Opening as _};
use claude_mem_privacy::{Policy, clean_text};

/// How much is read at a time, and at most. One answer is below a megabyte, and what comes after it in
/// the file is mostly small; a longer line is given up.
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
pub(super) struct Last {
    pub(super) user: String,
    pub(super) assistant: String,
}

/// The last messages in this transcript, of which `read_line` understands one line.
///
/// An answer from before the last prompt counts only once the prompt it answers has been seen, because
/// what was said in a private turn is private.
pub(super) fn last_messages(path: &Path, read_line: impl Fn(&[u8]) -> Option<Message>) -> Last {
    let mut last = Last::default();
    let Some(mut lines) = Lines::open(path) else { return last };
    let mut is_public = true;
    while let Some(line) = lines.next_back() {
        let message = read_line(line).filter(|message| !message.text.trim().is_empty());
        let Some(Message { speaker, text }) = message else { continue };
        match speaker {
            Speaker::Assistant if last.assistant.is_empty() => {
                is_public = last.user.is_empty();
                last.assistant = text;
            }
            Speaker::Assistant => {}
            Speaker::User => {
                let is_private = clean_text(&text, Policy::default()).wholly_private;
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
    /// Does not wait for a pipe or device in place of the file.
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

    /// Reads the block before and puts it in front of the rest.
    fn read_before(&mut self) -> Option<()> {
        // A line longer than one block is read in ever larger ones, so that it is copied less often.
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

    use claude_mem_events::StopScope;

    use super::*;
    use crate::clients::CLAUDE_CODE;

    fn last_in(path: &Path) -> Last {
        let read_line = CLAUDE_CODE.transcript_line.unwrap();
        last_messages(path, |line| read_line(line, StopScope::Turn))
    }

    fn said(kind: &str, content: &str) -> String {
        format!("{{\"type\":\"{kind}\",\"message\":{{\"content\":{content}}}}}\n")
    }

    fn read(text: &[u8]) -> Last {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t.jsonl");
        fs::write(&file, text).unwrap();
        last_in(&file)
    }

    fn messages(user: &str, assistant: &str) -> Last {
        Last { user: user.into(), assistant: assistant.into() }
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
        assert_eq!(read(text.as_bytes()), messages("fix \"it\"", "Done.\nBye."));
        assert_eq!(read(b""), Last::default());
        assert_eq!(read(b"\xff\xfe\n\n\n"), Last::default());
    }

    #[test]
    fn the_answer_of_a_private_turn_is_not_taken_for_a_later_one() {
        let secret = said("user", "\"<private>x</private>\"") + &said("assistant", "\"hush\"");
        let later = said("user", "\"go on\"") + &said("assistant", "[{\"type\":\"tool_use\"}]");
        assert_eq!(read((secret + &later).as_bytes()), messages("go on", ""));
        let public = said("user", "\"hi\"") + &said("assistant", "\"hello\"");
        assert_eq!(read((public + &later).as_bytes()), messages("go on", "hello"));
    }

    #[test]
    fn lines_across_blocks_are_read_whole_and_behind_the_bound_nothing() {
        let long = "x".repeat(3 * BLOCK_BYTES + 17);
        let before = said("user", "\"u\"") + &said("assistant", &format!("\"{long}\""));
        let noise = "{\"type\":\"system\"}\n".repeat(20_000);
        let mut text = before + &noise;
        assert_eq!(read(text.as_bytes()), messages("u", &long));
        text.push_str(&"y".repeat(BYTES_MAX));
        assert_eq!(read(text.as_bytes()), Last::default());
    }

    #[test]
    fn a_gigabyte_costs_no_more_than_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.jsonl");
        let mut file = File::create(&path).unwrap();
        // A sparse file: a gigabyte to the reader, no block on the disk.
        file.set_len(1 << 30).unwrap();
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).unwrap();
        write!(file, "\n{}{}", said("user", "\"u\""), said("assistant", "\"a\"")).unwrap();
        assert_eq!(last_in(&path), messages("u", "a"));
    }

    #[test]
    fn what_is_no_file_is_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [dir.path(), &pipe, Path::new("/dev/zero"), Path::new("/nowhere")] {
            assert_eq!(last_in(path), Last::default());
        }
    }
}
