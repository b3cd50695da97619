//! A user's name and password side by side: a line of `.netrc`.
//!
//! It is told by a word that may stand some way before, so the trigger is what stands next to the secret,
//! and the bytes before are looked at only when what follows could be one.

use memchr::memmem;

use super::{Found, names::Kind, rules::run, values::is_placeholder};

/// How far before a password the word that tells what it is may stand.
const BEFORE_BYTES_MAX: usize = 512;

/// The password of `machine HOST login NAME password …`, on one line or several.
pub(super) fn netrc(text: &[u8], at: usize) -> Option<Found> {
    const PASSWORD: &[u8] = b"password";
    let behind = at + PASSWORD.len();
    let blanks = run(text.get(behind..)?, |byte| matches!(byte, b' ' | b'\t'));
    let start = behind + blanks;
    let end = start + run(&text[start..], |byte| !byte.is_ascii_whitespace() && byte != b'\\');
    if blanks == 0 || is_placeholder(&text[start..end]) {
        return None;
    }
    let before = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    let mut words = before.rsplit(u8::is_ascii_whitespace).filter_map(behind_line_number);
    let is_entry = loop {
        match (words.next(), words.next()) {
            (Some(_), Some(b"machine")) | (Some(b"default"), _) => break true,
            (Some(_), Some(b"login" | b"account")) => {}
            _ => break false,
        }
    };
    is_entry.then_some(Found { start, end, rule: Kind::Password.rule() })
}

/// The word, without the number and arrow that a listing puts before a line.
fn behind_line_number(word: &[u8]) -> Option<&[u8]> {
    const ARROW: &[u8] = "→".as_bytes();
    let word = memmem::rfind(word, ARROW).map_or(word, |at| &word[at + ARROW.len()..]);
    (!word.is_empty()).then_some(word)
}
