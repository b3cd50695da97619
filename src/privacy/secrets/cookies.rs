//! Cookies: `Cookie: sid=…; theme=dark`, `Set-Cookie: sid=…; Path=/`, `curl -b sid=…`.

use super::{
    Found,
    names::Kind,
    rules::{run, word},
    values::looks_made,
};

/// How much is judged, and how much of each cookie. What follows is taken when that decides, so that a
/// text of nothing but harmless cookies is still read in linear time.
const JUDGED_BYTES_MAX: usize = 512;
const COOKIE_BYTES_MAX: usize = 128;

/// What a server says about a cookie, which is no cookie itself and may stay.
const ATTRIBUTES: &[&str] = &["path", "domain", "expires", "max-age", "samesite"];

/// The cookies in the header's value at `start`, from behind the first one's name to the last one's end,
/// if one of them looks like more than a preference.
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

/// Where the value of a cookie stands.
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

    /// This cookie and all that follow it.
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
