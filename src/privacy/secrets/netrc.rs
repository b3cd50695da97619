//! Passwords in `.netrc`.
//!
//! The keyword may be far before the password, so the trigger is next to the password. The text
//! before it is read only if a value that could be a secret follows.

use memchr::memmem;

use super::{Found, names::Kind, rules::run, values::is_placeholder};
use crate::work;

/// The maximum distance from the keyword to the password.
const BEFORE_BYTES_MAX: usize = 512;

/// The password of `machine HOST login NAME password …`, on one line or several.
pub(super) fn netrc(text: &[u8], at: usize) -> Option<Found> {
    const PASSWORD: &[u8] = b"password";
    let behind = at + PASSWORD.len();
    let blanks = run(text.get(behind..)?, |byte| matches!(byte, b' ' | b'\t'));
    // Without a space, the value would be the whole rest, once for each match in a text without
    // spaces.
    if blanks == 0 {
        return None;
    }
    let start = behind + blanks;
    let end = start
        + run(&text[start..], |byte| !byte.is_ascii_whitespace() && !b"\\\"'".contains(&byte));
    if is_placeholder(&text[start..end]) {
        return None;
    }
    let mut before = text[at.saturating_sub(BEFORE_BYTES_MAX)..at].to_vec();
    work::count(before.len());
    // JSON inside of text has escaped line breaks.
    for at in 1..before.len() {
        if before[at - 1] == b'\\' && matches!(before[at], b'n' | b'r' | b't') {
            before[at - 1..=at].fill(b' ');
        }
    }
    let mut words = before.rsplit(u8::is_ascii_whitespace).filter_map(behind_prefix);
    let is_entry = loop {
        match (words.next(), words.next()) {
            (Some(_), Some(b"machine")) | (Some(b"default"), _) => break true,
            (Some(_), Some(b"login" | b"account")) => {}
            _ => break false,
        }
    };
    is_entry.then_some(Found { start, end, rule: Kind::Password.rule() })
}

/// The word without prefixes of a listing or a diff: a number and an arrow, a plus or a minus.
fn behind_prefix(word: &[u8]) -> Option<&[u8]> {
    const ARROW: &[u8] = "→".as_bytes();
    let word = memmem::rfind(word, ARROW).map_or(word, |at| &word[at + ARROW.len()..]);
    let word = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
    let word = word.strip_prefix(b"\"").or_else(|| word.strip_prefix(b"'")).unwrap_or(word);
    (!word.is_empty()).then_some(word)
}
