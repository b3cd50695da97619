//! Separates what the user typed from what the client, a program or a file put into a prompt.
//!
//! [`typed`] removes the client's own blocks: notifications, messages of teammates, tags of an
//! editor, output of the client's commands. Only whole blocks are recognized, from a tag at the
//! start of a line to its last closing tag, so a tag that the user mentions is kept.
//!
//! [`own_words`] is stricter, and the only rule for what may be called the user's: a rule, a
//! decision. It prefers to lose words: a client that forges the user's words decides what every
//! later session is given.
//!
//! Linear time: the input is untrusted.

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

/// Each tag costs a search to the end of the text.
const TAGS_MAX: usize = 500;
const UNCLOSED_MAX: usize = 16;

/// Separates the user's text from the client's.
pub fn typed(text: &str) -> Typed<'_> {
    let (mut kept, mut kept_to, mut at) = (String::new(), 0, 0);
    let mut author = Author::User;
    let (mut tags, mut unclosed) = (0, 0);
    while at < text.len() && unclosed < UNCLOSED_MAX && tags < TAGS_MAX {
        let start = at + (text[at..].len() - text[at..].trim_start().len());
        let end = opening(&text[start..]).map(|name| (name, end_of(name, &text[start..])));
        tags += usize::from(end.is_some());
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

/// The length of the block, with its last closing tag: what a tag encloses may contain any number
/// of forged ones.
fn end_of(name: &str, block: &str) -> Option<usize> {
    let close = format!("</{name}>");
    Some(block.rfind(&close)? + close.len())
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

/// The words of one prompt that the user certainly typed, without quotes of others. Not: anything in
/// tags, known or not, fences, quoted lines and passages, tables, and everything from a heading, a
/// ruler or an announcement of pasted text on. Of several paragraphs only the first counts: nobody
/// can see whether a later one was pasted.
pub fn own_words(prompt: &str) -> String {
    let typed = typed(prompt);
    if typed.author != Author::User {
        return String::new();
    }
    let text = without_tags(&without_fences(&typed.text));
    let mut own: Vec<&str> = Vec::new();
    let (mut is_quote, mut is_announced) = (false, false);
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let bare = line.trim();
        // The first line behind a quote belongs to the quote, unless a blank line is between them.
        is_quote = !bare.is_empty() && (is_quote || bare.starts_with('>'));
        if begins_other_text(line, bare) {
            // Codex and others write a heading above the request.
            match request_below(&mut lines, bare) {
                true => own.clear(),
                false => break,
            }
        } else if bare.is_empty() {
            // The list of an announcement may follow a blank line.
            let is_list = lines.peek().is_some_and(|next| is_item(next.trim()));
            if !(own.is_empty() || is_announced && is_list) {
                match request_below(&mut lines, "") {
                    true => own.clear(),
                    false => break,
                }
            }
        } else if !is_quote {
            own.push(bare);
            is_announced = bare.ends_with([':', '：']);
            let next = lines.peek().map_or("", |next| next.trim());
            if is_announced && announces_other_text(bare, is_item(next)) {
                break;
            }
        }
    }
    without_quotes(&own.join("\n"))
}

/// Skips lines up to the one with the request, if there is a heading that announces it.
fn request_below<'t>(lines: &mut impl Iterator<Item = &'t str>, here: &str) -> bool {
    let is_request =
        |line: &str| line.starts_with('#') && line.to_lowercase().contains("my request");
    is_request(here) || lines.any(|line| is_request(line.trim()))
}

fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(['-', '*', '•']) || number.len() < line.len() && number.starts_with(['.', ')'])
}

/// Whether a line is not prose: a heading, a ruler, a table, a patch, indented code.
fn begins_other_text(line: &str, bare: &str) -> bool {
    let heading = bare.trim_start_matches('#');
    let is_heading = heading.len() < bare.len() && heading.starts_with(' ');
    let is_ruler =
        ["---", "===", "***", "+++", "___", "<<<", ">>>", "~~~", "|", "@@", "diff --git"]
            .iter()
            .any(|mark| bare.starts_with(mark));
    let is_code = line.starts_with('\t') || line.starts_with("    ") && !is_item(bare);
    is_heading || is_ruler || is_code
}

/// Words in a line before pasted text: before a list or other text, before other text only, and
/// in scripts without spaces.
const ANNOUNCEMENTS: &str = include_str!("announcements.txt");

/// Whether a line that ends with a colon announces the words of somebody else: `The reviewer wrote:`
/// or `AGENTS.md:`. A list after `the following:` is the user's own.
fn announces_other_text(line: &str, is_before_list: bool) -> bool {
    let lower = line.to_lowercase();
    let mut lists = ANNOUNCEMENTS.split("\n\n").map(|list| list.lines());
    let [always, before_text, wide] = std::array::from_fn(|_| lists.next());
    let has = |list: Option<std::str::Lines<'_>>| {
        let mut words = lower.split(|c: char| !c.is_alphanumeric());
        let list: Vec<&str> = list.into_iter().flatten().collect();
        words.any(|word| list.contains(&word))
    };
    let names_file = lower.split_whitespace().any(|word| {
        let word = word.trim_end_matches([':', '：']);
        let end = word.rsplit_once('.').map_or("", |(_, end)| end);
        word.starts_with('@') || (1..=5).contains(&end.len()) && end.is_ascii()
    });
    let is_wide = wide.is_some_and(|mut list| list.any(|mark| lower.contains(mark)));
    names_file || has(always) || !is_before_list && has(before_text) || is_wide
}

/// Removes fenced code; an unclosed fence extends to the end.
fn without_fences(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut kept = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, None) => kept.push_str(line),
            (None, Some(mark)) => {
                fence = Some(mark);
                kept.push('\n');
            }
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
    }
    kept
}

/// Removes tags with all they enclose, up to the last tag that closes them. Without one, a tag at
/// the start of a line extends to the end of the text; elsewhere it may be `Vec<String>`. Text
/// before a closing tag alone is enclosed, too.
fn without_tags(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut at = 0;
    let (mut tags, mut unclosed) = (0, Vec::new());
    while let Some(found) = text[at..].find('<') {
        let open = at + found;
        kept.push_str(&text[at..open]);
        let inside = &text[open + 1..];
        let (is_closing, inside) = match inside.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, inside),
        };
        let name = &inside[..inside.find(|c| !is_tag_name(c)).unwrap_or(inside.len())];
        let is_tag = name.starts_with(|c: char| c.is_alphabetic())
            && inside[name.len()..]
                .starts_with(|c: char| c == '>' || c == '/' || c.is_whitespace());
        if is_tag && is_closing {
            kept.clear();
            at = open + text[open..].find('>').map_or(text.len() - open, |end| end + 1);
            continue;
        }
        let is_first = kept.rsplit('\n').next().unwrap_or_default().trim().is_empty();
        if is_tag && !unclosed.contains(&name) {
            tags += 1;
            match end_of(name, &text[open..]) {
                Some(len) if tags < TAGS_MAX => {
                    at = open + len;
                    kept.push(' ');
                    continue;
                }
                None if !is_first && unclosed.len() < UNCLOSED_MAX => unclosed.push(name),
                _ => return kept,
            }
        }
        kept.push('<');
        at = open + 1;
    }
    kept.push_str(&text[at..]);
    kept
}

fn is_tag_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.')
}

/// Quotation marks, opening and closing.
const QUOTES: [(char, &[char]); 6] = [
    ('"', &['"']),
    ('“', &['”', '"']),
    ('„', &['“', '”', '"']),
    ('«', &['»']),
    ('「', &['」']),
    ('\'', &['\'']),
];

/// Replaces quoted passages by `“…”`. One quoted word is a name, and stays. A quote that is not
/// closed extends to the end of the text if it begins a line.
fn without_quotes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        let begins =
            kept.chars().next_back().is_none_or(|c| c.is_whitespace() || "([{:-—".contains(c));
        let quote =
            QUOTES.iter().find(|(open, _)| *open == c && (begins || !matches!(c, '"' | '\'')));
        if let Some((_, close)) = quote {
            let is_line_start = kept
                .trim_end_matches([' ', '-', '*'])
                .chars()
                .next_back()
                .is_none_or(|c| c == '\n');
            match after.find(*close) {
                Some(end)
                    if after[..end].trim().contains(char::is_whitespace)
                        || !after[..end].is_ascii() =>
                {
                    kept.push_str("“…”");
                    rest = &after[end..];
                    rest = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
                    continue;
                }
                None if is_line_start && c != '\'' => return kept,
                _ => {}
            }
        }
        kept.push(c);
        rest = after;
    }
    kept
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
