//! Runs `git blame` for one line. Its output is untrusted.

use std::{ffi::OsStr, path::Path};

use claude_mem_capture::project::ProjectId;
use claude_mem_core::environment::Environment;

use crate::git::git;

/// The commit of a line, by `git blame`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlamedLine {
    /// `None` if the line is not committed.
    pub(super) commit: Option<BlamedCommit>,
    /// The name of the file in that commit, relative to the top folder.
    pub(super) path: String,
}

/// The commit that added a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BlamedCommit {
    pub(super) id: String,
    pub(super) author: String,
    pub(super) subject: String,
    /// In microseconds since 1970.
    pub(super) committed_us: u64,
}

/// Runs `git blame` for a line of a file. The error is for the user, in one line.
pub(super) fn blame(
    environment: &Environment,
    project: &ProjectId,
    file: &Path,
    line: usize,
) -> Result<BlamedLine, String> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else {
        return Err("it is not a file".into());
    };
    let range = format!("{line},{line}");
    let arguments = ["blame", "--porcelain", "--no-textconv", "-L", &range, "--"].map(OsStr::new);
    let printed = git(environment, project, folder, &[&arguments[..], &[name]].concat())?;
    parse(&printed).ok_or_else(|| "git blame printed nothing readable".into())
}

/// Reads the porcelain format: the commit, headers, and the line after a tab.
fn parse(porcelain: &str) -> Option<BlamedLine> {
    let mut lines = porcelain.lines();
    let id = lines.next()?.split(' ').next()?;
    let is_hash = matches!(id.len(), 40 | 64) && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hash {
        return None;
    }
    let (mut author, mut subject, mut path, mut committed_us) = ("", "", "", 0);
    for header in lines.take_while(|line| !line.starts_with('\t')) {
        match header.split_once(' ') {
            Some(("author", name)) => author = name,
            Some(("summary", text)) => subject = text,
            Some(("filename", name)) => path = name,
            Some(("committer-time", seconds)) => {
                committed_us = seconds.parse::<u64>().ok()?.saturating_mul(1_000_000);
            }
            _ => {}
        }
    }
    let is_committed = id.bytes().any(|byte| byte != b'0');
    let commit = is_committed.then(|| BlamedCommit {
        id: id.to_ascii_lowercase(),
        author: author.to_owned(),
        subject: subject.to_owned(),
        // Limited, because a time far in the future would overflow sums.
        committed_us: committed_us.min(u64::from(u32::MAX) * 1_000_000),
    });
    Some(BlamedLine { commit, path: path.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_porcelain_format_is_read_up_to_the_line() {
        let id = "a".repeat(40);
        let text = format!(
            "{id} 3 5 1\nauthor Ada L\nauthor-time 1\ncommitter-time 1700000000\n\
             summary Round once\nboundary\nfilename src/old.rs\n\tauthor of this line\n"
        );
        let commit = BlamedCommit {
            id,
            author: "Ada L".into(),
            subject: "Round once".into(),
            committed_us: 1_700_000_000_000_000,
        };
        let line = BlamedLine { commit: Some(commit), path: "src/old.rs".into() };
        assert_eq!(parse(&text), Some(line));
        let zeros =
            format!("{} 1 1 1\ncommitter-time 1700000000\nfilename a\n\tx\n", "0".repeat(40));
        assert_eq!(parse(&zeros), Some(BlamedLine { commit: None, path: "a".into() }));
    }

    #[test]
    fn other_output_is_not_parsed_as_blame() {
        for text in
            ["", "fatal: no", "zz 1 1 1\n\tx", &format!("{} 1\ncommitter-time x", "a".repeat(40))]
        {
            assert_eq!(parse(text), None, "{text}");
        }
        let late = format!("{} 1 1 1\ncommitter-time {}\n", "a".repeat(40), u64::MAX);
        assert!(parse(&late).unwrap().commit.unwrap().committed_us < u64::MAX / 2);
    }
}
