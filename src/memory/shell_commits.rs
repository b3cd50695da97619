//! Reads recorded shell commands: the command, its error, and its commits.

use claude_mem_events::{Envelope, ToolUsed};
use serde_json::Value;

/// A commit as git prints it: `[main 1a2b3c4] Subject`.
#[derive(Debug, PartialEq, Eq)]
pub struct Commit {
    /// Its hash, usually the short one.
    pub id: String,
    /// Empty if HEAD was detached.
    pub branch: String,
    /// The first line of its message.
    pub subject: String,
}

/// The command in the input of a shell tool.
pub(crate) fn shell_command(input: &str) -> Option<String> {
    let input: Value = serde_json::from_str(input).ok()?;
    Some(input["command"].as_str()?.trim().to_owned()).filter(|command| !command.is_empty())
}

/// Output of build tools before any error.
const PROGRESS: [&str; 14] = [
    "Blocking ",
    "Building ",
    "Checking ",
    "Compiling ",
    "Documenting ",
    "Downloaded ",
    "Downloading ",
    "Finished ",
    "Fresh ",
    "Installing ",
    "Locking ",
    "Resolving ",
    "Running ",
    "Updating ",
];

/// The first informative line of an error. Claude Code puts `Exit code 1` before the output.
pub(crate) fn first_error(error: &str) -> String {
    let mut lines = error.lines().map(str::trim).filter(|line| {
        let is_progress = PROGRESS.iter().any(|start| line.starts_with(start));
        !line.is_empty() && !line.starts_with("Exit code ") && !is_progress
    });
    lines.next().unwrap_or_else(|| error.trim().lines().next().unwrap_or_default()).to_owned()
}

/// The commits of a command, as printed by git. After a quiet `git commit`, the new HEAD; in an
/// imported transcript, which has no HEAD, a commit with the subject of the command.
pub(crate) fn commits(
    command: &str,
    used: &ToolUsed,
    envelope: &Envelope,
    head_before: &str,
) -> Vec<Commit> {
    if !command.split_whitespace().any(|word| word == "git") {
        return Vec::new();
    }
    let printed = printed(used);
    let made: Vec<Commit> = printed.lines().filter_map(reported_commit).collect();
    let arguments = commit_arguments(command).filter(|_| made.is_empty());
    let Some(arguments) = arguments else { return made };
    let subject = subject(arguments).unwrap_or_default().to_owned();
    let branch = envelope.branch.clone();
    let head = envelope.commit.as_str();
    if head.is_empty() {
        let is_nothing = printed.contains("nothing to commit") || printed.contains(" to commit (");
        if used.has_failed || is_nothing {
            return Vec::new();
        }
        // `git log --oneline` often follows.
        let lines = printed.lines().filter_map(|line| line.split_once(' '));
        let mut ids = lines.filter(|(id, rest)| is_short_hash(id) && *rest == subject);
        let id = ids.next().map(|(id, _)| id.to_owned()).unwrap_or_default();
        return vec![Commit { id, branch, subject }];
    }
    if head_before.is_empty() || head_before == head {
        return Vec::new();
    }
    // The length of hashes that git prints in most repositories.
    let id = head.chars().take(7).collect();
    vec![Commit { id, branch, subject }]
}

/// What follows `git commit` in a command.
fn commit_arguments(command: &str) -> Option<&str> {
    let is_git = |before: &str| {
        let mut words = before.rsplit([' ', '\t']).filter(|word| !word.is_empty());
        // `git -C folder commit`
        let is_option = |word: &str| word.starts_with('-');
        match (words.next(), words.next(), words.next()) {
            (Some(git), ..) if git.ends_with("git") => true,
            (Some(_), Some(option), Some(git)) => is_option(option) && git.ends_with("git"),
            _ => false,
        }
    };
    command.match_indices("commit").find_map(|(at, word)| {
        let (before, after) = (&command[..at], &command[at + word.len()..]);
        let line = before.rsplit(['\n', ';', '&', '|', '(']).next().unwrap_or_default();
        let is_word = line.ends_with([' ', '\t'])
            && !after.starts_with(|c: char| c.is_alphanumeric() || c == '-');
        (is_word && is_git(line)).then_some(after)
    })
}

const MESSAGE_FLAGS: [&str; 6] = [" -m ", " -qm ", " -am ", " -qam ", " -sm ", " --message "];

/// The first line of the message after `-m`, or of a here-document.
fn subject(arguments: &str) -> Option<&str> {
    let document = arguments.find("<<").and_then(|at| {
        let is_message = !arguments[..at].contains('\n');
        is_message.then(|| arguments[at..].split_once('\n')).flatten()
    });
    let text = if let Some((_, text)) = document {
        text.trim_start()
    } else {
        let message = MESSAGE_FLAGS.iter().find_map(|flag| arguments.split_once(flag))?.1;
        match message.chars().next()? {
            quote @ ('"' | '\'') => message[1..].split(quote).next()?,
            _ => message.split_whitespace().next()?,
        }
    };
    text.lines().next().map(str::trim).filter(|line| !line.is_empty())
}

/// Whether a command made this commit, given by its full hash.
pub(crate) fn made_commit(used: &ToolUsed, envelope: &Envelope, id: &str) -> bool {
    let Some(command) = shell_command(&used.input) else { return false };
    // The earlier HEAD is unknown: a quiet `git commit` that leaves HEAD at this commit made it.
    let made = commits(&command, used, envelope, "unknown");
    made.iter().any(|commit| id.starts_with(&commit.id))
}

/// The output of a command. If it failed, the output is in its error.
fn printed(used: &ToolUsed) -> String {
    if used.has_failed {
        return used.error.clone();
    }
    match serde_json::from_str(&used.output) {
        Ok(Value::String(text)) => text,
        Ok(output) => output["stdout"].as_str().unwrap_or_default().to_owned(),
        Err(_) => String::new(),
    }
}

/// Parses a line in which git reports a commit.
pub fn reported_commit(line: &str) -> Option<Commit> {
    let (head, subject) = line.strip_prefix('[')?.split_once("] ")?;
    let (branch, id) = head.rsplit_once(' ')?;
    let branch = branch.strip_suffix(" (root-commit)").unwrap_or(branch);
    let branch = if branch == "detached HEAD" { "" } else { branch };
    let is_branch = !branch.contains(' ');
    (is_short_hash(id) && is_branch).then(|| Commit {
        id: id.to_owned(),
        branch: branch.to_owned(),
        subject: subject.trim().to_owned(),
    })
}

fn is_short_hash(word: &str) -> bool {
    (7..=64).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(
        command: &str,
        stdout: &str,
        head: &str,
        before: &str,
    ) -> Vec<(String, String, String)> {
        let output = serde_json::json!({"stdout": stdout, "stderr": ""}).to_string();
        let used = ToolUsed { output, ..ToolUsed::default() };
        let (branch, commit) = ("fix".to_owned(), head.to_owned());
        let envelope = Envelope { branch, commit, ..Envelope::default() };
        let made = commits(command, &used, &envelope, before).into_iter();
        made.map(|commit| (commit.id, commit.branch, commit.subject)).collect()
    }

    fn commit(id: &str, branch: &str, subject: &str) -> (String, String, String) {
        (id.into(), branch.into(), subject.into())
    }

    #[test]
    fn commits_are_those_that_git_printed() {
        let printed =
            "[main (root-commit) 1a2b3c4] Start\n 1 file changed\n[detached HEAD 5d6e7f8] More";
        let expected = [commit("1a2b3c4", "main", "Start"), commit("5d6e7f8", "", "More")];
        assert_eq!(made("git commit -m x", printed, "", ""), expected);
        assert_eq!(made("make", "[main 1a2b3c4] Start", "", ""), []);
        assert_eq!(made("git log", "[a b c1d2e3f] x\n[main beef] y\n[x] z", "", ""), []);
    }

    #[test]
    fn a_quiet_commit_is_recognized_by_the_new_head() {
        let (before, after) = ("a".repeat(40), "b".repeat(40));
        assert_eq!(
            made("git commit -qm 'Pin it'", "", &after, &before),
            [commit("bbbbbbb", "fix", "Pin it")]
        );
        assert_eq!(made("git commit -qm x || true", "", &before, &before), []);
        assert_eq!(made("git commit -qm x", "", &after, ""), [], "HEAD before it is unknown");
        assert_eq!(made("git checkout -q main", "", &after, &before), []);
    }

    #[test]
    fn a_quiet_commit_in_a_transcript_has_the_subject_of_its_command() {
        let shown = |command: &str, stdout: &str| made(command, stdout, "", "");
        let quiet = "git add -A && git commit -q -m \"Fix: carts\n\nWhy\" && git log --oneline -1";
        assert_eq!(
            shown(quiet, "ok\n1a2b3c4 Fix: carts"),
            [commit("1a2b3c4", "fix", "Fix: carts")]
        );
        assert_eq!(shown(quiet, ""), [commit("", "fix", "Fix: carts")]);
        let document = "cd shop; git -C . commit -q -F - <<'EOF'\nAdd carts\n\nWhy\nEOF";
        assert_eq!(shown(document, ""), [commit("", "fix", "Add carts")]);
        let nested = "git commit -qm \"$(cat <<'EOF'\nAdd carts\nEOF\n)\"";
        assert_eq!(shown(nested, ""), [commit("", "fix", "Add carts")]);
        for (command, stdout) in [
            ("git commit -qm x || true", "nothing to commit, working tree clean"),
            ("git log --grep commit", "1a2b3c4 x"),
            ("git commit-tree x", ""),
            ("echo 'the last commit'; git status", ""),
        ] {
            assert_eq!(shown(command, stdout), [], "{command}");
        }
    }

    #[test]
    fn the_first_informative_line_of_an_error_is_found() {
        assert_eq!(first_error("Exit code 1\n\n  no such test\nmore"), "no such test");
        assert_eq!(first_error("Exit code 1"), "Exit code 1");
        let built = "\
            Exit code 101\n   Compiling shop v0.1.0\n    Checking cart\n\
            error[E0308]: mismatched types";
        assert_eq!(first_error(built), "error[E0308]: mismatched types");
    }
}
