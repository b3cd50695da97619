//! Removing the tags whose content is not ours to remember.
//!
//! One pass, in place, linear in the text: hooks see hostile input, and ten megabytes of `<private>`
//! must not cost more than ten megabytes of anything else.

use std::borrow::Cow;

use super::find::{memchr2, memchr3};

/// What is removed with everything inside. `private` comes first: [`PRIVATE`] is its place.
pub(super) const NAMES: [&str; 6] = [
    "private",
    "claude-mem-context",
    "system-reminder",
    "system_instruction",
    "system-instruction",
    "persisted-output",
];
const PRIVATE: usize = 0;

/// How many blanks a tag may have before its name. `<` and a line of spaces is no tag to anyone.
const BLANKS_MAX: usize = 8;

/// How far back from a removal a tag's beginning can lie: an escaped `<`, blanks, the longest name.
const BEGINNING_BYTES_MAX: usize = 40;

/// A text without its tags.
pub(super) struct Stripped<'a> {
    /// What is left; borrowed when there was nothing to remove.
    pub(super) text: Cow<'a, str>,
    /// Whether anything was removed.
    pub(super) changed: bool,
    /// Whether a `<private>` was opened.
    pub(super) private: bool,
}

/// Removes the tags and what they hold: in any letter case, with attributes, nested, to the end of
/// the text when unclosed. A closing tag without an opening one loses only itself.
pub(super) fn strip(text: Cow<'_, str>) -> Stripped<'_> {
    let Some(first) = next_tag(text.as_bytes(), 0) else {
        return Stripped { text, changed: false, private: false };
    };
    let mut bytes = text.into_owned().into_bytes();
    let private = strip_in_place(&mut bytes, first.start);
    // Cuts are made beside ASCII bytes only, so this is the text unchanged; were that ever wrong,
    // a replacement character is better than a hook that panics.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Stripped { text: Cow::Owned(text), changed: true, private }
}

/// Whether the text is nothing but `<task-notification>` blocks, which the client sends by itself.
pub(crate) fn is_only_task_notification(text: &str) -> bool {
    const OPEN: &str = "<task-notification";
    const CLOSE: &str = "</task-notification>";
    let mut rest = text.trim();
    let mut seen = false;
    while let Some(inside) = rest.strip_prefix(OPEN) {
        if !inside.starts_with(|c: char| c == '>' || c.is_whitespace()) {
            return false;
        }
        let Some(close) = inside.find(CLOSE) else { return false };
        rest = inside[close + CLOSE.len()..].trim_start();
        seen = true;
    }
    seen && rest.is_empty()
}

/// Moves what stays to the front and cuts the rest off. Returns whether a `<private>` was opened.
fn strip_in_place(bytes: &mut Vec<u8>, first: usize) -> bool {
    let (mut kept, mut at) = (first, first);
    let mut private = false;
    while let Some(tag) = next_tag(bytes, at) {
        private |= tag.name == PRIVATE && !tag.closing;
        bytes.copy_within(at..tag.start, kept);
        kept += tag.start - at;
        at = if tag.closing || tag.empty { tag.end } else { close_of(bytes, &tag) };
        // What a removal joins may itself be a tag, as in `<pri<private/>vate>`: look at it again.
        let beginning = beginning_before(&bytes[..kept]);
        bytes.copy_within(kept - beginning..kept, at - beginning);
        kept -= beginning;
        at -= beginning;
    }
    let end = bytes.len();
    bytes.copy_within(at..end, kept);
    bytes.truncate(kept + end - at);
    private
}

/// How many bytes at the end of `kept` could be the beginning of a tag.
fn beginning_before(kept: &[u8]) -> usize {
    let mut longest = 0;
    for (distance, &byte) in kept.iter().rev().take(BEGINNING_BYTES_MAX).enumerate() {
        match byte {
            b'<' => return distance + 1,
            b'\\' => longest = distance + 1,
            b'_' | b'-' | b'/' => {}
            _ if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => {}
            _ => break,
        }
    }
    longest
}

/// Where the content of an opened tag ends: behind its closing tag, or at the end of the text.
///
/// Only tags of the same name count: private text may well mention another tag and not close it.
fn close_of(bytes: &[u8], opened: &Tag) -> usize {
    let mut depth = 1_usize;
    let mut at = opened.end;
    while let Some(tag) = next_tag(bytes, at) {
        at = tag.end;
        if tag.name != opened.name || tag.empty {
            continue;
        }
        depth = if tag.closing { depth - 1 } else { depth + 1 };
        if depth == 0 {
            return at;
        }
    }
    bytes.len()
}

struct Tag {
    name: usize,
    closing: bool,
    /// `<private/>`, which holds nothing.
    empty: bool,
    start: usize,
    end: usize,
}

fn next_tag(bytes: &[u8], from: usize) -> Option<Tag> {
    let mut at = from;
    loop {
        // Tags often follow one another, and a search costs more than a look.
        if bytes.get(at) != Some(&b'<') {
            at += memchr2(b'<', b'\\', &bytes[at..])?;
        }
        if let Some(tag) = tag_at(bytes, at) {
            return Some(tag);
        }
        at += 1;
    }
}

fn tag_at(bytes: &[u8], start: usize) -> Option<Tag> {
    let mut at = start + angle(&bytes[start..], b'<', b'c')?;
    at = skip_blanks(bytes, at);
    let slash = match bytes.get(at..)? {
        [b'/', ..] => 1,
        [b'\\', b'/', ..] => 2, // as some encoders of JSON write it
        _ => 0,
    };
    at = skip_blanks(bytes, at + slash);
    let rest = bytes.get(at..)?;
    let name = NAMES.iter().position(|name| {
        let name = name.as_bytes();
        // As written first: comparing without regard to case goes byte by byte.
        rest.starts_with(name)
            || rest.get(..name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name))
    })?;
    at += NAMES[name].len();
    match bytes.get(at) {
        None | Some(b'>' | b'/' | b'<' | b'\\') => {}
        Some(byte) if byte.is_ascii_whitespace() => {}
        Some(_) => return None, // `<privateer>`, `Map<private, _>`
    }
    let (attributes, end) = end_of(bytes, at);
    Some(Tag {
        name,
        closing: slash > 0,
        empty: is_empty(attributes, end.closed),
        start,
        end: end.at,
    })
}

struct End {
    at: usize,
    closed: bool,
}

/// Reads the rest of a tag. The next `<` ends it as well as `>` does: scanning goes on from there, so
/// no byte is looked at again for every tag before it, and a malformed tag hides none behind it.
fn end_of(bytes: &[u8], from: usize) -> (&[u8], End) {
    if bytes.get(from) == Some(&b'>') {
        return (&[], End { at: from + 1, closed: true });
    }
    let mut at = from;
    while let Some(offset) = memchr3(b'<', b'>', b'\\', &bytes[at..]) {
        at += offset;
        let rest = &bytes[at..];
        if let Some(length) = angle(rest, b'>', b'e') {
            return (&bytes[from..at], End { at: at + length, closed: true });
        }
        if angle(rest, b'<', b'c').is_some() {
            return (&bytes[from..at], End { at, closed: false });
        }
        at += 1;
    }
    (&bytes[from..], End { at: bytes.len(), closed: false })
}

/// A slash before the `>` ends the tag only outside quotes: `<private note="a/>b">` is an opening.
fn is_empty(attributes: &[u8], closed: bool) -> bool {
    let even = |quote| memchr::memchr_iter(quote, attributes).count().is_multiple_of(2);
    closed && attributes.last() == Some(&b'/') && even(b'"') && even(b'\'')
}

/// The length of an angle bracket, plain or as `\u003c`, which is how JSON within a text has it.
fn angle(rest: &[u8], plain: u8, last_digit: u8) -> Option<usize> {
    match rest {
        [byte, ..] if *byte == plain => Some(1),
        [b'\\', b'u', b'0', b'0', b'3', digit, ..] if digit.to_ascii_lowercase() == last_digit => {
            Some(6)
        }
        _ => None,
    }
}

fn skip_blanks(bytes: &[u8], from: usize) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    from + rest.iter().take(BLANKS_MAX).take_while(|byte| byte.is_ascii_whitespace()).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> String {
        strip(Cow::Borrowed(text)).text.into_owned()
    }

    #[test]
    fn tags_and_what_they_hold_are_removed() {
        let cases = [
            ("a<private>b</private>c", "ac"),
            ("a<PriVate>b</PRIVATE>c", "ac"),
            ("a<private reason=\"x > y\" b='c'>d</private>e", "ae"),
            ("a<private\n  reason='x'\n>d</private\n>e", "ae"),
            ("a< private >b</ private >c< / private>", "ac"),
            ("a<private>b<private>c</private>d</private>e", "ae"),
            ("a<private>b<system-reminder>c</private>d", "ad"),
            ("a<system-reminder>b<private>c</system-reminder>d", "ad"),
            ("a<private>b", "a"),
            ("a<private>b<private>c</private>d", "a"),
            ("a<private", "a"),
            ("a<private b", "a"),
            ("a</private>b</system-reminder>c", "abc"),
            ("a</private", "a"),
            ("a<private/>b<private />c", "abc"),
            ("a<private b=\"c\"/>d", "ad"),
            ("a<private b=\"/>c\">d</private>e", "ae"),
            ("a<private <private>b</private>c</private>d", "ad"),
            ("a<claude-mem-context>b</claude-mem-context>c", "ac"),
            ("a<system_instruction>b</system_instruction>c", "ac"),
            ("a<system-instruction>b</system-instruction>c", "ac"),
            ("a<persisted-output>b</persisted-output>c", "ac"),
            ("a<system-instruction>b</system_instruction>c", "a"),
            ("ä<private>ö</private>ü", "äü"),
            (r"a\u003cprivate\u003eb\u003c/private\u003ec", "ac"),
            (r"a\u003Cprivate\u003Eb\u003C\/private\u003Ec", "ac"),
            (r"a<private>b<\/private>c", "ac"),
        ];
        for (text, expected) in cases {
            assert_eq!(stripped(text), expected, "{text}");
        }
    }

    #[test]
    fn tags_that_only_resemble_ours_stay() {
        for text in [
            "<privateer>x</privateer>",
            "<private-key>x</private-key>",
            "<system>x</system>",
            "Map<private, String>",
            "a < b && private > c",
            "private </div>",
            r"C:\private\u003 <p>",
            "<b>ünïcode</b>",
            "<",
            "\\",
            "",
        ] {
            let stripped = strip(Cow::Borrowed(text));
            assert!(matches!(stripped.text, Cow::Borrowed(same) if same == text), "{text}");
            assert!(!stripped.private);
        }
    }

    #[test]
    fn what_a_removal_joins_is_looked_at_again() {
        for text in [
            "a<pri<private>x</private>vate>secret</private>b",
            "a<pri<pri<private/>vate/>vate>secret</private>b",
            "a</pri<private/>vate>b",
            r"a\u00<private/>3cprivate>secret</private>b",
        ] {
            assert_eq!(stripped(text), "ab", "{text}");
        }
    }

    #[test]
    fn only_an_opened_private_makes_a_text_private() {
        let private = |text| strip(Cow::Borrowed(text)).private;
        assert!(private("<private>x</private>"));
        assert!(private("a <PRIVATE"));
        assert!(!private("</private>"));
        assert!(!private("<system-reminder><private>x</private></system-reminder>y"));
    }

    #[test]
    fn ten_megabytes_of_tags_leave_nothing() {
        for unit in ["<private>", "<private/>", "</private>", "<private ", "<pri<private/>"] {
            let left = stripped(&unit.repeat(100_000));
            assert!(!left.contains("private"), "{unit}");
        }
    }

    #[test]
    fn a_prompt_of_nothing_but_notifications_is_told_apart() {
        let block = "<task-notification>\n<task-id>b1</task-id>\n</task-notification>";
        assert!(is_only_task_notification(block));
        assert!(is_only_task_notification(&format!("\n{block}\n{block} ")));
        assert!(!is_only_task_notification(&format!("{block} and go on")));
        assert!(!is_only_task_notification(&format!("what is {block}")));
        assert!(!is_only_task_notification("<task-notification>"));
        assert!(!is_only_task_notification("<task-notifications></task-notification>"));
        assert!(!is_only_task_notification(""));
    }
}
