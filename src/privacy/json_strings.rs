//! Reads and writes JSON strings.

use std::fmt::Write as _;

use crate::byte_search::{memchr, memchr2};

/// The result of reading a string.
pub struct Read {
    /// The offset after the closing quotation mark.
    pub end: usize,
    /// Whether it has escapes; then its decoded text is in the buffer.
    pub escaped: bool,
    /// Whether it must be rewritten: half a surrogate pair became U+FFFD, or it contains an
    /// unescaped control character.
    pub(super) replaced: bool,
}

/// Reads the string whose content starts at `start`; `None` if it is invalid.
pub fn read_string(raw: &str, start: usize, buffer: &mut String) -> Option<Read> {
    let bytes = raw.as_bytes();
    let (mut at, mut copied) = (start, start);
    let (mut escaped, mut replaced) = (false, false);
    loop {
        at += memchr2(b'"', b'\\', &bytes[at..])?;
        if bytes[at] == b'"' {
            break;
        }
        buffer.push_str(&raw[copied..at]);
        escaped = true;
        let (character, length) = read_escape(bytes.get(at..)?)?;
        replaced |= character.is_none();
        buffer.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        at += length;
        copied = at;
    }
    if escaped {
        buffer.push_str(&raw[copied..at]);
    }
    // A minimum over all bytes instead of an early exit, so that the compiler vectorizes it.
    replaced |= bytes[start..at].iter().fold(u8::MAX, |least, &byte| least.min(byte)) < b' ';
    Some(Read { end: at + 1, escaped, replaced })
}

/// The offset of the closing quotation mark.
pub fn end_of_string(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr(b'"', &rest[at..])?;
        if !is_escaped(rest, at) {
            return Some(at);
        }
        at += 1;
    }
}

/// Whether the byte at `at` is escaped by a backslash before it.
pub(super) fn is_escaped(bytes: &[u8], at: usize) -> bool {
    bytes[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// Appends the decoded text; `None` if an escape is invalid.
pub(super) fn unescape(piece: &str, out: &mut String) -> Option<()> {
    let bytes = piece.as_bytes();
    let mut at = 0;
    while let Some(offset) = memchr(b'\\', &bytes[at..]) {
        out.push_str(&piece[at..at + offset]);
        at += offset;
        let (character, length) = read_escape(&bytes[at..])?;
        out.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        at += length;
    }
    out.push_str(&piece[at..]);
    Some(())
}

/// The character of an escape, and its length; no character for half a surrogate pair.
fn read_escape(rest: &[u8]) -> Option<(Option<char>, usize)> {
    let character = match rest.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        &byte @ (b'"' | b'\\' | b'/') => char::from(byte),
        b'u' => return read_unicode(rest),
        _ => return None,
    };
    Some((Some(character), 2))
}

fn read_unicode(rest: &[u8]) -> Option<(Option<char>, usize)> {
    const LENGTH: usize = 6;
    let first = hex(rest.get(2..LENGTH)?)?;
    if let (0xd800..0xdc00, Some([b'\\', b'u', digits @ ..])) =
        (first, rest.get(LENGTH..2 * LENGTH))
        && let Some(second @ 0xdc00..0xe000) = hex(digits)
    {
        let pair = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
        return Some((char::from_u32(pair), 2 * LENGTH));
    }
    Some((char::from_u32(first), LENGTH))
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |sum, &digit| Some(sum << 4 | char::from(digit).to_digit(16)?))
}

/// Writes the text as a JSON string.
pub(super) fn write_string(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    write_escaped(out, text);
    out.push('"');
}

/// Writes the text as part of a JSON string.
pub(super) fn write_escaped(out: &mut String, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    while let Some(offset) = next_special(&bytes[copied..]) {
        let at = copied + offset;
        out.push_str(&text[copied..at]);
        copied = at + 1;
        match bytes[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            byte => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.push_str(&text[copied..]);
}

/// The offset of the next character that must be escaped.
fn next_special(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 16;
    let special = |byte: u8| byte < b' ' || byte == b'"' || byte == b'\\';
    // Block by block without a branch per byte, so that the compiler vectorizes it.
    let plain = bytes
        .chunks_exact(BLOCK)
        .take_while(|block| block.iter().fold(0, |any, &byte| any | u8::from(special(byte))) == 0)
        .count()
        * BLOCK;
    bytes[plain..].iter().position(|&byte| special(byte)).map(|offset| plain + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_decoded_like_serde() {
        for raw in [
            r#""""#,
            r#""plain ä€𝄞""#,
            r#""\"\\\/\b\f\n\r\t""#,
            r#""\u0041\u00e4\ud834\udd1e\u0000""#,
            r#""a\u003cb""#,
        ] {
            let mut buffer = String::new();
            let read = read_string(raw, 1, &mut buffer).unwrap();
            let text = if read.escaped { buffer.as_str() } else { &raw[1..read.end - 1] };
            assert_eq!(text, serde_json::from_str::<String>(raw).unwrap());
            assert_eq!(read.end, raw.len());
            let mut written = String::new();
            write_string(&mut written, text);
            assert_eq!(serde_json::from_str::<String>(&written).unwrap(), text);
        }
    }

    #[test]
    fn half_a_surrogate_pair_is_replaced() {
        for (raw, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""a\udc00b""#, "a\u{fffd}b"),
            (r#""\ud800\ud834\udd1e""#, "\u{fffd}𝄞"),
            (r#""\ud800\n""#, "\u{fffd}\n"),
        ] {
            let mut buffer = String::new();
            assert!(read_string(raw, 1, &mut buffer).unwrap().replaced);
            assert_eq!(buffer, expected);
        }
    }

    #[test]
    fn invalid_strings_are_rejected() {
        for raw in [r#"""#, r#""abc"#, r#""\"#, r#""\x""#, r#""\u12""#, r#""\u12g4""#] {
            assert!(read_string(raw, 1, &mut String::new()).is_none(), "{raw}");
        }
    }
}
