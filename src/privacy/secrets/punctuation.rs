//! Punctuation between a name and its value: operators, spaces, quotation marks, tags.

use super::rules::run;
use crate::byte_search::memchr2;

/// The start of unparsed text in XML, and its end.
const CDATA: &[u8] = b"<![CDATA[";
pub(super) const CDATA_END: &[u8] = b"]]>";
/// A string as bytes in Go.
const BYTES_OF: &[u8] = b"[]byte(";

/// What is between a name and its value.
#[derive(PartialEq, Clone, Copy)]
pub(super) enum Operator {
    Colon,
    Equals,
    /// `name || "value"`: a default.
    Default,
    /// `("name", "value")`
    Comma,
    /// `name == "value"`
    Compares,
}

/// The assignment operator and its length. Not `::` or `://`.
pub(super) fn sign(rest: &[u8]) -> Option<(Operator, usize)> {
    match rest {
        [b'=', b'=', b'=', ..] => Some((Operator::Compares, 3)),
        [b'=', b'=', ..] => Some((Operator::Compares, 2)),
        [b':', b':', b':', b'=', ..] => Some((Operator::Equals, 4)),
        [b':', b':', b'=', ..] | [b'|', b'|', b'=', ..] | [b'?', b'?', b'=', ..] => {
            Some((Operator::Equals, 3))
        }
        // LDIF: the value is in base64.
        [b':', b':', b' ', ..] => Some((Operator::Colon, 2)),
        [b':', b':' | b'/', ..] | [b'=', b'~', ..] => None,
        [b':' | b'.' | b'?' | b'+', b'=', ..] | [b'=', b'>', ..] | [b'<', b'-', ..] => {
            Some((Operator::Equals, 2))
        }
        [b'|', b'|', ..] | [b'?', b'?', ..] => Some((Operator::Default, 2)),
        [b'=', ..] => Some((Operator::Equals, 1)),
        [b':', ..] => Some((Operator::Colon, 1)),
        [b',', ..] => Some((Operator::Comma, 1)),
        _ if rest.starts_with("：".as_bytes()) => Some((Operator::Colon, "：".len())),
        _ => None,
    }
}

/// The length of the blanks at the start, also of those that a rendered page has and of line breaks
/// that a backslash continues.
pub(super) fn count_blanks(rest: &[u8]) -> usize {
    const BYTES_MAX: usize = 64; // columns may be aligned
    let mut length = 0;
    while length < BYTES_MAX {
        length += match rest[length..] {
            [b' ' | b'\t', ..] => 1,
            [0xc2, 0xa0, ..] | [b'\\', b'\n', ..] => 2,
            [b'\\', b'\r', b'\n', ..] => 3,
            _ => break,
        };
    }
    length
}

/// What may be between a name and its operator: the end of an index, the size of an array.
pub(super) fn brackets(rest: &[u8], is_quoted: bool) -> usize {
    if is_quoted {
        return usize::from(rest.first() == Some(&b']'));
    }
    let size = match rest {
        [b'[', size @ ..] => run(&size[..size.len().min(8)], |byte| byte.is_ascii_digit()),
        _ => return 0,
    };
    if rest.get(size + 1) == Some(&b']') { size + 2 } else { 0 }
}

/// The start of the value of an XML element: `<name>…`, `<name kind="x">…`,
/// `<key>name</key><string>…`.
pub(super) fn element_start(text: &[u8], name: usize, end: usize) -> Option<usize> {
    const TAG_BYTES_MAX: usize = 96;
    const PAIRS: [(&[u8], &[u8]); 4] =
        [(b"</key>", b"<string>"), (b"</th>", b"<td>"), (b"</td>", b"<td>"), (b"</dt>", b"<dd>")];
    let rest = &text[end..text.len().min(end + TAG_BYTES_MAX)];
    if opens_element(&text[..name]) {
        let attributes = match rest.first()? {
            b'>' => 0,
            b' ' => run(rest, |byte| !matches!(byte, b'>' | b'<' | b'/' | b'\n')),
            _ => return None,
        };
        let start = end + attributes + 1;
        let data = if text[start.min(text.len())..].starts_with(CDATA) { CDATA.len() } else { 0 };
        return (rest.get(attributes) == Some(&b'>')).then_some(start + data);
    }
    PAIRS.iter().find_map(|(closing, opening)| {
        let behind = rest.strip_prefix(*closing)?;
        let between = run(behind, |byte| byte.is_ascii_whitespace() || byte == b'+');
        let behind = behind[between..].strip_prefix(*opening)?;
        Some(end + rest.len() - behind.len())
    })
}

/// Whether a tag starts before its name: `<`, or `<` and a namespace.
fn opens_element(before: &[u8]) -> bool {
    const NAMESPACE_BYTES_MAX: usize = 24;
    let before = &before[before.len().saturating_sub(NAMESPACE_BYTES_MAX)..];
    let namespace = before.strip_suffix(b":").unwrap_or_default();
    let letters = namespace.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric()).count();
    before.ends_with(b"<") || letters > 0 && namespace[..namespace.len() - letters].ends_with(b"<")
}

/// The length of what may precede a value in YAML: a tag or an anchor, as in `!vault …`, `&key …`.
pub(super) fn yaml_property(rest: &[u8]) -> usize {
    const BYTES_MAX: usize = 32;
    let name = match rest {
        [b'!' | b'&', name @ ..] => &name[..name.len().min(BYTES_MAX)],
        _ => return 0,
    };
    let length = run(name, |byte| byte.is_ascii_alphanumeric() || b"_-!".contains(&byte));
    if name.get(length) == Some(&b' ') { 1 + length + count_blanks(&name[length..]) } else { 0 }
}

/// The length of a literal's prefix: `r"…"`, `b'…'`, `@"…"`, `r#"…"#`, `[]byte("…")`.
pub(super) fn literal_prefix(rest: &[u8]) -> usize {
    if rest.starts_with(BYTES_OF) {
        return BYTES_OF.len();
    }
    let wrappers = wrappers(rest);
    if wrappers > 0 {
        return if quote_at(&rest[wrappers..]).is_some() { wrappers } else { 0 };
    }
    let letters = run(&rest[..rest.len().min(2)], |byte| b"rbufRBUFL@$N".contains(&byte));
    let hashes = run(&rest[letters..rest.len().min(letters + 3)], |byte| byte == b'#');
    let prefix = letters + hashes;
    let quote = rest.get(prefix..).and_then(quote_at);
    let is_literal = letters > 0 && quote.is_some_and(|(quote, _)| quote != b'`');
    if is_literal { prefix } else { 0 }
}

/// The length of the types around a string in the debug output of Rust: `Some(Secret("…"))`.
fn wrappers(rest: &[u8]) -> usize {
    const WRAPPERS: [&[u8]; 3] = [b"Some(", b"Secret(", b"SecretString("];
    const NESTED_MAX: usize = 2;
    let mut length = 0;
    for _ in 0..NESTED_MAX {
        let found = WRAPPERS.iter().find(|wrapper| rest[length..].starts_with(wrapper));
        length += found.map_or(0, |wrapper| wrapper.len());
    }
    length
}

/// Whether only spaces and the prefix of a listing precede this on its line.
pub(super) fn starts_line(text: &[u8], at: usize) -> bool {
    const LINE_BYTES_MAX: usize = 48;
    let before = text[..at].iter().rev().take(LINE_BYTES_MAX);
    let mut before = before.take_while(|byte| **byte != b'\n');
    before.all(|byte| {
        matches!(byte, b' ' | b'\t' | b'-' | b'+' | b'"' | b'\'' | b'0'..=b'9') || !byte.is_ascii()
    })
}

/// A quotation mark, and the backslashes before it: JSON inside of a string has one, three or
/// seven.
pub(super) fn quote_at(rest: &[u8]) -> Option<(u8, usize)> {
    let backslashes = run(&rest[..rest.len().min(16)], |byte| byte == b'\\');
    match rest.get(backslashes) {
        Some(quote @ (b'"' | b'\'')) => Some((*quote, backslashes)),
        Some(b'`') if backslashes == 0 => Some((b'`', 0)),
        _ => None,
    }
}

pub(super) fn quoted_length(rest: &[u8], quote: u8, backslashes: usize) -> usize {
    let mut at = 0;
    while let Some(offset) = memchr2(quote, b'\n', &rest[at..]) {
        at += offset;
        let before = rest[..at].iter().rev().take(64).take_while(|byte| **byte == b'\\').count();
        let closes = if backslashes == 0 { before % 2 == 0 } else { before <= backslashes };
        if rest[at] == b'\n' {
            return at;
        }
        if closes {
            return at - before.min(backslashes);
        }
        at += 1;
    }
    rest.len()
}
