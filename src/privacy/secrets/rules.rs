//! The type of a rule, and the checks that most rules share.

use super::{
    Found,
    randomness::{JUDGED_BYTES_MAX, is_generated, is_varied},
};
use crate::work;

/// One kind of secret.
pub(super) struct Rule {
    /// Its name in the placeholder: `[redacted:github-token]`.
    pub(super) name: &'static str,
    /// Literals of at least three bytes. Every such secret contains one of them.
    pub(super) triggers: &'static [&'static str],
    pub(super) shape: Shape,
}

/// What must follow or surround a trigger.
pub(super) enum Shape {
    /// The trigger starts a token and determines its kind.
    Token(Token),
    /// The trigger is inside of a token, with at least this many bytes before it.
    Around(usize, Token),
    /// Any other check. The trigger may have any letter case.
    Custom(fn(text: &[u8], at: usize) -> Option<Found>),
}

/// The body of a token after its prefix.
#[derive(Clone, Copy)]
pub(super) struct Token {
    body: fn(u8) -> bool,
    /// The minimum length of the body: at most half of the real length, so that truncated tokens
    /// are redacted, too.
    bytes_min: usize,
    /// Whether the length is exact, for prefixes that occur in other words.
    exact: bool,
}

impl Rule {
    /// Whether the trigger matches here, with the case sensitivity of the rule.
    pub(super) fn is_trigger(&self, rest: &[u8], trigger: &str) -> bool {
        let trigger = trigger.as_bytes();
        match self.shape {
            Shape::Token(_) | Shape::Around(..) => rest.starts_with(trigger),
            Shape::Custom(_) => {
                rest.get(..trigger.len()).is_some_and(|given| given.eq_ignore_ascii_case(trigger))
            }
        }
    }

    /// The secret whose trigger of `length` bytes is at `at`.
    pub(super) fn check(&self, text: &[u8], at: usize, length: usize) -> Option<Found> {
        let (start, end) = match self.shape {
            Shape::Custom(check) => return check(text, at),
            Shape::Token(token) => (at, token.end(text, at, at + length)?),
            Shape::Around(before_min, token) => token.around(text, at, length, before_min)?,
        };
        Some(Found { start, end, rule: self.name })
    }
}

impl Token {
    /// Only the first bytes decide, then the rest is included: a prefix repeated over megabytes
    /// costs no more than its length.
    fn end(self, text: &[u8], start: usize, body: usize) -> Option<usize> {
        let rest = text.get(body..)?;
        if !starts_word(text, start) {
            return None;
        }
        let judged = &rest[..run(&rest[..rest.len().min(JUDGED_BYTES_MAX)], self.body)];
        if judged.len() < self.bytes_min {
            return None;
        }
        // Sixteen capitals are too few to always look random.
        let is_code = self.exact && judged.iter().all(|&byte| upper(byte)) && is_varied(judged);
        if !is_code && !is_generated(judged) {
            return None;
        }
        if self.exact {
            let end = body + self.bytes_min;
            return text.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric()).then_some(end);
        }
        Some(body + judged.len() + run(&rest[judged.len()..], self.body))
    }

    /// Both ends of the token around a trigger.
    fn around(
        self,
        text: &[u8],
        at: usize,
        length: usize,
        before_min: usize,
    ) -> Option<(usize, usize)> {
        const BEFORE_BYTES_MAX: usize = 96;
        let before = text[..at].iter().rev().take(BEFORE_BYTES_MAX);
        let before = before.take_while(|byte| (self.body)(**byte)).count();
        let (start, body) = (at - before, at + length);
        let rest = text.get(body..)?;
        let after = run(&rest[..rest.len().min(JUDGED_BYTES_MAX)], self.body);
        // The text after a placeholder was already checked together with the replaced text.
        let is_whole = text[..start].last() != Some(&b']');
        let is_long = is_whole && before >= before_min && after >= self.bytes_min;
        if !is_long || !starts_word(text, start) || !is_generated(&text[start..body + after]) {
            return None;
        }
        Some((start, body + after + run(&rest[after..], self.body)))
    }
}

/// Whether a word can start here: not after a letter or digit, except in an escape such as `\n`
/// (JSON inside of text).
pub(super) fn starts_word(text: &[u8], at: usize) -> bool {
    match &text[..at] {
        [] | [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
        [.., b'\\', b'u', a, b, c, d]
            if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) =>
        {
            true
        }
        [.., before] => !before.is_ascii_alphanumeric(),
    }
}

/// `xxxxxxxx`, a placeholder for a token in documentation.
pub(super) fn is_filler(body: &[u8]) -> bool {
    body.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.' | b'_' | b'-' | b':' | b'0'))
}

/// The number of bytes of a class at the start.
pub(super) fn run(bytes: &[u8], class: fn(u8) -> bool) -> usize {
    let length = bytes.iter().position(|&byte| !class(byte)).unwrap_or(bytes.len());
    work::count(length + 1);
    length
}

pub(super) fn alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

pub(super) fn word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

pub(super) fn dotted(byte: u8) -> bool {
    word(byte) || byte == b'.'
}

pub(super) fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

pub(super) fn upper_dashed(byte: u8) -> bool {
    upper(byte) || byte == b'-'
}

pub(super) fn hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'-'
}

pub(super) fn base64(byte: u8) -> bool {
    word(byte) || matches!(byte, b'+' | b'/' | b'=')
}

pub(super) fn base64_url(byte: u8) -> bool {
    word(byte) || byte == b'='
}

/// All characters of tokens: base64, dots, and URL escapes.
pub(super) fn percent_encoded(byte: u8) -> bool {
    base64(byte) || matches!(byte, b'%' | b'.')
}

pub(super) fn colons(byte: u8) -> bool {
    dotted(byte) || byte == b':'
}

pub(super) fn tilde(byte: u8) -> bool {
    dotted(byte) || byte == b'~'
}

pub(super) const fn token(
    name: &'static str,
    triggers: &'static [&'static str],
    token: Token,
) -> Rule {
    Rule { name, triggers, shape: Shape::Token(token) }
}

pub(super) const fn around(
    name: &'static str,
    triggers: &'static [&'static str],
    before_min: usize,
    token: Token,
) -> Rule {
    Rule { name, triggers, shape: Shape::Around(before_min, token) }
}

pub(super) const fn custom(
    name: &'static str,
    triggers: &'static [&'static str],
    check: fn(&[u8], usize) -> Option<Found>,
) -> Rule {
    Rule { name, triggers, shape: Shape::Custom(check) }
}

pub(super) const fn at_least(bytes_min: usize, body: fn(u8) -> bool) -> Token {
    assert!(bytes_min <= JUDGED_BYTES_MAX, "more than is judged");
    Token { body, bytes_min, exact: false }
}

pub(super) const fn exactly(bytes: usize, body: fn(u8) -> bool) -> Token {
    assert!(bytes <= JUDGED_BYTES_MAX, "more than is judged");
    Token { body, bytes_min: bytes, exact: true }
}
