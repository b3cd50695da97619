//! The branch and commit that are checked out, read from git's files.
//!
//! A hook runs for every tool use, so this takes two short reads, three if the branch is packed.
//! The files are untrusted: none is waited for, none is read beyond a limit, and only names below
//! `refs/` are opened. A repository with reftables keeps its branches in another format. Its `HEAD`
//! names a branch that is not valid, so both fields stay empty.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
};

use claude_mem_core::os::OpenOptionsExt as _;

/// The branch and commit that are checked out. A field that cannot be read is empty.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitHead {
    /// Without `refs/heads/`; empty if HEAD is detached.
    pub branch: String,
    /// In hex; empty before the first commit.
    pub commit: String,
}

/// `HEAD` and branches are one line. A longer file was not written by git.
const REF_BYTES_MAX: usize = 4096;
/// Branches come before remotes and tags in `packed-refs`, so its beginning is enough.
const PACKED_BYTES_MAX: u64 = 1 << 20;
/// A reference can name another one. Git stops at five, too.
const LINKS_MAX: usize = 5;

/// The content of `HEAD` or of a branch.
enum Target {
    Ref(String),
    Commit(String),
}

impl GitHead {
    /// Reads the `HEAD` in `git_dir`, and its branch in `common_dir`.
    pub(super) fn read(git_dir: &Path, common_dir: &Path) -> Self {
        let head = git_dir.join("HEAD");
        let mut target = loose(&head).or_else(|| linked(&head));
        let branch = match &target {
            Some(Target::Ref(name)) => name.strip_prefix("refs/heads/").unwrap_or_default(),
            _ => "",
        };
        let branch = branch.to_owned();
        for _ in 0..LINKS_MAX {
            target = match target {
                Some(Target::Commit(commit)) => return Self { branch, commit },
                Some(Target::Ref(name)) => {
                    loose(&common_dir.join(&name)).or_else(|| packed(common_dir, &name))
                }
                None => break,
            };
        }
        Self { branch, commit: String::new() }
    }
}

/// Reads a file that contains one reference.
fn loose(file: &Path) -> Option<Target> {
    let mut opened = regular(OpenOptions::new().read(true).no_wait_or_follow().open(file).ok()?)?;
    let mut bytes = [0; REF_BYTES_MAX];
    let len = opened.read(&mut bytes).ok().filter(|len| *len < REF_BYTES_MAX)?;
    let text = str::from_utf8(&bytes[..len]).ok()?.trim_ascii_end();
    match text.strip_prefix("ref:") {
        Some(name) => reference(name.trim_ascii_start()),
        None => commit(text),
    }
}

/// A symbolic link to a branch, which old versions of git wrote instead of `ref:`.
fn linked(head: &Path) -> Option<Target> {
    reference(fs::read_link(head).ok()?.to_str()?)
}

/// Looks a reference up in `packed-refs`.
fn packed(common_dir: &Path, name: &str) -> Option<Target> {
    let file = common_dir.join("packed-refs");
    let opened = regular(OpenOptions::new().read(true).no_wait().open(file).ok()?)?;
    let mut lines = BufReader::new(opened.take(PACKED_BYTES_MAX));
    let mut line = Vec::new();
    let mut is_sorted = false;
    while lines.read_until(b'\n', &mut line).ok()? > 0 {
        let text = line.strip_suffix(b"\n")?.trim_ascii_end();
        if text.starts_with(b"#") {
            is_sorted = text.ends_with(b" sorted");
        } else if let Some(space) = text.iter().position(|byte| *byte == b' ') {
            match text[space + 1..].cmp(name.as_bytes()) {
                std::cmp::Ordering::Equal => return commit(str::from_utf8(&text[..space]).ok()?),
                std::cmp::Ordering::Greater if is_sorted => return None,
                _ => {}
            }
        }
        line.clear();
    }
    None
}

fn regular(file: File) -> Option<File> {
    file.metadata().ok()?.is_file().then_some(file)
}

/// A name below `refs/` that git accepts. It has no part that leads elsewhere, and no control
/// character.
fn reference(name: &str) -> Option<Target> {
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.ends_with('.')
            && !part.ends_with(".lock")
            && !part.contains("..")
            && !part.contains("@{")
            && !part.contains(|c: char| c.is_control() || " ~^:?*[\\".contains(c))
    };
    let is_name = name.starts_with("refs/") && name.split('/').all(is_part);
    is_name.then(|| Target::Ref(name.to_owned()))
}

/// A SHA-1 or SHA-256 in hex.
fn commit(hex: &str) -> Option<Target> {
    let is_hash = matches!(hex.len(), 40 | 64) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hash.then(|| Target::Commit(hex.to_ascii_lowercase()))
}
