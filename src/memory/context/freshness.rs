//! Checks whether the files of a memory changed since.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    fs,
    io::{Read, Seek, SeekFrom},
    path::Path,
    time::{Duration, Instant, UNIX_EPOCH},
};

/// State of a file compared with an earlier time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// Unchanged, as far as known.
    Same,
    /// Modified since.
    Changed,
    /// Deleted or moved.
    Gone,
    /// Outside the project, or not checked in time.
    Unknown,
}

/// The files of a project, each checked once.
#[derive(Debug)]
pub(crate) struct Files<'a> {
    root: &'a Path,
    is_root_there: bool,
    /// Times at which git wrote unmodified files.
    rewritten: Vec<Rewrite>,
    /// By path as the memories name it.
    seen: RefCell<HashMap<String, Option<u64>>>,
    looks: Cell<u32>,
    /// Time spent on checks.
    spent: Cell<Duration>,
}

/// A clone or a checkout, from the reflog.
#[derive(Debug, Clone, Copy)]
struct Rewrite {
    at_s: u64,
    /// No files existed before this time.
    is_clone: bool,
}

/// A check costs some microseconds; on a slow disk the rest is skipped.
const TIME_MAX: Duration = Duration::from_millis(4);
const LOOKS_MAX: u32 = 400;
/// Minimum number of checks, even after the time limit: a busy machine may lose milliseconds.
const LOOKS_MIN: u32 = 16;
/// A file is written shortly after its event, and the reflog shortly after the files.
const SLACK_S: u64 = 5;
const REFLOG_BYTES: u64 = 16 << 10;

impl<'a> Files<'a> {
    pub(crate) fn of(root: &'a Path, common_dir: Option<&Path>) -> Self {
        Self {
            root,
            is_root_there: root.is_dir(),
            rewritten: common_dir.map(rewrites).unwrap_or_default(),
            seen: RefCell::default(),
            looks: Cell::default(),
            spent: Cell::default(),
        }
    }

    /// State of `file` compared with `at_us`.
    pub(crate) fn state(&self, file: &str, at_us: u64) -> FileState {
        match self.written_s(file) {
            None => FileState::Unknown,
            Some(None) => FileState::Gone,
            Some(Some(written_s)) if written_s <= at_us / 1_000_000 + SLACK_S => FileState::Same,
            Some(Some(written_s)) if self.is_by_git(written_s) => FileState::Same,
            Some(Some(_)) => FileState::Changed,
        }
    }

    /// Modification time in seconds since 1970; `Some(None)` if the file does not exist, `None` if
    /// it is outside the project or there is no time to look.
    #[expect(
        clippy::option_option,
        reason = "not looked at, not there, and a time are three answers"
    )]
    fn written_s(&self, file: &str) -> Option<Option<u64>> {
        if let Some(known) = self.seen.borrow().get(file) {
            return Some(*known);
        }
        let path = self.root.join(file);
        if !self.is_root_there || !path.starts_with(self.root) || file.contains("..") {
            return None;
        }
        let looks = self.looks.get();
        if looks >= LOOKS_MAX || (looks >= LOOKS_MIN && self.spent.get() > TIME_MAX) {
            return None;
        }
        let began = Instant::now();
        let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        let written_s = modified
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .map(|since| since.as_secs());
        self.looks.set(looks + 1);
        self.spent.set(self.spent.get() + began.elapsed());
        self.seen.borrow_mut().insert(file.to_owned(), written_s);
        Some(written_s)
    }

    /// Clones and checkouts write files without changing them.
    fn is_by_git(&self, written_s: u64) -> bool {
        self.rewritten.iter().any(|rewrite| {
            let from_s = if rewrite.is_clone { 0 } else { rewrite.at_s.saturating_sub(SLACK_S) };
            (from_s..=rewrite.at_s + SLACK_S).contains(&written_s)
        })
    }
}

/// The latest clones and checkouts in the reflog. A pull or a rebase does change files.
fn rewrites(common_dir: &Path) -> Vec<Rewrite> {
    let mut text = Vec::new();
    let read = fs::File::open(common_dir.join("logs/HEAD")).and_then(|mut log| {
        let len = log.metadata()?.len();
        log.seek(SeekFrom::Start(len.saturating_sub(REFLOG_BYTES)))?;
        log.take(REFLOG_BYTES).read_to_end(&mut text)
    });
    if read.is_err() {
        return Vec::new();
    }
    String::from_utf8_lossy(&text).lines().filter_map(rewrite).collect()
}

/// `old new Name <mail> seconds zone<tab>clone: from …`
fn rewrite(line: &str) -> Option<Rewrite> {
    let (who, what) = line.split_once('\t')?;
    let is_clone = what.starts_with("clone:");
    if !is_clone && !what.starts_with("checkout:") {
        return None;
    }
    let at_s = who.rsplit(' ').nth(1)?.parse().ok()?;
    Some(Rewrite { at_s, is_clone })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_US: u64 = 86_400_000_000;

    fn now_us() -> u64 {
        UNIX_EPOCH.elapsed().unwrap().as_micros() as u64
    }

    #[test]
    fn a_file_is_unchanged_changed_deleted_or_foreign() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("here.rs"), "x").unwrap();
        let files = Files::of(dir.path(), None);
        assert_eq!(files.state("here.rs", now_us()), FileState::Same);
        assert_eq!(files.state("here.rs", now_us() - DAY_US), FileState::Changed);
        assert_eq!(files.state("gone.rs", now_us()), FileState::Gone);
        assert_eq!(files.state("/etc/hostname", now_us()), FileState::Unknown);
        assert_eq!(files.state("../elsewhere", now_us()), FileState::Unknown);
    }

    #[test]
    fn files_written_by_git_clone_or_switch_are_not_changed() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("here.rs"), "x").unwrap();
        let log = |what: &str| {
            let git = dir.path().join(".git/logs");
            fs::create_dir_all(&git).unwrap();
            let line =
                format!("0 1 Ada <ada@example.org> {} +0100\t{what}\n", now_us() / 1_000_000);
            fs::write(git.join("HEAD"), line).unwrap();
            let git = dir.path().join(".git");
            Files::of(dir.path(), Some(&git)).state("here.rs", now_us() - DAY_US)
        };
        assert_eq!(log("clone: from example.org/x"), FileState::Same);
        assert_eq!(log("checkout: moving from a to b"), FileState::Same);
        assert_eq!(log("pull: Fast-forward"), FileState::Changed);
    }
}
