//! Finds text in a prompt that the client wrote, not the user: notifications, messages of
//! teammates, tags of an editor, output of the client's own commands.
//!
//! Only whole blocks are recognized, from a tag at the start of a line to its closing tag, so a tag
//! that the user mentions is kept. Linear time: the input is untrusted.

use std::borrow::Cow;

/// The author of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Author {
    /// The user, possibly with text of the client.
    User,
    /// The client alone.
    Client,
    /// Another agent of the same team, alone.
    Teammate,
}

/// The user's text, and the author of the prompt.
#[derive(Debug, PartialEq, Eq)]
pub struct Typed<'a> {
    /// Without the client's text; unchanged if there is none, empty if there is nothing else.
    pub text: Cow<'a, str>,
    pub author: Author,
}

const TEAMMATE: &str = "teammate-message";
const TASK: &str = "task-notification";

/// Tags of Claude Code around text that was not typed.
const NAMES: [&str; 15] = [
    TASK,
    TEAMMATE,
    "bash-input",
    "bash-stderr",
    "bash-stdout",
    "ci-monitor-event",
    "command-args",
    "command-contents",
    "command-message",
    "command-name",
    "new-diagnostics",
    "persisted-output",
    "system-reminder",
    "user-memory-input",
    "user-prompt-submit-hook",
];
/// Beginnings of further such tags, as in `ide_opened_file` and `local-command-stdout`.
const FAMILIES: [&str; 2] = ["ide_", "local-command-"];

/// Lines that the client writes after a notification.
const BEHIND_TASK: [&str; 2] =
    ["Read the output file to retrieve", "Full transcript available at:"];

/// Each unclosed tag costs a search to the end of the text.
const UNCLOSED_MAX: usize = 16;

/// Separates the user's text from the client's.
pub fn typed(text: &str) -> Typed<'_> {
    let (mut kept, mut kept_to, mut at) = (String::new(), 0, 0);
    let mut author = Author::User;
    let mut unclosed = 0;
    while at < text.len() && unclosed < UNCLOSED_MAX {
        let start = at + (text[at..].len() - text[at..].trim_start().len());
        let end = opening(&text[start..]).map(|name| (name, end_of(name, &text[start..])));
        match end {
            Some((name, Some(len))) => {
                kept.push_str(&text[kept_to..start]);
                at = start + len;
                if name == TASK {
                    at += lines_behind_task(&text[at..]);
                }
                kept_to = at;
                if author == Author::User {
                    author = if name == TEAMMATE { Author::Teammate } else { Author::Client };
                }
            }
            other => {
                unclosed += usize::from(other.is_some());
                at = text[start..].find('\n').map_or(text.len(), |newline| start + newline + 1);
            }
        }
    }
    if author == Author::User {
        return Typed { text: Cow::Borrowed(text), author };
    }
    kept.push_str(&text[kept_to..]);
    match kept.trim() {
        "" => Typed { text: Cow::Borrowed(""), author },
        typed => Typed { text: Cow::Owned(typed.to_owned()), author: Author::User },
    }
}

/// The name of a tag of the client that begins here.
fn opening(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let (name, rest) = inside.split_at(inside.find(|c| !is_name(c))?);
    let is_known = NAMES.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family));
    (is_known && rest.starts_with(|c: char| c == '>' || c.is_whitespace())).then_some(name)
}

/// The length of the block, with its closing tag.
fn end_of(name: &str, block: &str) -> Option<usize> {
    let close = format!("</{name}>");
    Some(block.find(&close)? + close.len())
}

fn lines_behind_task(text: &str) -> usize {
    let mut rest = text;
    loop {
        let line = rest.trim_start();
        if !BEHIND_TASK.iter().any(|begin| line.starts_with(begin)) {
            return text.len() - rest.len();
        }
        rest = &line[line.find('\n').unwrap_or(line.len())..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASK_BLOCK: &str = "<task-notification>\n<task-id>a</task-id>\n</task-notification>";

    fn parts(text: &str) -> (String, Author) {
        let typed = typed(text);
        (typed.text.into_owned(), typed.author)
    }

    #[test]
    fn text_of_the_client_alone_is_not_the_users() {
        let behind = "Read the output file to retrieve the result: /tmp/a.output";
        for text in [
            TASK_BLOCK.to_owned(),
            format!("\n{TASK_BLOCK}\n{TASK_BLOCK} "),
            format!("{TASK_BLOCK}\n{behind}"),
            format!("{TASK_BLOCK}\n\nFull transcript available at: /tmp/a\n{behind}\n"),
            "<local-command-stdout>done</local-command-stdout>".into(),
            "<bash-stdout>a</bash-stdout><bash-stderr>b</bash-stderr>".into(),
            "<command-name>/clear</command-name>\n  <command-args></command-args>".into(),
            "<ci-monitor-event>failed</ci-monitor-event>".into(),
        ] {
            assert_eq!(parts(&text), (String::new(), Author::Client), "{text}");
        }
        let message = "\
            <teammate-message teammate_id=\"lead\" color=\"blue\">\nReview it\n\
            </teammate-message>";
        assert_eq!(parts(message), (String::new(), Author::Teammate));
        assert_eq!(parts(&format!("{message}\n\n{message}")), (String::new(), Author::Teammate));
    }

    #[test]
    fn text_typed_next_to_client_text_is_kept() {
        let opened = "<ide_opened_file>The user opened a.rs.</ide_opened_file>";
        let selected = "<ide_selection>fn main() {\n}</ide_selection>";
        assert_eq!(parts(&format!("{opened}\nfix it")), ("fix it".into(), Author::User));
        let text = format!("fix it\n{selected}\nand test it");
        assert_eq!(parts(&text), ("fix it\n\nand test it".into(), Author::User));
        assert_eq!(parts(&format!("{TASK_BLOCK} and go on")), ("and go on".into(), Author::User));
        let text = format!("{TASK_BLOCK}\nRead the output file yourself");
        assert_eq!(parts(&text), ("Read the output file yourself".into(), Author::User));
    }

    #[test]
    fn mentions_of_tags_are_unchanged() {
        for text in [
            "",
            "fix <b>it</b>",
            "what is <task-notification>x</task-notification> for?",
            "<task-notification>",
            "<task-notifications></task-notifications>",
            "<ide_selection without an end",
            "<div>\n</div>",
            "</teammate-message>",
        ] {
            assert_eq!(typed(text), Typed { text: Cow::Borrowed(text), author: Author::User });
        }
    }

    #[test]
    fn many_unclosed_tags_take_linear_time() {
        let tags: String = (0..200_000).map(|number| format!("<ide_{number}>\n")).collect();
        assert_eq!(typed(&tags).author, Author::User);
        assert_eq!(parts(&TASK_BLOCK.repeat(10_000)), (String::new(), Author::Client));
    }
}
