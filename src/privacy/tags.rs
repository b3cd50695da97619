//! Removes private tags and their content.
//!
//! One pass, in place, linear time: the input is untrusted, and ten megabytes of `<private>` must
//! not cost more than other text. Removed private text leaves a placeholder, so that an unintended
//! removal is visible.

use std::borrow::Cow;

use crate::{
    byte_search::{memchr, memchr2, memchr4},
    work,
};

/// Tags that are removed with their content. `private` is first: [`PRIVATE`] is its index.
pub(super) const NAMES: [&str; 6] = [
    "private",
    "claude-mem-context",
    "system-reminder",
    "system_instruction",
    "system-instruction",
    "persisted-output",
];
const PRIVATE: usize = 0;

/// The placeholder for private text. It looks like the placeholders of secrets, so no rule changes
/// it again.
pub(super) const MARK: &str = "[redacted:private]";

/// The maximum length of a quoted attribute value. Without a closing quotation mark by then, it is
/// not a value.
const ATTRIBUTE_BYTES_MAX: usize = 1 << 10;

/// The maximum whitespace between `<` and the name of a tag.
const BLANKS_MAX: usize = 8;

/// The maximum distance from a removal back to the start of a tag: an escaped `<`, whitespace, the
/// longest name.
const BEGINNING_BYTES_MAX: usize = 40;

/// A text without its tags.
pub(super) struct Stripped<'a> {
    /// The remaining text; borrowed if unchanged.
    pub(super) text: Cow<'a, str>,
    /// Whether anything was removed.
    pub(super) changed: bool,
    /// A `<private>` was removed, and only whitespace is left.
    pub(super) wholly_private: bool,
}

/// Removes tags with their content: any letter case, with attributes, nested, to the end of the
/// text if unclosed. A closing tag without an opening one is removed alone.
pub(super) fn strip(text: Cow<'_, str>) -> Stripped<'_> {
    if next_tag(text.as_bytes(), 0).is_none() {
        return Stripped { text, changed: false, wholly_private: false };
    }
    let (text, wholly_private) = strip_joined(text.into_owned(), &mut []);
    Stripped { text: Cow::Owned(text), changed: true, wholly_private }
}

/// Removes the tags of a text that consists of several parts. `starts` has the offsets of the
/// parts, and is updated. Returns the remaining text, and whether all of it was private.
pub(super) fn strip_joined(text: String, starts: &mut [usize]) -> (String, bool) {
    let mut bytes = text.into_bytes();
    let places = strip_in_place(&mut bytes, starts);
    // Cuts are only next to ASCII bytes, so this does not change the text. If that were wrong, a
    // replacement character is better than a panic in a hook.
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    let has_private = places.iter().any(|place| place.kind == Kind::Private);
    // Text after the work limit is dropped and counts like the text before it.
    let wholly_private = has_private && (text.trim().is_empty() || work::is_over());
    (marked(&text, &places, starts), wholly_private)
}

/// A position in the remaining text.
#[derive(PartialEq)]
struct Place {
    at: usize,
    kind: Kind,
}

#[derive(PartialEq)]
enum Kind {
    /// Something was removed here.
    Removed,
    /// Private text was removed here.
    Private,
    /// A part starts here.
    Start,
}

/// Inserts placeholders for private text, and updates the starts of the parts.
fn marked(text: &str, places: &[Place], starts: &mut [usize]) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut copied, mut marked_at) = (0, None);
    let mut starts = starts.iter_mut();
    for Place { at, kind } in places {
        out.push_str(&text[copied..*at]);
        copied = *at;
        match kind {
            Kind::Removed => {}
            Kind::Private if marked_at == Some(*at) => {}
            Kind::Private => {
                out.push_str(MARK);
                marked_at = Some(*at);
            }
            Kind::Start => {
                if let Some(start) = starts.next() {
                    *start = out.len();
                }
            }
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// Moves the remaining text to the front and truncates. Returns the positions of removals and
/// parts, in order.
fn strip_in_place(bytes: &mut Vec<u8>, starts: &[usize]) -> Vec<Place> {
    let (mut kept, mut at) = (0, 0);
    let mut places = Vec::new();
    let mut starts = starts.iter().copied().peekable();
    while let Some(tag) = next_tag(bytes, at)
        && !work::is_over()
    {
        while let Some(start) = starts.next_if(|start| *start <= tag.start) {
            places.push(Place { at: kept + (start - at), kind: Kind::Start });
        }
        bytes.copy_within(at..tag.start, kept);
        kept += tag.start - at;
        let opens = !tag.closing && !tag.empty;
        at = if opens { close_of(bytes, &tag) } else { tag.end };
        let is_private = opens && tag.name == PRIVATE;
        let kind = if is_private { Kind::Private } else { Kind::Removed };
        let place = Place { at: kept, kind };
        // Megabytes of tags in a row leave one mark.
        if places.last() != Some(&place) {
            places.push(place);
        }
        while starts.next_if(|start| *start <= at).is_some() {
            places.push(Place { at: kept, kind: Kind::Start });
        }
        // A removal may join text to a new tag, as in `<pri<private/>vate>`: scan it again.
        let beginning = beginning_before(&bytes[..kept]);
        bytes.copy_within(kept - beginning..kept, at - beginning);
        kept -= beginning;
        at -= beginning;
    }
    places.extend(starts.map(|start| Place { at: kept + (start - at), kind: Kind::Start }));
    let end = bytes.len();
    bytes.copy_within(at..end, kept);
    bytes.truncate(kept + end - at);
    // Such a tag also removed the positions between its halves.
    places.iter_mut().rev().fold(usize::MAX, |least, place| {
        place.at = place.at.min(least);
        place.at
    });
    places
}

/// How many bytes at the end of `kept` could be the start of a tag.
fn beginning_before(kept: &[u8]) -> usize {
    let mut longest = 0;
    for (distance, &byte) in kept.iter().rev().take(BEGINNING_BYTES_MAX).enumerate() {
        match byte {
            b'<' => return distance + 1,
            b'\\' => longest = distance + 1,
            b'_' | b'-' | b'/' | 0xc2 | 0xa0 => {}
            _ if byte.is_ascii_alphanumeric() || byte.is_ascii_whitespace() => {}
            _ => break,
        }
    }
    longest
}

/// The end of a tag's content: after its closing tag, or the end of the text.
///
/// Only tags of the same name count: private text may mention another tag without closing it.
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
    /// `<private/>`, which has no content.
    empty: bool,
    start: usize,
    end: usize,
}

fn next_tag(bytes: &[u8], from: usize) -> Option<Tag> {
    let mut at = from;
    loop {
        // Tags often follow each other, and a search costs more than one comparison.
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
        // Compare the exact case first: it is faster than ignoring case.
        rest.starts_with(name)
            || rest.get(..name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name))
    })?;
    at += NAMES[name].len();
    match bytes.get(at..)? {
        [] | [b'>' | b'/' | b'<' | b'\\', ..] => {}
        rest if blank(rest) > 0 => {}
        _ => return None, // `<privateer>`, `Map<private, _>`
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

/// Reads the rest of a tag. Outside quotes, `<` ends it as well as `>`. Scanning continues there,
/// so no byte is read again for each tag before it, and a malformed tag hides no later one.
fn end_of(bytes: &[u8], from: usize) -> (&[u8], End) {
    if bytes.get(from) == Some(&b'>') {
        return (&[], End { at: from + 1, closed: true });
    }
    let mut at = from;
    while let Some(offset) = memchr4([b'<', b'>', b'\\', b'='], &bytes[at..]) {
        at += offset;
        let rest = &bytes[at..];
        if let Some(length) = angle(rest, b'>', b'e') {
            return (&bytes[from..at], End { at: at + length, closed: true });
        }
        if angle(rest, b'<', b'c').is_some() {
            return (&bytes[from..at], End { at, closed: false });
        }
        at += quoted_value(rest).unwrap_or(1);
    }
    (&bytes[from..], End { at: bytes.len(), closed: false })
}

/// The length of `="…"` at the start, unless the value is too long.
fn quoted_value(rest: &[u8]) -> Option<usize> {
    let value = skip_blanks(rest.strip_prefix(b"=")?, 0) + 1;
    let backslashes = rest[value..].iter().take(3).take_while(|byte| **byte == b'\\').count();
    let start = value + backslashes + 1;
    let quote = rest.get(start - 1).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let inside = &rest[start..rest.len().min(start + ATTRIBUTE_BYTES_MAX)];
    memchr(*quote, inside).map(|length| start + length + 1)
}

/// A slash before `>` makes a tag empty only outside quotes: `<private note="a/>b">` is an opening
/// tag.
fn is_empty(attributes: &[u8], closed: bool) -> bool {
    let even = |quote| memchr::memchr_iter(quote, attributes).count().is_multiple_of(2);
    closed && attributes.last() == Some(&b'/') && even(b'"') && even(b'\'')
}

/// The length of an angle bracket, plain or as `\u003c` (JSON inside of text).
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
    let mut at = from;
    for _ in 0..BLANKS_MAX {
        match bytes.get(at..).map_or(0, blank) {
            0 => break,
            length => at += length,
        }
    }
    at
}

/// The length of whitespace at the start, including no-break spaces of copied web pages, and
/// colors: a tool that highlights syntax or matches colors the name of a tag apart from its
/// brackets.
pub(super) fn blank(rest: &[u8]) -> usize {
    match rest {
        [byte, ..] if byte.is_ascii_whitespace() => 1,
        [0xc2, 0xa0, ..] => 2,
        [0x1b, sequence @ ..] => 1 + color(sequence),
        _ => 0,
    }
}

/// The length of a color sequence after its escape character.
pub(super) fn color(sequence: &[u8]) -> usize {
    const BYTES_MAX: usize = 24;
    let sequence = &sequence[..sequence.len().min(BYTES_MAX)];
    let [b'[', parameters @ ..] = sequence else { return 0 };
    let end = parameters.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':'));
    match end.map(|end| (end, parameters[end])) {
        Some((end, b'm' | b'K')) => end + 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(text: &str) -> String {
        strip(Cow::Borrowed(text)).text.replace(MARK, "")
    }

    #[test]
    fn tags_are_removed_with_their_content() {
        let cases = [
            ("a<private>b</private>c", "ac"),
            ("a<PriVate>b</PRIVATE>c", "ac"),
            ("a<\x1b[01;31m\x1b[Kprivate\x1b[m\x1b[K>b</\x1b[38;5;9mprivate\x1b[0m>c", "ac"),
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
            ("a<private x=\"</private>\">b</private>c", "ac"),
            ("a<private x='</private>' y = \"<private>\">b</private>c", "ac"),
            (r#"a<private x=\"</private>\">b</private>c"#, "ac"),
            ("a<private x=\"b>c</private>d", "ad"),
            ("a<private it's>b</private>c'd", "ac'd"),
            ("a<private x=1>b</private>c=\"d>e\"", "ac=\"d>e\""),
            ("a<\u{a0}private>b</private\u{a0}>c<\u{a0}/\u{a0}private>", "ac"),
            ("a<private\u{a0}x>b</\u{a0}private>c", "ac"),
        ];
        for (text, expected) in cases {
            assert_eq!(stripped(text), expected, "{text}");
        }
    }

    #[test]
    fn similar_tags_stay() {
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
            assert!(!stripped.wholly_private);
        }
    }

    #[test]
    fn private_text_leaves_one_placeholder_and_other_tags_none() {
        let cases = [
            ("a <private>b</private> c", "a [redacted:private] c"),
            ("a<private>b</private><private>c", "a[redacted:private]"),
            ("a<private/>b</private>c", "abc"),
            ("a<system-reminder>b<private>c</private></system-reminder>d", "ad"),
            ("a<pri<private>x</private>vate>secret</private>b", "a[redacted:private]b"),
            ("a<sys<private>x</private>tem-reminder>secret", "a[redacted:private]"),
        ];
        for (text, expected) in cases {
            assert_eq!(strip(Cow::Borrowed(text)).text, expected, "{text}");
        }
    }

    #[test]
    fn the_starts_of_parts_are_updated_after_removals() {
        let parts = |parts: &[&str]| {
            let mut starts = vec![0];
            for part in &parts[1..] {
                starts.push(starts[starts.len() - 1] + parts[starts.len() - 1].len());
                assert!(!part.is_empty());
            }
            let (text, _) = strip_joined(parts.concat(), &mut starts);
            let ends = starts.iter().copied().skip(1).chain([text.len()]);
            let parts = starts.iter().zip(ends).map(|(start, end)| text[*start..end].to_owned());
            parts.collect::<Vec<_>>()
        };
        assert_eq!(
            parts(&["a", "b<private>c", "d", "e</private>f", "g"]),
            ["a", "b[redacted:private]", "", "f", "g"]
        );
        assert_eq!(parts(&["<pri<private>", "x</private>", "vate>", "y"]), [MARK, "", "", ""]);
        assert_eq!(parts(&["a<private/>", "b"]), ["a", "b"]);
    }

    #[test]
    fn text_joined_by_a_removal_is_scanned_again() {
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
    fn only_an_opening_private_tag_makes_a_text_private() {
        let private = |text| strip(Cow::Borrowed(text)).wholly_private;
        assert!(private("<private>x</private>"));
        assert!(private(" <PRIVATE"));
        assert!(!private("a <PRIVATE"));
        assert!(!private("</private>"));
        assert!(!private("<system-reminder><private>x</private></system-reminder>"));
    }

    #[test]
    fn ten_megabytes_of_tags_are_removed() {
        for unit in ["<private>", "<private/>", "</private>", "<private ", "<pri<private/>"] {
            let left = stripped(&unit.repeat(100_000));
            assert!(!left.contains("private"), "{unit}");
        }
    }
}
