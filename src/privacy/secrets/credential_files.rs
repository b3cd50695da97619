//! Passwords in `.netrc` and `.pgpass`.
//!
//! The keyword of `.netrc` may be far before the password, so the trigger is next to the password.
//! The text before it is read only if a value that could be a secret follows.

use memchr::{memchr, memmem};

use super::{
    Found,
    names::Kind,
    punctuation::starts_line,
    rules::{run, word},
    values::{self, is_placeholder},
};
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

/// The password on a line of `.pgpass`: `host:5432:database:user:…`. The port may be `*`.
pub(super) fn pgpass(text: &[u8], at: usize) -> Option<Found> {
    const LINE_BYTES_MAX: usize = 256;
    const HOST_BYTES_MAX: usize = 96;
    let start = at + 2 + memchr(b':', &text[at + 1..text.len().min(at + 8)])?;
    let host = text[..at].iter().rev().take(HOST_BYTES_MAX);
    let host = host.take_while(|&&byte| word(byte) || b".*".contains(&byte)).count();
    let is_port = text[at + 1] != b'*';
    let is_host = host > 0 && starts_line(text, at - host) && !text[..at].ends_with(b"arn");
    if !is_port && !is_host {
        return None;
    }
    let line = &text[start..text.len().min(start + LINE_BYTES_MAX)];
    let line = &line[..run(line, |byte| !byte.is_ascii_whitespace() && byte != b'\\')];
    let mut parts = line.splitn(3, |byte| *byte == b':');
    let (database, user, password) = (parts.next()?, parts.next()?, parts.next()?);
    let is_last = matches!(text.get(start + line.len()), None | Some(b'\n' | b'\r' | b'\\'));
    let plausible = !database.is_empty()
        && (is_port || is_last && !password.contains(&b':'))
        && !user.is_empty()
        && password.len() >= 3
        && line.len() < LINE_BYTES_MAX
        && !values::holds_placeholder(line)
        && !values::is_placeholder(password);
    let start = start + database.len() + user.len() + 2;
    plausible.then_some(Found { start, end: start + password.len(), rule: "password" })
}
