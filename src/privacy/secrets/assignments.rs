//! A telling name and its value: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`, `<password>…`.

use super::{
    Found,
    names::{Kind, kind_of},
    rules::run,
    values::{Written, secret_in},
};
use crate::privacy::find::memchr2;

/// How far a name reaches to either side of the word that announced it.
const NAME_BYTES_MAX: usize = 64;

/// How far an unquoted value is followed before it is judged; a secret is then followed to its end.
const VALUE_BYTES_MAX: usize = 128;

/// The secret assigned to the name around `at`.
pub(super) fn assignment(text: &[u8], at: usize) -> Option<Found> {
    let (start, end) = name_around(text, at);
    let place = Place::after(text, start, end)?;
    let kind = kind_of(&text[start..end])?;
    let header = matches!(kind, Kind::Authorization | Kind::Cookie);
    let place = Place { header, ..place };
    place.secret(text, kind).or_else(|| place.behind_type(text)?.secret(text, kind))
}

/// A name and what it says, where name and value are given apart: a member of a JSON object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    kind: Kind,
    written: Written,
}

impl Name {
    /// What this name says of its value, if anything. A sentence or a piece of code is no name.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        if !name.iter().all(|&byte| in_name(byte) || matches!(byte, b' ' | b':' | b'/' | b'$')) {
            return None;
        }
        let written = if is_upper(name) { Written::Environment } else { Written::Quoted };
        kind_of(name).map(|kind| Self { kind, written })
    }

    /// The part of the value that must not be kept.
    pub(crate) fn secret_in(self, value: &[u8]) -> Option<Found> {
        if value.is_empty() {
            return None;
        }
        secret_in(self.kind, self.written, value, 0, value.len())
    }
}

/// The whole name a telling word is part of.
fn name_around(text: &[u8], at: usize) -> (usize, usize) {
    let before = text[..at].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| in_name(**byte));
    let mut start = at - before.count();
    // The `n` of an escaped line break is none of the name's.
    if start > 0
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b'r' | b't')
        && start < at
    {
        start += 1;
    }
    let rest = &text[at..text.len().min(at + NAME_BYTES_MAX)];
    let end = at + run(rest, in_name);
    if text[start..end].eq_ignore_ascii_case(b"key") {
        start -= word_before_key(&text[..start]);
    }
    (start, end)
}

/// In prose, an API key has its first word apart.
fn word_before_key(before: &[u8]) -> usize {
    let words: [&[u8]; 4] = [b"api ", b"access ", b"secret ", b"private "];
    let fits = |word: &&&[u8]| {
        before.len() >= word.len() && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
    };
    words.iter().find(fits).map_or(0, |word| word.len())
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Where a value begins, and what ends it.
struct Place {
    written: Written,
    start: usize,
    /// The quotation mark around the value and how many backslashes stand before it.
    quote: Option<(u8, usize)>,
    /// Whether the next tag ends it.
    element: bool,
    /// Whether it goes to the end of the line.
    header: bool,
}

impl Place {
    /// The place of the value behind a name, if there is one.
    fn after(text: &[u8], name: usize, end: usize) -> Option<Self> {
        let before = &text[..name];
        let is_element = text.get(end) == Some(&b'>') && before.ends_with(b"<");
        if is_element {
            let place = Self {
                written: Written::Quoted,
                start: end + 1,
                quote: None,
                element: true,
                header: false,
            };
            return Some(place);
        }
        let quoted_name = quote_at(&text[end..]).map_or(0, |(_, backslashes)| backslashes + 1);
        let mut at = end + quoted_name;
        let blanks = blanks(&text[at..]);
        let Some(sign) = sign(&text[at + blanks..]) else {
            let flag = quoted_name == 0 && blanks > 0 && text[name..].starts_with(b"--");
            return flag.then(|| Self::at(text, at + blanks, Written::Flag));
        };
        at += blanks + sign;
        let tight = blanks == 0 && text[at - 1] == b'=';
        let more_blanks = self::blanks(&text[at..]);
        let capitals = is_upper(&text[name..end]);
        let mut place = Self::at(text, at + more_blanks, Written::Loose);
        place.written = match (tight && more_blanks == 0, place.quote.is_some()) {
            (true, _) if capitals => Written::Environment,
            (_, true) if capitals && quoted_name > 0 => Written::Environment,
            (_, true) => Written::Quoted,
            (true, false) if text[name..].starts_with(b"--") => Written::Flag,
            (true, false) => Written::Tight,
            (false, false) => Written::Loose,
        };
        Some(place)
    }

    fn at(text: &[u8], at: usize, written: Written) -> Self {
        let quote = quote_at(&text[at..]);
        let start = at + quote.map_or(0, |(_, backslashes)| backslashes + 1);
        Self { written, start, quote, element: false, header: false }
    }

    /// In `password: str = "…"` the value of the second sign, behind the type.
    fn behind_type(&self, text: &[u8]) -> Option<Self> {
        const TYPE_BYTES_MAX: usize = 48;
        if self.written != Written::Loose {
            return None;
        }
        let rest = &text[self.start..text.len().min(self.start + TYPE_BYTES_MAX)];
        let sign = run(rest, |byte| !matches!(byte, b'=' | b'\n' | b';' | b',' | b'"' | b'\''));
        if !rest[sign..].starts_with(b"= ") {
            return None;
        }
        let at = self.start + sign + 1;
        let place = Self::at(text, at + blanks(&text[at..]), Written::Quoted);
        place.quote.is_some().then_some(place)
    }

    /// The secret that stands here. A value without its closing quotation mark ends with the line.
    fn secret(&self, text: &[u8], kind: Kind) -> Option<Found> {
        let rest = &text[self.start..];
        let length = match self.quote {
            Some((quote, backslashes)) => quoted_length(rest, quote, backslashes),
            None => self.length(&rest[..rest.len().min(VALUE_BYTES_MAX)]),
        };
        // What looks like an opening quotation mark may be a closing one: `ask('Password: ', 1)`.
        if length == 0
            || self.quote.is_some() && matches!(rest[0], b',' | b')' | b']' | b'}' | b';')
        {
            return None;
        }
        let end = self.start + length;
        if self.element && !text[end..].starts_with(b"</") {
            return None; // `user:<password>@host`
        }
        let mut found = secret_in(kind, self.written, text, self.start, end)?;
        if self.quote.is_none() && length == VALUE_BYTES_MAX && found.end == end {
            found.end += self.length(&text[end..]);
        }
        Some(found)
    }

    /// How far an unquoted value goes.
    fn length(&self, rest: &[u8]) -> usize {
        if self.header {
            return run(rest, in_header);
        }
        let ends: &[u8] = match self.written {
            _ if self.element => b"<\n",
            Written::Environment => b"\"'`",
            _ => b"\"'`;,&|",
        };
        let is_end = |at: usize, byte: u8| {
            (byte.is_ascii_whitespace() && !self.element)
                || ends.contains(&byte)
                || byte == b'\\'
                    && matches!(rest.get(at + 1), None | Some(b'n' | b'r' | b't' | b'"' | b'\\'))
        };
        let mut length =
            rest.iter().enumerate().position(|(at, &byte)| is_end(at, byte)).unwrap_or(rest.len());
        // What ends a statement or a sentence is no part of the value.
        while length > 0
            && matches!(rest[length - 1], b';' | b',' | b')' | b'}' | b']')
            && !self.element
        {
            if matches!(rest[length - 1], b')' | b'}' | b']')
                && rest[..length].iter().any(|b| b"({[".contains(b))
            {
                break;
            }
            length -= 1;
        }
        length
    }
}

fn in_header(byte: u8) -> bool {
    !matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\')
}

fn blanks(rest: &[u8]) -> usize {
    rest.iter().take(16).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The length of what assigns: `=`, `:`, `:=`, `=>`; but not `==`, `::` or `://`.
fn sign(rest: &[u8]) -> Option<usize> {
    match rest {
        [b'=', b'=', ..] | [b':', b':' | b'/', ..] => None,
        [b':', b'=', ..] | [b'=', b'>', ..] => Some(2),
        [b'=' | b':', ..] => Some(1),
        _ => None,
    }
}

/// A quotation mark, and the backslashes before it: JSON within a string has one, or three, or seven.
fn quote_at(rest: &[u8]) -> Option<(u8, usize)> {
    let backslashes = run(&rest[..rest.len().min(16)], |byte| byte == b'\\');
    match rest.get(backslashes) {
        Some(quote @ (b'"' | b'\'')) => Some((*quote, backslashes)),
        _ => None,
    }
}

fn quoted_length(rest: &[u8], quote: u8, backslashes: usize) -> usize {
    let mut at = 0;
    while let Some(offset) = memchr2(quote, b'\n', &rest[at..]) {
        at += offset;
        let before = rest[..at].iter().rev().take(64).take_while(|byte| **byte == b'\\').count();
        let closes = if backslashes == 0 { before % 2 == 0 } else { before <= backslashes };
        if rest[at] == b'\n' {
            return at;
        }
        if closes {
            return at - before.min(backslashes);
        }
        at += 1;
    }
    rest.len()
}

fn is_upper(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}
