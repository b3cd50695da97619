//! From the raw text of an element to its value.

use std::borrow::Cow;
use std::collections::HashSet;

use memchr::{memchr, memrchr};

use super::tags::{self, Name};
use crate::text::{first_line, one_line};

const CDATA: &str = "<![CDATA[";

/// The longest entity is `&#x10FFFF;`.
const ENTITY_BYTES_MAX: usize = 10;

/// The value of a text: entities decoded once, without control characters and surrounding space;
/// `None` if it is empty or a word such as `none`. `cut` means that the reply ended in this text.
pub(super) fn prose(raw: &str, cut: bool) -> Option<String> {
    #[cfg(test)]
    crate::scan_counter::add(raw.len());
    let raw = if cut { without_cut_tail(raw) } else { raw };
    let text = decoded(raw);
    let text = text.trim();
    let is_comment = text.starts_with("<!--") && text.ends_with("-->") && !text.contains('\n');
    (!is_comment && !is_nothing(text)).then(|| printable(text))
}

/// One item of a list.
pub(super) fn item(list: Name, raw: &str) -> Option<String> {
    let text = one_line(&prose(raw, false)?);
    let text = match list {
        // Concepts are keywords; models often add an explanation.
        Name::Concepts => text.split_once(": ").map_or(text.as_str(), |(word, _)| word),
        Name::FilesRead | Name::FilesModified => text.trim_matches(['`', '"', '\'']),
        _ => &text,
    };
    let text = if list == Name::Concepts { text.trim_end_matches(':') } else { text };
    (!is_nothing(text)).then(|| text.trim().to_owned())
}

/// The items of a list given as text: an array, lines with or without bullets, words between
/// commas. If the reply ended here, the last line may be incomplete and is dropped. At most
/// `items_max`.
pub(super) fn lines(list: Name, raw: &str, cut: bool, items_max: usize) -> Vec<String> {
    #[cfg(test)]
    crate::scan_counter::add(raw.len());
    let raw = if cut { raw.rfind('\n').map_or("", |end| &raw[..end]) } else { raw };
    if raw.trim().is_empty() {
        return Vec::new();
    }
    if let Ok(array) = serde_json::from_str::<Vec<String>>(decoded(raw).trim()) {
        let items = array.iter().filter_map(|text| item(list, &escaped(text)));
        return items.take(items_max).collect();
    }
    let by_commas = list != Name::Facts;
    raw.lines()
        .flat_map(|line| line.split(move |c| by_commas && c == ','))
        .filter_map(|part| item(list, without_bullet(part)))
        .take(items_max)
        .collect()
}

/// Whether two words are equal, ignoring case and the kind of space between their parts.
pub(super) fn same_word(left: &str, right: &str) -> bool {
    fn letters(word: &str) -> impl Iterator<Item = char> + '_ {
        word.chars()
            .filter(|c| !matches!(c, '-' | '_') && !c.is_whitespace())
            .flat_map(char::to_lowercase)
    }
    letters(left).eq(letters(right))
}

/// A title for a text without one: its first sentence, or the start of it. A first line of one
/// word is the value of an unknown element, such as `<kind>bug</kind>`.
pub(super) fn first_sentence(text: &str) -> String {
    const TITLE_CHARS_MAX: usize = 120;
    let is_longer = |line: &&str| !line.is_ascii() || line.trim().contains(' ');
    let line = text.lines().find(is_longer).unwrap_or_else(|| first_line(text));
    let line = one_line(without_bullet(line.trim_start().trim_start_matches('#')));
    let is_end = |(at, c): (usize, char)| {
        let after = at + c.len_utf8();
        let is_final = matches!(c, '。' | '！' | '？')
            || matches!(c, '.' | '!' | '?') && line[after..].starts_with(' ');
        is_final.then_some(after)
    };
    let sentence = &line[..line.char_indices().find_map(is_end).unwrap_or(line.len())];
    match sentence.char_indices().nth(TITLE_CHARS_MAX) {
        None => sentence.to_owned(),
        Some((end, _)) => {
            let start = &sentence[..end];
            format!("{}…", start.rsplit_once(' ').map_or(start, |(words, _)| words))
        }
    }
}

/// Removes the tags of elements that are not ours, such as `<text>`, and keeps what they contain.
/// Only a name with a closing tag is an element: `Vec<String>` is not.
pub(super) fn without_unknown_tags(text: &str) -> String {
    fn name(tag: &str) -> Option<(&str, usize)> {
        let end = memchr(b'>', tag.as_bytes())?;
        let name = tag[..end].trim();
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        (!name.is_empty() && name.len() <= 40 && name.chars().all(is_name))
            .then_some((name, end + 1))
    }
    let pieces = || text.split('<').skip(1);
    let closed: HashSet<&str> =
        pieces().filter_map(|piece| Some(name(piece.strip_prefix('/')?)?.0)).collect();
    let mut out = String::with_capacity(text.len());
    out.push_str(text.split('<').next().unwrap_or_default());
    for piece in pieces() {
        let tag = name(piece.strip_prefix('/').unwrap_or(piece));
        if let Some((_, end)) = tag.filter(|(name, _)| closed.contains(name)) {
            out.push('\n');
            out.push_str(&piece[end + usize::from(piece.starts_with('/'))..]);
        } else {
            out.push('<');
            out.push_str(piece);
        }
    }
    out
}

/// Each value once, in order of first occurrence.
pub(super) fn distinct(values: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut seen = HashSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// Drops an incomplete tag, entity, fence or character at a cut.
pub(super) fn without_cut_tail(raw: &str) -> &str {
    let mut text = raw.trim_end_matches(char::REPLACEMENT_CHARACTER);
    if text.trim_start().starts_with(CDATA) && !text.contains("]]>") {
        return text.trim_end_matches(']');
    }
    if let Some(at) = memrchr(b'<', text.as_bytes()) {
        let tail = &text[at + 1..];
        if tags::begins_a_tag(tail) || CDATA[1..].starts_with(tail) {
            text = &text[..at];
        }
    }
    if let Some(at) = memrchr(b'&', text.as_bytes()) {
        let tail = &text[at + 1..];
        let is_half = tail.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'#');
        if is_half && tail.len() < ENTITY_BYTES_MAX {
            text = &text[..at];
        }
    }
    text.trim_end().trim_end_matches('`')
}

/// Decodes entities, once. Anything else stays: the model meant `a && b`.
fn decoded(raw: &str) -> Cow<'_, str> {
    if let Some(section) = raw.trim_start().strip_prefix(CDATA) {
        let (literal, rest) = section.split_once("]]>").unwrap_or((section, ""));
        return Cow::Owned(format!("{literal}{}", entities(rest)));
    }
    entities(raw)
}

fn entities(raw: &str) -> Cow<'_, str> {
    let Some(first) = memchr(b'&', raw.as_bytes()) else { return Cow::Borrowed(raw) };
    let mut text = String::with_capacity(raw.len());
    text.push_str(&raw[..first]);
    let mut rest = &raw[first..];
    while !rest.is_empty() {
        let (piece, bytes) = entity(rest).unwrap_or((Cow::Borrowed("&"), 1));
        text.push_str(&piece);
        rest = &rest[bytes..];
        let plain = memchr(b'&', rest.as_bytes()).unwrap_or(rest.len());
        text.push_str(&rest[..plain]);
        rest = &rest[plain..];
    }
    Cow::Owned(text)
}

/// Decodes the entity at the start of `text`, and returns its length.
fn entity(text: &str) -> Option<(Cow<'_, str>, usize)> {
    let end = memchr(b';', &text.as_bytes()[..text.len().min(ENTITY_BYTES_MAX)])? + 1;
    Some((quick_xml::escape::unescape(&text[..end]).ok()?, end))
}

/// Escapes decoded text, so that decoding it again changes nothing.
fn escaped(text: &str) -> Cow<'_, str> {
    quick_xml::escape::escape(text)
}

fn printable(text: &str) -> String {
    // Fast path.
    if text.bytes().all(|byte| matches!(byte, b'\n' | b'\t' | b' '..=b'~')) {
        return text.to_owned();
    }
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

/// Words that models write into an empty field.
fn is_nothing(text: &str) -> bool {
    let words = ["", "-", "none", "none.", "n/a", "null", "nil"];
    words.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

/// Removes `- `, `* `, `• ` or `1. `.
fn without_bullet(line: &str) -> &str {
    let line = line.trim();
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = (1..=3).contains(&digits).then(|| &line[digits..]);
    let after_number = numbered.and_then(|rest| rest.strip_prefix(['.', ')']));
    let after_bullet = after_number.or_else(|| line.strip_prefix(['-', '*', '•']));
    match after_bullet {
        Some(rest) if rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}
