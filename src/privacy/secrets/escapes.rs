//! Secrets with escapes inside: terminal colors, UTF-16, URL encoding, `\x41`, `&quot;`.
//!
//! The rules know plain text only. [`Plain`] is the decoded text, with the original offset of each
//! byte. Secrets found in it are removed from the original, whose other escapes stay.

use super::Scan;
use crate::{byte_search::memchr2, write_placeholder};

const ESCAPE: u8 = 0x1b;

/// Redacts secrets that contain escapes; `None` if there are none.
pub(crate) fn redact_escaped(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if !holds_escape(bytes) {
        return None;
    }
    let plain = Plain::of(bytes);
    let mut scan = Scan::new(&plain.text);
    let first = scan.next()?;
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    for found in std::iter::once(first).chain(scan) {
        let (start, end) = (plain.source_start(found.start), plain.source_end(found.end));
        // Offsets are boundaries of escapes or characters, but untrusted text may mix them.
        if start >= copied && text.is_char_boundary(start) && text.is_char_boundary(end) {
            out.push_str(&text[copied..start]);
            write_placeholder(found.rule, |piece| out.push_str(piece));
            copied = end;
        }
    }
    out.push_str(&text[copied..]);
    Some(out)
}

/// The decoded text.
struct Plain {
    text: Vec<u8>,
    /// Where its offsets differ from the original, in order.
    parts: Vec<Part>,
}

/// From here on, both advance equally.
struct Part {
    plain: u32,
    source: u32,
    /// How many original bytes the first byte represents.
    first_bytes: u8,
}

impl Plain {
    fn of(bytes: &[u8]) -> Self {
        let mut plain = Self { text: Vec::with_capacity(bytes.len()), parts: Vec::new() };
        plain.part(0, 1);
        let mut at = 0;
        while let Some(offset) = next_candidate(&bytes[at..]) {
            plain.text.extend_from_slice(&bytes[at..at + offset]);
            at += offset;
            match escape_at(&bytes[at..]) {
                Some((length, None)) => {
                    at += length;
                    plain.part(at, 1);
                }
                Some((length, Some(byte))) => {
                    plain.part(at, length as u8);
                    plain.text.push(byte);
                    at += length;
                    plain.part(at, 1);
                }
                None => {
                    plain.text.push(bytes[at]);
                    at += 1;
                }
            }
        }
        plain.text.extend_from_slice(&bytes[at..]);
        plain
    }

    fn part(&mut self, source: usize, first_bytes: u8) {
        let part = Part { plain: self.text.len() as u32, source: source as u32, first_bytes };
        match self.parts.last_mut() {
            Some(last) if last.plain == part.plain => *last = part,
            _ => self.parts.push(part),
        }
    }

    fn part_of(&self, at: usize) -> &Part {
        let behind = self.parts.partition_point(|part| part.plain as usize <= at);
        &self.parts[behind.saturating_sub(1)]
    }

    fn source_start(&self, at: usize) -> usize {
        let part = self.part_of(at);
        part.source as usize + (at - part.plain as usize)
    }

    /// The original offset after the byte before `end`, without the escapes that follow it.
    fn source_end(&self, end: usize) -> usize {
        let last = end.saturating_sub(1);
        let part = self.part_of(last);
        let first_bytes = if last == part.plain as usize { part.first_bytes } else { 1 };
        self.source_start(last) + usize::from(first_bytes)
    }
}

/// Whether there is any escape. Most texts have none, so this searches for few bytes.
fn holds_escape(bytes: &[u8]) -> bool {
    memchr2(0, ESCAPE, bytes).is_some()
        || holds_one(bytes, b'%', b'&')
        || holds_one(bytes, b'\\', b'\\')
}

fn holds_one(bytes: &[u8], one: u8, two: u8) -> bool {
    let mut rest = bytes;
    while let Some(at) = memchr2(one, two, rest) {
        if escape_at(&rest[at..]).is_some() {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

/// Whether an escape may start here.
fn next_candidate(bytes: &[u8]) -> Option<usize> {
    let is_candidate = |byte: &u8| matches!(*byte, 0 | ESCAPE | b'%' | b'\\' | b'&');
    bytes.iter().position(is_candidate)
}

/// The length of the escape at the start, and its character, if any.
fn escape_at(rest: &[u8]) -> Option<(usize, Option<u8>)> {
    match rest {
        // UTF-16 text read as UTF-8.
        [0, ..] => Some((1, None)),
        [ESCAPE, sequence @ ..] => Some((1 + sequence_length(sequence), None)),
        [b'%', a, b, ..] => printable(*a, *b).map(|byte| (3, Some(byte))),
        [b'\\', b'x' | b'X', b'1', b'b' | b'B', rest @ ..] => {
            coloured(rest).map(|more| (4 + more, None))
        }
        [b'\\', b'0', b'3', b'3', rest @ ..] => coloured(rest).map(|more| (4 + more, None)),
        [b'\\', b'e', rest @ ..] => coloured(rest).map(|more| (2 + more, None)),
        [b'\\', b'x', a, b, ..] => printable(*a, *b).map(|byte| (4, Some(byte))),
        [b'\\', b'u', b'0', b'0', b'1', b'b' | b'B', rest @ ..] => {
            coloured(rest).map(|more| (6 + more, None))
        }
        [b'\\', b'u', b'0', b'0', a, b, ..] => printable(*a, *b).map(|byte| (6, Some(byte))),
        // JSON inside of JSON doubles backslashes.
        [b'\\', b'\\', ..] => {
            let more = rest.iter().take(8).take_while(|byte| **byte == b'\\').count() - 1;
            let last = &rest[more..];
            let is_last = last.get(1) != Some(&b'\\');
            let (length, character) = if is_last { escape_at(last)? } else { return None };
            character.is_none().then_some((more + length, None))
        }
        [b'&', entity @ ..] => {
            const ENTITIES: [(&[u8], u8); 8] = [
                (b"lt;", b'<'),
                (b"gt;", b'>'),
                (b"quot;", b'"'),
                (b"#34;", b'"'),
                (b"#39;", b'\''),
                (b"#x27;", b'\''),
                (b"apos;", b'\''),
                (b"amp;", b'&'),
            ];
            let (name, byte) = ENTITIES.iter().find(|(name, _)| entity.starts_with(name))?;
            Some((1 + name.len(), Some(*byte)))
        }
        _ => None,
    }
}

fn printable(a: u8, b: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = (digit(a)? * 16 + digit(b)?) as u8;
    (byte.is_ascii_graphic() || byte == b' ').then_some(byte)
}

/// The rest of a color sequence whose escape character is written out: `[32m`.
fn coloured(rest: &[u8]) -> Option<usize> {
    (rest.first() == Some(&b'[')).then(|| sequence_length(rest))
}

/// The length of a control sequence after its escape character. An unterminated one does not count.
fn sequence_length(sequence: &[u8]) -> usize {
    const BYTES_MAX: usize = 32;
    const LINK_BYTES_MAX: usize = 512;
    match sequence {
        // A placeholder after an escape character is not part of a sequence.
        _ if sequence.starts_with(b"[redacted:") => 0,
        [b'[', rest @ ..] => {
            let rest = &rest[..rest.len().min(BYTES_MAX)];
            let end = rest.iter().position(|byte| matches!(byte, 0x40..=0x7e));
            end.map_or(0, |end| end + 2)
        }
        [b']', rest @ ..] => {
            let rest = &rest[..rest.len().min(LINK_BYTES_MAX)];
            match memchr2(0x07, ESCAPE, rest) {
                Some(end) if rest[end] == 0x07 => end + 2,
                Some(end) if rest.get(end + 1) == Some(&b'\\') => end + 3,
                _ => 0,
            }
        }
        [b'(' | b')', _, ..] => 2,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BODY: &str = "16C7e42F292c6912E7710c838347Ae178B4a";

    #[test]
    fn a_token_with_escapes_is_redacted_and_other_text_stays() {
        let token = format!("ghp_{BODY}");
        let (head, tail) = BODY.split_at(9);
        let wide: String = token.chars().flat_map(|character| [character, '\0']).collect();
        let cases = [
            (format!("\x1b[32m{token}\x1b[0m!"), "\x1b[32m[redacted:github-token]\x1b[0m!"),
            (format!("a ghp_{head}\x1b[1;31m{tail}\x1b[m b"), "a [redacted:github-token]\x1b[m b"),
            (format!("\\x1b[32m{token}\\x1b[0m"), "\\x1b[32m[redacted:github-token]\\x1b[0m"),
            (format!("\\u001b[32m{token} x"), "\\u001b[32m[redacted:github-token] x"),
            (format!("é\0 \0{wide}\n\0"), "é\0 \0[redacted:github-token]\0\n\0"),
            (format!("u%3D{token}%26"), "u%3D[redacted:github-token]%26"),
            (
                "{&quot;password&quot;:&quot;hunter2&quot;}".into(),
                "{&quot;password&quot;:&quot;[redacted:password]&quot;}",
            ),
            (
                "postgres%3A%2F%2Fme%3Ahunter2%40db%2Fx".into(),
                "postgres%3A%2F%2Fme%3A[redacted:url-password]%40db%2Fx",
            ),
        ];
        for (given, expected) in cases {
            assert_eq!(redact_escaped(&given).as_deref(), Some(expected), "{given:?}");
        }
    }

    #[test]
    fn text_without_escapes_or_secrets_is_unchanged() {
        for text in
            ["plain", "100% of\\x zz", "\x1b[32mgreen\x1b[0m", "a\\path\\u1", "\x1b", "\x1b["]
        {
            assert_eq!(redact_escaped(text), None, "{text:?}");
        }
    }
}
