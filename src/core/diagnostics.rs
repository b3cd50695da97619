//! Diagnostics: `logs/claude-mem.log` for hooks, which must not write to stderr, and
//! `logs/worker.log`.
//!
//! Writing a line never fails the caller: a full disk must not cause a second error.

use std::{
    fmt::Display,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::{
    os::{CreateOptionsExt as _, OpenOptionsExt as _},
    paths::create_private,
    safe_text::is_unsafe,
};
use claude_mem_privacy::{Policy, redact_text};

/// Rotated at this size, so that all files together stay below 4 MiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// How many rotated files are kept; `claude-mem.log.1` is the newest.
const ROTATED_MAX: u32 = 3;
/// Longer lines are cut: a line may quote the output of another program.
const LINE_BYTES_MAX: usize = 4096;

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// An operation failed.
    Error,
    /// An operation failed, with a fallback.
    Warn,
    /// A notable event.
    Info,
    /// A step of the work, to find the cause of a problem.
    Debug,
    /// A detail of a step.
    Trace,
}

impl Level {
    fn label(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }

    /// The level of a line of a log.
    pub fn of_line(line: &str) -> Option<Self> {
        let label = line.split(' ').nth(1)?;
        let all = [Self::Error, Self::Warn, Self::Info, Self::Debug, Self::Trace];
        all.into_iter().find(|level| level.label() == label)
    }
}

/// Appends one line to `logs/claude-mem.log`, with one `write`, so that lines of parallel hooks do
/// not mix.
pub fn record(data: &Path, level: Level, message: impl Display) {
    // A message may quote a path, a response or an input.
    let message = redact_text(&message.to_string(), Policy::default()).text;
    let line = line(level, &message);
    let file = data.join("logs/claude-mem.log");
    // There is no other place to report a failure to.
    let _ = append(&file, &line);
}

/// The worker's log.
pub fn worker_log(data: &Path) -> PathBuf {
    data.join("logs/worker.log")
}

/// Appends one line to the worker's log. Warnings and errors also go to `logs/claude-mem.log`.
pub fn record_worker(data: &Path, level: Level, message: impl Display) {
    let message = redact_text(&message.to_string(), Policy::default()).text;
    let _ = append(&worker_log(data), &line(level, &message));
    if level <= Level::Warn {
        record(data, level, format_args!("worker: {message}"));
    }
}

fn append(file: &Path, line: &str) -> std::io::Result<()> {
    if fs::metadata(file).is_ok_and(|found| found.len() + line.len() as u64 > FILE_BYTES_MAX) {
        rotate(file);
    }
    let mut opened = match open(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            create_private(file.parent().unwrap_or(file))?;
            open(file)?
        }
        other => other?,
    };
    opened.write_all(line.as_bytes())
}

/// Opens without waiting: if the file is a pipe, a normal open blocks until it has a reader.
fn open(file: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().append(true).create(true).owner_only().no_wait().open(file)
}

/// Two processes may rotate at the same time. A newer file then replaces an older one, which only
/// loses old lines.
fn rotate(file: &Path) {
    for age in (1..ROTATED_MAX).rev() {
        let _ = fs::rename(aged(file, age), aged(file, age + 1));
    }
    let _ = fs::rename(file, aged(file, 1));
}

fn aged(file: &Path, age: u32) -> PathBuf {
    file.with_extension(format!("log.{age}"))
}

/// `2026-11-16T04:07:57.123456Z WARN [4711] message`, with line breaks and control characters
/// escaped so that a message can neither forge a second line nor move a terminal's cursor.
fn line(level: Level, message: &str) -> String {
    let now = jiff::Timestamp::now();
    let mut line = format!("{now:.6} {} [{}] ", level.label(), std::process::id());
    for character in message.chars() {
        if line.len() > LINE_BYTES_MAX {
            line.push('…');
            break;
        }
        if character == '\n' || character == '\t' || is_unsafe(character) {
            line.extend(character.escape_default());
        } else {
            line.push(character);
        }
    }
    line.push('\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(data: &Path) -> String {
        fs::read_to_string(data.join("logs/claude-mem.log")).unwrap()
    }

    #[test]
    fn one_message_is_always_one_line() {
        let data = tempfile::tempdir().unwrap();
        record(data.path(), Level::Warn, "first\nsecond\x1b[2J");
        record(data.path(), Level::Error, "x".repeat(100_000));
        let text = written(data.path());
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains(" WARN [") && lines[0].ends_with(r"first\nsecond\u{1b}[2J"));
        assert!(lines[1].contains(" ERROR [") && lines[1].ends_with("x…"));
        assert!(lines.len() == 2 && lines[1].len() < LINE_BYTES_MAX + 100);
    }

    #[test]
    fn a_full_file_is_rotated_and_the_oldest_deleted() {
        let data = tempfile::tempdir().unwrap();
        let logs = data.path().join("logs");
        record(data.path(), Level::Warn, "begin");
        for generation in 0..6 {
            fs::write(logs.join("claude-mem.log"), vec![b'0' + generation; 1024 * 1024]).unwrap();
            record(data.path(), Level::Warn, "next");
        }
        let mut names: Vec<_> =
            fs::read_dir(&logs).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        let kept = ["claude-mem.log", "claude-mem.log.1", "claude-mem.log.2", "claude-mem.log.3"];
        assert_eq!(names, kept);
        assert_eq!(written(data.path()).lines().count(), 1);
        assert!(fs::read(logs.join("claude-mem.log.1")).unwrap().starts_with(b"5"));
    }

    #[test]
    fn an_unwritable_log_is_ignored() {
        let data = tempfile::tempdir().unwrap();
        fs::write(data.path().join("logs"), "a file where the directory should be").unwrap();
        record(data.path(), Level::Error, "lost");
        record(Path::new("/proc/nowhere"), Level::Error, "lost too");
    }

    #[test]
    fn a_pipe_in_the_logs_place_does_not_block() {
        let data = tempfile::tempdir().unwrap();
        fs::create_dir(data.path().join("logs")).unwrap();
        let pipe = data.path().join("logs/claude-mem.log");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        record(data.path(), Level::Error, "never read");
    }
}
