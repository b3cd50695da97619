//! Values of HTTP headers: `Authorization: Bearer …`, `Cookie: sid=…; theme=dark`, `Set-Cookie:
//! sid=…; Path=/`, `curl -b sid=…`.

use super::{
    Found,
    names::Kind,
    rules::{run, word},
    shapes, token_at,
    values::{JUDGED_BYTES_MAX, has_digit, is_code, is_constant, is_placeholder, looks_made},
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

/// The bytes that are classified, in total and of each cookie. If they look like a secret, the rest
/// is redacted, too. So a text of harmless cookies takes linear time.
const COOKIES_BYTES_MAX: usize = 512;
const COOKIE_BYTES_MAX: usize = 128;

/// Attributes of a cookie, which are not secrets.
const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite"];

/// The cookies of the header value at `start`, from the first value to the end of the last, if one
/// of them looks like more than a preference.
pub(super) fn cookies(text: &[u8], start: usize) -> Option<Found> {
    let judged = &text[..text.len().min(start + COOKIES_BYTES_MAX)];
    let first = Cookie::at(judged, start)?;
    let secret = first.and_next(judged).find(|cookie| {
        let value = &judged[cookie.value..cookie.end];
        looks_made(&value[..value.len().min(COOKIE_BYTES_MAX)])
    })?;
    let whole = Cookie { end: secret.value + run(&text[secret.value..], in_value), ..secret };
    let last = whole.and_next(text).last()?;
    Some(Found { start: first.value, end: last.end, rule: Kind::Cookie.rule() })
}

/// The range of a cookie's value.
#[derive(Clone, Copy)]
struct Cookie {
    value: usize,
    end: usize,
}

impl Cookie {
    fn at(text: &[u8], start: usize) -> Option<Self> {
        const NAME_BYTES_MAX: usize = 64;
        let rest = text.get(start..)?;
        let name = &rest[..run(&rest[..rest.len().min(NAME_BYTES_MAX)], in_name)];
        let is_attribute =
            ATTRIBUTES.iter().any(|attribute| name.eq_ignore_ascii_case(attribute.as_bytes()));
        if name.is_empty() || is_attribute || rest.get(name.len()) != Some(&b'=') {
            return None;
        }
        let value = start + name.len() + 1;
        Some(Self { value, end: value + run(&text[value..], in_value) })
    }

    /// This cookie and all that follow.
    fn and_next(self, text: &[u8]) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self), |cookie| cookie.next(text))
    }

    fn next(&self, text: &[u8]) -> Option<Self> {
        let blanks = match &text[self.end..] {
            [b';', b' ', ..] => 2,
            [b';', ..] => 1,
            _ => return None,
        };
        Self::at(text, self.end + blanks)
    }
}

fn in_name(byte: u8) -> bool {
    word(byte) || matches!(byte, b'.' | b'$' | b'%')
}

fn in_value(byte: u8) -> bool {
    !byte.is_ascii_whitespace() && !matches!(byte, b';' | b'"' | b'\'' | b'`' | b'\\')
}
