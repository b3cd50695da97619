//! Values that follow the name of a secret without an operator: `--password …`, `ENV TOKEN …`,
//! `password is …`, and the member `value` next to the name.

use std::iter::successors;

use memchr::memmem;

use super::{
    assignments::{Place, is_upper, quoted_behind_type},
    punctuation::{Operator, count_blanks, quote_at, sign},
    rules::run,
    values::AssignmentSyntax,
};
use crate::work;

/// What follows a name without a direct assignment.
pub(super) struct AfterName<'a> {
    pub(super) text: &'a [u8],
    pub(super) name: usize,
    pub(super) end: usize,
    /// The offset after the name's quotation mark.
    pub(super) at: usize,
    pub(super) blanks: usize,
}

impl AfterName<'_> {
    /// The member `value` next to the one with the name: `name="X" value="…"`, `{"name": "X",
    /// "value": "…"}`, the same in YAML, and `variable "X" { default = "…" }`.
    pub(super) fn value_member(&self, is_quoted: bool) -> Option<Place> {
        const VALUES: [&[u8]; 3] = [b"value", b"default", b"parametervalue"];
        let text = self.text;
        let is_value = |at: usize| {
            let fits = |word: &&&[u8]| {
                text.get(at..at + word.len()).is_some_and(|given| given.eq_ignore_ascii_case(word))
            };
            VALUES.iter().find(fits).map(|word| at + word.len())
        };
        // Other members may be in between, if the name is in quotes.
        let members = if is_quoted { 3 } else { 1 };
        let next = |&member: &usize| self.next_member(self.end_of_member(member)?);
        let behind =
            successors(self.next_member(self.at), next).take(members).find_map(is_value)?;
        let behind = behind + quote_at(&text[behind..]).map_or(0, |(_, slashes)| slashes + 1);
        let behind = behind + count_blanks(&text[behind..]);
        let (_, sign) = sign(&text[behind..]).filter(|(sign, _)| *sign != Operator::Comma)?;
        let start = behind + sign + count_blanks(&text[behind + sign..]);
        let mut place = Place::at(text, start, AssignmentSyntax::Loose);
        if place.quote.is_some() {
            let capitals = is_upper(&text[self.name..self.end]);
            place.written =
                if capitals { AssignmentSyntax::Environment } else { AssignmentSyntax::Quoted };
        }
        Some(place)
    }

    /// The start of the next member's name, after blanks and punctuation.
    fn next_member(&self, at: usize) -> Option<usize> {
        const BETWEEN_BYTES_MAX: usize = 64;
        let rest = &self.text[at..self.text.len().min(at + BETWEEN_BYTES_MAX)];
        let mut skipped = 0;
        loop {
            skipped += match &rest[skipped..] {
                [b'\\', b'n' | b'r' | b't', ..] => 2, // JSON inside of text
                [byte, ..] if byte.is_ascii_whitespace() || b",\"'\\+{".contains(byte) => 1,
                _ => break,
            };
        }
        work::count(skipped + 1);
        (skipped > 0).then_some(at + skipped)
    }

    /// The end of a member without nested members.
    fn end_of_member(&self, at: usize) -> Option<usize> {
        const MEMBER_BYTES_MAX: usize = 64;
        let rest = &self.text[at..self.text.len().min(at + MEMBER_BYTES_MAX)];
        let mut length = run(rest, |byte| !b",\n{}[]();\\".contains(&byte));
        while matches!(rest[length..], [b'\\', b'"' | b'\\', ..]) {
            length += 2 + run(&rest[length + 2..], |byte| !b",\n{}[]();\\".contains(&byte));
        }
        matches!(rest[length..], [b',' | b'\n', ..] | [b'\\', b'n', ..]).then_some(at + length)
    }

    /// `--password …`, `-storepass …`, `var token string = "…"`, `PASSWORD '…'`, `password is …`,
    /// `setPassword("…")`.
    pub(super) fn without_sign(&self, is_quoted: bool) -> Option<Place> {
        let Self { text, name, end, at, blanks } = *self;
        match text.get(at) {
            Some(b'(') if !is_quoted => {
                let place = Place::at(text, at + 1, AssignmentSyntax::Listed);
                return place.quote.is_some().then_some(place);
            }
            // `<entry key="password">…</entry>`
            Some(b'>') if is_quoted => {
                let place = Place::at(text, at + 1, AssignmentSyntax::Listed);
                return Some(Place { start: at + 1, quote: None, element: true, ..place });
            }
            // A field of a form: `name="password"`, an empty line, and the value.
            Some(b'\r' | b'\n' | b'\\') if is_quoted => {
                let is_field =
                    text[..name].ends_with(b"name=\"") || text[..name].ends_with(b"name=\\\"");
                let empty_lines: [&[u8]; 4] = [b"\r\n\r\n", b"\n\n", b"\\r\\n\\r\\n", b"\\n\\n"];
                let line = empty_lines.iter().find(|line| text[at..].starts_with(line))?;
                let place = Place::at(text, at + line.len(), AssignmentSyntax::Tight);
                return is_field.then_some(place);
            }
            // `user-secrets set "Db:Password" "…"`
            _ if is_quoted && blanks > 0 => {
                let place = Place::at(text, at + blanks, AssignmentSyntax::Listed);
                return place.quote.is_some().then_some(place);
            }
            _ if is_quoted || blanks == 0 => return None,
            _ => {}
        }
        let value = at + blanks;
        let rest = &text[value..];
        if let Some(option) = VALUE_OPTIONS.iter().find(|option| rest.starts_with(option)) {
            let value = value + option.len();
            return Some(Place::at(
                text,
                value + count_blanks(&text[value..]),
                AssignmentSyntax::Flag,
            ));
        }
        if let Some(value) = rest.strip_prefix(b"-b")
            && quote_at(value).is_some()
        {
            return Some(Place::at(text, text.len() - value.len(), AssignmentSyntax::Flag));
        }
        let is_quoted_value = quote_at(rest).is_some_and(|(quote, _)| quote != b'`');
        let written = match &text[name..end] {
            [b'-', b'-', ..] => Some(AssignmentSyntax::Flag),
            [b'-', _, _, ..] | b"requirepass" | b"masterauth" => Some(AssignmentSyntax::Tight),
            b"PASSWORD" if is_quoted_value => Some(AssignmentSyntax::Quoted),
            _ if sets_variable(&text[..name]) => Some(AssignmentSyntax::Tight),
            _ if is_quoted_value => Some(AssignmentSyntax::Listed),
            _ => None,
        };
        if let Some(written) = written {
            return Some(Place::at(text, value, written));
        }
        if let Some(words) = words_before_value(rest) {
            // A program writes this before any characters.
            let written = match rest.starts_with(b"is generated for ") {
                true => AssignmentSyntax::Environment,
                false => AssignmentSyntax::Spoken,
            };
            let value = value + words;
            let value = value + usize::from(text.get(value) == Some(&b':'));
            return Some(Place::at(text, value + count_blanks(&text[value..]), written));
        }
        let is_type =
            rest.first().is_some_and(|byte| byte.is_ascii_alphabetic() || b"*[".contains(byte));
        let typed = if is_type { quoted_behind_type(text, value) } else { None };
        typed.or_else(|| Some(Place::at(text, value + separator(rest), AssignmentSyntax::Bare)))
    }
}

/// Options with the value of a secret that is named before them: `gh secret set X --body …`.
const VALUE_OPTIONS: [&[u8]; 6] =
    [b"--value ", b"--value=", b"--body ", b"--body=", b"-b ", b"-Value "];

/// Whether a command or a Dockerfile sets what is named next: `setenv X …`, `ENV X …`, `git config
/// x …`.
fn sets_variable(before: &[u8]) -> bool {
    const COMMANDS: [&[u8]; 6] =
        [b"set ", b"ENV ", b"setenv ", b"set -gx ", b"set -x ", b"set -Ux "];
    const CONFIGURES: [&[u8]; 2] = [b"git config ", b" config set "];
    const LINE_BYTES_MAX: usize = 96;
    let line = &before[before.len().saturating_sub(LINE_BYTES_MAX)..];
    work::count(line.len());
    let line = line.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    COMMANDS.iter().any(|command| line.ends_with(command))
        || CONFIGURES.iter().any(|command| memmem::find(line, command).is_some())
}

/// The length of the words between a name and its value in a sentence: `is`, `for the database is`,
/// `was changed to`.
fn words_before_value(rest: &[u8]) -> Option<usize> {
    const WORDS_BYTES_MAX: usize = 48;
    const VERBS: [&[u8]; 8] = [
        b"is now ",
        b"is ",
        b"are ",
        b"will be ",
        b"was changed to ",
        b"has been changed to ",
        b"to ",
        b"from ",
    ];
    const LONGER: [&[u8]; 4] = [b"for ", b"of ", b"to ", b"is generated for "];
    const ENDS: [&[u8]; 3] = [b" is ", b": ", b":\n\n"];
    let words = &rest[..rest.len().min(WORDS_BYTES_MAX)];
    let words = &words[..run(words, |byte| !matches!(byte, b'.' | b',' | b';' | b'='))];
    let longer = LONGER.iter().any(|longer| rest.starts_with(longer));
    let end = ENDS.iter().filter_map(|end| Some(memmem::find(words, end)? + end.len())).min();
    end.filter(|_| longer)
        .or_else(|| VERBS.iter().find(|verb| rest.starts_with(verb)).map(|verb| verb.len()))
}

/// The length of a sign that only prose and tables have: `| password | … |`, `password → …`.
fn separator(rest: &[u8]) -> usize {
    const SIGNS: [&str; 5] = ["| ", "→ ", "-> ", "- ", "– "];
    SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())).map_or(0, |sign| sign.len())
}
