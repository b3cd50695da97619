//! A user's name and password side by side: `curl -u me:…`, a line of `.netrc`.
//!
//! Both are told by a word that may stand some way before, so the trigger is what stands next to the secret,
//! and the bytes before are looked at only when what follows could be one.

use memchr::{memchr, memmem};

use super::{Found, cookies::cookies, names::Kind, rules::run, values::is_placeholder};

/// How far before a password the word that tells what it is may stand.
const BEFORE_BYTES_MAX: usize = 512;

/// What an option of `curl` gives away: `-u me:…`, `-sSu me:…`, `--proxy-user me:…`, `-b sid=…`.
pub(super) fn curl(text: &[u8], at: usize) -> Option<Found> {
    let (option, value) = option_at(text, at)?;
    let value = value + run(&text[value..], |byte| byte == b'\\'); // JSON within a string
    let quote = text.get(value).copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let start = value + usize::from(quote.is_some());
    let found = match option {
        b'b' => cookies(text, start)?,
        _ => password(text, start, quote)?,
    };
    is_of_curl(text, at).then_some(found)
}

/// The letter of the option whose trigger stands at `at`, and where its value begins.
fn option_at(text: &[u8], at: usize) -> Option<(u8, usize)> {
    /// Options without a value, which may stand before one that has one.
    const PLAIN: &[u8] = b"sSfkLviIgNO#46";
    const LONG: &[u8] = b"-user";
    let rest = &text[at..];
    let (letter, length) = if rest[0] == b' ' {
        let length = 2 + run(&rest[2..], |byte| PLAIN.contains(&byte));
        (*rest.get(length)?, length + 1)
    } else {
        (b'u', LONG.len())
    };
    let blanks = run(&rest[length..], |byte| matches!(byte, b' ' | b'='));
    let is_known = matches!(letter, b'u' | b'U' | b'b') && (blanks > 0 || rest[0] == b' ');
    is_known.then_some((letter.to_ascii_lowercase(), at + length + blanks))
}

/// What follows the name and the colon at `start`.
fn password(text: &[u8], start: usize, quote: Option<u8>) -> Option<Found> {
    const LOGIN_BYTES_MAX: usize = 256;
    let rest = text.get(start..text.len().min(start + LOGIN_BYTES_MAX))?;
    let length = match quote {
        Some(quote) => memchr(quote, rest)?,
        None => run(rest, |byte| !byte.is_ascii_whitespace() && !b"\"'`\\;|&)".contains(&byte)),
    };
    let colon = memchr(b':', &rest[..length])?;
    let password = &rest[colon + 1..length];
    let plausible = colon > 0 && !is_placeholder(password) && !password.starts_with(b"//");
    let (start, end) = (start + colon + 1, start + length);
    plausible.then_some(Found { start, end, rule: Kind::Password.rule() })
}

/// Whether the command that `at` belongs to is `curl`. It may go on over several lines.
fn is_of_curl(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    let is_curl = |line: &[u8]| memmem::find(line, b"curl").is_some();
    let mut lines = before.rsplit(|&byte| byte == b'\n');
    let line = lines.next().unwrap_or_default();
    is_curl(line) || lines.take_while(|line| line.ends_with(b"\\")).any(is_curl)
}

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
