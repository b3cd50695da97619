//! Commits that a command made.

use std::fmt;

use claude_mem_memory::shell_commits::reported_commit;

use super::purposes::is_commit;
use super::shell::Step;
use super::text::clip;
use crate::turn_prompt::short_hash;

/// A commit, shown as `1a2b3c4 “Subject”`.
#[derive(Debug, Clone)]
pub(super) struct Commit {
    /// The short hash; empty if unknown.
    hash: String,
    pub(super) subject: String,
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let space = if self.hash.is_empty() { "" } else { " " };
        write!(f, "{}{space}“{}”", self.hash, self.subject)
    }
}

/// The commits of a command, each with the hash that git printed, or else the HEAD after the
/// command.
pub(super) fn commits(steps: &[Step], printed: &str, head: &str) -> Vec<Commit> {
    let Some(step) = steps.iter().find(|step| is_commit(&step.words)) else { return Vec::new() };
    let commit = |id: &str, subject: &str| Commit {
        hash: short_hash(id).into(),
        subject: subject_of(subject),
    };
    let reported = printed.lines().filter_map(reported_commit);
    let reported: Vec<Commit> = reported.map(|made| commit(&made.id, &made.subject)).collect();
    if !reported.is_empty() {
        return reported;
    }
    let is_message = |word: &str| {
        word == "--message"
            || word.starts_with('-') && !word.starts_with("--") && word.ends_with('m')
    };
    let flag = step.words.iter().position(|word| is_message(word));
    let message = flag.and_then(|at| step.words.get(at + 1)).map_or("", String::as_str);
    let mut lines = message.lines().map(str::trim);
    let subject = lines.find(|line| !line.is_empty() && !line.starts_with("$(cat"));
    subject.map(|subject| commit(head, subject)).into_iter().collect()
}

/// Removes trailers that git joins to a subject without a blank line: `Fix carts Signed-off-by:
/// Ana`.
fn subject_of(subject: &str) -> String {
    let is_trailer = |word: &str| {
        let name = word.strip_suffix(':').unwrap_or_default();
        name.contains('-')
            && name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let words = subject.split_whitespace();
    let kept: Vec<&str> = words
        .enumerate()
        .take_while(|(at, word)| *at == 0 || !is_trailer(word))
        .map(|(_, word)| word)
        .collect();
    clip(&kept.join(" "), 120)
}
