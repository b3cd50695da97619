//! Credentials in the value of an `Authorization` header.

use super::{
    Found,
    names::Kind,
    rules::run,
    shapes, token_at,
    values::{JUDGED_BYTES_MAX, has_digit, is_code, is_constant, is_placeholder},
};

/// How long a list of credentials is.
const LIST_BYTES_MAX: usize = 1 << 10;

/// The part after the scheme of an `Authorization` header, or the whole value if there is no
/// scheme.
pub(super) fn credentials(text: &[u8], start: usize, end: usize) -> Option<Found> {
    let value = &text[start..end];
    let scheme = &value[..run(value, |byte| byte.is_ascii_alphanumeric() || byte == b'-')];
    let blanks = run(&value[scheme.len()..], |byte| byte == b' ');
    let start = if blanks > 0 { start + scheme.len() + blanks } else { start };
    let value = &text[start..end];
    if let Some(token) = token_at(text, start).or_else(|| shapes::jwt(text, start)) {
        return Some(token);
    }
    let judged = &value[..value.len().min(JUDGED_BYTES_MAX)];
    let word = &judged[..run(judged, |byte| byte.is_ascii_alphanumeric())];
    let prose = word.len() < judged.len()
        && word.iter().all(u8::is_ascii_lowercase)
        && matches!(judged[word.len()], b' ' | b'.' | b',');
    // Most schemes have one word after them; these have a list that contains the secret.
    let lists: [&[u8]; 5] = [b"AWS4-HMAC-SHA256", b"Digest", b"OAuth", b"Hawk", b"Signature"];
    let end = if lists.contains(&scheme) {
        end_of_list(text, end)
    } else {
        start + run(value, |byte| !byte.is_ascii_whitespace())
    };
    let bytes_min = if blanks > 0 { 6 } else { 12 };
    let is_type = memchr::memmem::find(judged, b" = ").is_some();
    let plausible = judged.len() >= bytes_min
        && !prose
        && !is_type
        && !is_constant(judged.strip_suffix(b",").unwrap_or(judged))
        && !is_code(judged)
        && !is_placeholder(judged)
        && (blanks > 0 || has_digit(judged));
    plausible.then_some(Found { start, end, rule: Kind::Authorization.rule() })
}

/// The end of a list whose values are in quotation marks: `Digest username="me", response="…"`. It
/// is known up to the first of them.
fn end_of_list(text: &[u8], end: usize) -> usize {
    let text = &text[..text.len().min(end + LIST_BYTES_MAX)];
    let mut at = end;
    loop {
        let slashes = run(&text[at..], |byte| byte == b'\\');
        let value = at + slashes + 1;
        if !text[..at].ends_with(b"=") || text.get(value - 1) != Some(&b'"') {
            return at;
        }
        let Some(length) = memchr::memchr(b'"', &text[value..]) else { return at };
        at = value + length + 1;
        at += run(&text[at..], |byte| byte.is_ascii() && !b"\n\r\"'`\\".contains(&byte));
    }
}
