//! Redacts only the two ends of a very long string.
//!
//! Of a megabyte of output a quarter is kept, so decoding and searching all of it is wasted work.
//! This reads only complete lines at both ends. The result equals full redaction as long as no
//! match spans lines: every secret except a key block ends at the end of its line, and its trigger
//! is at most half a kilobyte before it, within the margin. Strings that may contain a tag or a key
//! block, or unusual escapes, are redacted in full.

use std::{borrow::Cow, fmt::Write as _};

use memchr::{memchr_iter, memmem};

use crate::{
    clip::{ceil_boundary, floor_boundary, side},
    json_strings::{is_escaped, unescape, write_escaped},
    secrets::{self, Scan},
    tags, work, write_redacted,
};

/// Extra bytes to read, because a placeholder may be shorter than its secret.
const MARGIN_BYTES: usize = 4 << 10;
/// Space for the note about the cut, and for some escapes.
pub(super) const NOTE_BYTES: usize = 16 << 10;
/// The maximum distance of a line break. Text without line breaks is redacted in full.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Below this length the middle is too short to skip.
pub(super) fn bytes_min(limit: usize) -> usize {
    2 * (limit + MARGIN_BYTES + LINE_BYTES_MAX)
}

/// Writes the redacted ends of a string around a note, as a JSON string. `raw` is its JSON content.
/// `None`, and nothing written, if it must be redacted in full.
pub(super) fn write(out: &mut String, raw: &str, redact: bool, limit: usize) -> Option<()> {
    if raw.len() < bytes_min(limit) || may_reach_across_lines(raw.as_bytes()) {
        return None;
    }
    let side = side(limit);
    let head = head_of(raw, side + MARGIN_BYTES)?;
    let tail = tail_of(raw, side + MARGIN_BYTES)?;
    if head.len() + tail.len() > raw.len() {
        return None;
    }
    let mut text = String::with_capacity(head.len().max(tail.len()));
    out.reserve_exact(2 * side + NOTE_BYTES);
    let head = redacted(head, redact, &mut text).filter(|head| head.len() >= side)?;
    let head = &head[..floor_boundary(&head, side)];
    let (start, kept) = (out.len(), head.len());
    out.push('"');
    write_escaped(out, head);
    let tail = redacted(tail, redact, &mut text).filter(|tail| tail.len() >= side);
    let Some(tail) = tail else {
        out.truncate(start);
        return None;
    };
    let tail = &tail[ceil_boundary(&tail, tail.len() - side)..];
    let (kept, whole, hash) = (kept + tail.len(), raw.len(), blake3::hash(raw.as_bytes()));
    let _ = write!(out, "\\n[cut: all but {kept} of {whole} bytes as sent, blake3 {hash}]\\n");
    write_escaped(out, tail);
    out.push('"');
    Some(())
}

/// Whether the string may contain something that spans lines: a tag, a key block, or unusual
/// escapes.
fn may_reach_across_lines(raw: &[u8]) -> bool {
    holds_odd_escape(raw) || holds_key_block(raw) || holds_tag(raw)
}

/// Whether a letter, digit or sign is written as a numeric escape, such as `\u003c` for `<`.
/// Without them, the searches below find their text as it is.
fn holds_odd_escape(raw: &[u8]) -> bool {
    memmem::find_iter(raw, b"u00").any(|at| matches!(raw.get(at + 3), Some(b'2'..=b'7')))
}

fn holds_key_block(raw: &[u8]) -> bool {
    const DASHES: &[u8] = b"-----";
    const WORD: &[u8] = b"begin";
    let dashes = memmem::Finder::new(DASHES);
    let mut rest = raw;
    while let Some(at) = dashes.find(rest) {
        // There may be more dashes; the last five count.
        let more = rest[at..].iter().take_while(|byte| **byte == b'-').count();
        rest = &rest[at + more..];
        if rest.get(..WORD.len()).is_some_and(|word| word.eq_ignore_ascii_case(WORD)) {
            return true;
        }
    }
    false
}

fn holds_tag(raw: &[u8]) -> bool {
    memchr_iter(b'<', raw).any(|at| may_be_tag(&raw[at + 1..]))
}

/// Whether one of our tag names follows a `<`, possibly after whitespace and slashes, plain or
/// escaped.
fn may_be_tag(mut rest: &[u8]) -> bool {
    loop {
        rest = match rest {
            [b'\\', b'u', ..] => {
                let behind = rest.get(6..).unwrap_or_default();
                &behind[tags::color(behind)..]
            }
            [b'\\', _, rest @ ..] | [b'/', rest @ ..] => rest,
            _ if tags::blank(rest) > 0 => &rest[tags::blank(rest)..],
            _ => break,
        }
    }
    tags::NAMES.iter().any(|name| {
        rest.get(..name.len()).is_some_and(|given| given.eq_ignore_ascii_case(name.as_bytes()))
    })
}

/// Complete lines at the start with about `wanted` decoded bytes or more.
fn head_of(raw: &str, wanted: usize) -> Option<&str> {
    let from = wanted + bytes_lost(raw.as_bytes().get(..wanted)?);
    let zone = raw.as_bytes().get(..from + LINE_BYTES_MAX)?;
    let breaks = memmem::find_iter(&zone[from..], LINE_BREAK).map(|at| from + at);
    line_end(raw, breaks).map(|end| &raw[..end])
}

/// Complete lines at the end with about `wanted` decoded bytes or more.
fn tail_of(raw: &str, wanted: usize) -> Option<&str> {
    let bytes = raw.as_bytes();
    let lost = bytes_lost(&bytes[bytes.len().checked_sub(wanted)?..]);
    let to = bytes.len().checked_sub(wanted + lost)?;
    let from = to.checked_sub(LINE_BYTES_MAX)?;
    let breaks = memmem::rfind_iter(&bytes[from..to], LINE_BREAK).map(|at| from + at);
    line_end(raw, breaks).map(|start| &raw[start..])
}

/// A line break in JSON.
const LINE_BREAK: &[u8] = b"\\n";

/// The offset after the first real line break, not a backslash followed by `n`.
fn line_end(raw: &str, mut breaks: impl Iterator<Item = usize>) -> Option<usize> {
    let at = breaks.find(|at| !is_escaped(raw.as_bytes(), *at))?;
    Some(at + LINE_BREAK.len())
}

/// Estimates how many bytes decoding removes.
fn bytes_lost(raw: &[u8]) -> usize {
    memchr_iter(b'\\', raw).count() + 4 * memmem::find_iter(raw, b"\\u").count()
}

/// Decodes a piece and replaces its secrets.
fn redacted<'a>(raw: &str, redact: bool, text: &'a mut String) -> Option<Cow<'a, str>> {
    text.clear();
    unescape(raw, text)?;
    if redact && let Some(plain) = secrets::redact_escaped(text) {
        *text = plain;
    }
    let mut scan = Scan::new(text.as_bytes());
    let first = if redact { scan.next() } else { None };
    if work::is_over() {
        return None;
    }
    if first.is_none() {
        return Some(Cow::Borrowed(text));
    }
    let mut out = String::with_capacity(text.len());
    write_redacted(text, first.into_iter().chain(scan), |piece| out.push_str(piece));
    Some(Cow::Owned(out))
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*, sample::select};

    use super::*;
    use crate::{Policy, redact_text};

    const LIMIT: usize = 2048;

    /// Ordinary lines, and secrets, many of them across the end of a line.
    const PIECES: &[&str] = &[
        "test shop::cart::case_1f ... ok\n",
        "   a line that is \"quoted\" and 'quoted', with a tab\tand an ä€𝄞\n",
        "\u{1b}[32mgreen\u{1b}[0m <div class=\"private\">Vec<String> if a < b {}</div>\n",
        "export API_TOKEN=8f3kd93kdk20dk3k4k5\n",
        "password: \"hunter2 and more\"\n",
        "{\"nested\": \"json\\nwith\\\\n\", \"token\": \"a8d7f6g5h4j3k2l1\"}\n",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
        "postgres://ada:s3cr3t@db.example/shop\n",
        "Authorization: Bearer abcdefghijklmnop0123\\",
        "\\n\\\\n\\",
        "no end of line here ",
        "-----------------------------------------------\n",
        "\n",
    ];

    /// Content that must be redacted in full.
    const REACHING: &[&str] = &[
        "<private>",
        "</PRIVATE >",
        "< \n / system-reminder>",
        "<\\/private>",
        "\\u003cprivate\\u003e",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA75mJZ0Zb5u1J8bqv7Q\n",
        "-----END RSA PRIVATE KEY-----\n",
    ];

    fn of(raw: &str, redact: bool, limit: usize) -> Option<String> {
        let mut out = String::from("before");
        match write(&mut out, raw, redact, limit) {
            Some(()) => Some(serde_json::from_str(&out["before".len()..]).unwrap()),
            None => (out != "before").then_some(out),
        }
    }

    fn raw_of(text: &str) -> String {
        let json = serde_json::to_string(text).unwrap();
        json[1..json.len() - 1].to_owned()
    }

    /// The two ends of the full redaction.
    fn whole_way(text: &str) -> (String, String) {
        let policy = Policy { field_bytes_max: LIMIT, ..Policy::default() };
        split(&redact_text(text, policy).text)
    }

    fn split(redacted: &str) -> (String, String) {
        let (head, rest) = redacted.split_once("\n[cut: ").expect("it is too long");
        (head.into(), rest.split_once("]\n").expect("a note has an end").1.into())
    }

    fn text() -> impl Strategy<Value = String> {
        let pieces = vec(prop_oneof![3 => Just(PIECES[0]), 2 => select(PIECES)], 2000..2500);
        let reaching = vec((select(REACHING), any::<proptest::sample::Index>()), 0..3);
        (pieces, reaching).prop_map(|(mut pieces, reaching)| {
            for (piece, at) in reaching {
                pieces.insert(at.index(pieces.len()), piece);
            }
            pieces.concat()
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn both_ways_keep_the_same_two_ends(text in text()) {
            if let Some(ends) = of(&raw_of(&text), true, LIMIT) {
                prop_assert!(ends.len() <= LIMIT);
                prop_assert_eq!(split(&ends), whole_way(&text));
            }
        }
    }

    fn long(pieces: &[&str]) -> String {
        pieces.iter().copied().cycle().take(3000).collect()
    }

    #[test]
    fn text_without_multi_line_matches_is_read_at_both_ends_only() {
        for pieces in PIECES.windows(2).filter(|pieces| pieces.concat().contains('\n')) {
            let text = long(&[pieces, &[PIECES[0]]].concat());
            let ends = of(&raw_of(&text), true, LIMIT).expect("nothing reaches across lines");
            assert_eq!(split(&ends), whole_way(&text), "{pieces:?}");
            let hash = blake3::hash(raw_of(&text).as_bytes()).to_string();
            assert!(
                ends.contains(&format!("of {} bytes as sent, blake3 {hash}", raw_of(&text).len()))
            );
        }
    }

    #[test]
    fn text_with_possible_multi_line_matches_is_read_in_full() {
        let lines = long(&PIECES[..1]);
        for piece in REACHING.iter().filter(|piece| !piece.starts_with("-----END")) {
            for at in [0, 10, 1000, lines.len() / 2, lines.len() - 1000, lines.len()] {
                let mut text = lines.clone();
                text.insert_str(at, piece);
                assert_eq!(of(&raw_of(&text), true, LIMIT), None, "{piece} at {at}");
            }
        }
        for raw in
            [r"\u003cprivate>", r"\u003Cprivate>", r"<\u0070rivate>", r"\\u00\u0033cprivate>"]
        {
            let lines = raw_of(&lines);
            assert_eq!(of(&format!("{lines}{raw}{lines}"), true, LIMIT), None, "{raw}");
        }
    }

    #[test]
    fn text_without_lines_or_of_secrets_only_is_read_in_full() {
        assert_eq!(of(&"x".repeat(200_000), true, LIMIT), None);
        let key = format!("API_TOKEN={}\n", "a1b2c3d4".repeat(1000));
        assert_eq!(of(&raw_of(&key.repeat(30)), true, LIMIT), None);
        assert_eq!(of(&r"bad \x escape\n".repeat(20_000), true, LIMIT), None);
        assert_eq!(of(&raw_of(&long(&PIECES[..1])[..30_000]), true, LIMIT), None);
    }
}
