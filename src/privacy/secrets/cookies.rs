//! Cookies: `Cookie: sid=…; theme=dark`, `Set-Cookie: sid=…; Path=/`, `curl -b sid=…`.

use super::{
    Found,
    names::Kind,
    rules::{run, word},
    values::looks_made,
};

/// The bytes that are classified, in total and of each cookie. If they look like a secret, the rest
/// is redacted, too. So a text of harmless cookies takes linear time.
const JUDGED_BYTES_MAX: usize = 512;
const COOKIE_BYTES_MAX: usize = 128;

/// Attributes of a cookie, which are not secrets.
const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite"];

/// The cookies of the header value at `start`, from the first value to the end of the last, if one
/// of them looks like more than a preference.
pub(super) fn cookies(text: &[u8], start: usize) -> Option<Found> {
    let judged = &text[..text.len().min(start + JUDGED_BYTES_MAX)];
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
