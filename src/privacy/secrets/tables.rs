//! Secrets in tables, named by the header of their column: CSV, TSV, Markdown, `psql`, columns
//! aligned with blanks.

use super::{
    Found,
    names::{Kind, kind_of},
    rules::run,
    values::{AssignmentSyntax, is_code, secret_in},
};
use crate::work;

const LINE_BYTES_MAX: usize = 1 << 10;
const CELLS_MAX: usize = 64;

/// The secrets of the table whose header contains the name at `name..end`, and the offset up to
/// which the text was read. `None` if this is no header.
pub(super) fn table(text: &[u8], name: usize, end: usize) -> Option<(Vec<Found>, usize)> {
    let separator = Separator::behind(&text[end..]).or_else(|| Separator::before(&text[..name]))?;
    column_kind(&text[name..end])?;
    let before = &text[name.saturating_sub(LINE_BYTES_MAX)..name];
    let header = name - before.iter().rev().take_while(|byte| **byte != b'\n').count();
    work::count(name - header);
    let Some(mut line) = Line::at(text, header) else {
        return Some((Vec::new(), name + LINE_BYTES_MAX)); // The line is too long.
    };
    let mut found = Vec::new();
    // Most lines with a comma are code: the next one shows it before anything is collected.
    let columns = line.cells(text, separator).count();
    let is_like =
        |next: &Line| next.is_rule(text) || next.cells(text, separator).count() == columns;
    let is_header = columns > 1 && Line::at(text, line.end + 1).is_some_and(|next| is_like(&next));
    if !is_header || !line.is_names(text) {
        return Some((found, line.end));
    }
    let kinds: Vec<Option<Kind>> =
        line.cells(text, separator).map(|(start, end)| column_kind(&text[start..end])).collect();
    while let Some(next) = Line::at(text, line.end + 1)
        && is_like(&next)
    {
        let named = next.cells(text, separator).zip(&kinds);
        found.extend(named.filter_map(|((start, end), kind)| {
            let is_plain = !next.is_rule(text) && !is_code(&text[start..end]);
            secret_in((*kind).filter(|_| is_plain)?, AssignmentSyntax::Listed, text, start, end)
        }));
        line = next;
    }
    Some((found, line.end))
}

fn column_kind(name: &[u8]) -> Option<Kind> {
    const NAME_BYTES_MAX: usize = 32;
    const PASSWORDS: [&str; 4] = ["passwort", "kennwort", "senha", "wachtwoord"];
    if PASSWORDS.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes())) {
        return Some(Kind::Password);
    }
    let kind = if name.len() <= NAME_BYTES_MAX { kind_of(name) } else { None };
    kind.filter(|kind| !matches!(kind, Kind::MaybePassword | Kind::Authorization | Kind::Cookie))
}

/// What is between two cells.
#[derive(Clone, Copy, PartialEq)]
enum Separator {
    Byte(u8),
    Blanks,
}

impl Separator {
    fn behind(rest: &[u8]) -> Option<Self> {
        let rest = rest.strip_prefix(b"\"").unwrap_or(rest);
        match rest {
            [byte @ (b',' | b';' | b'\t' | b'|'), ..] => Some(Self::Byte(*byte)),
            [b' ', ..] => {
                let blanks = run(&rest[..rest.len().min(64)], |byte| byte == b' ');
                match rest.get(blanks) {
                    Some(b'|') => Some(Self::Byte(b'|')),
                    Some(byte) if blanks > 1 && byte.is_ascii_alphabetic() => Some(Self::Blanks),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    fn before(before: &[u8]) -> Option<Self> {
        const BLANKS_MAX: usize = 64;
        let before = before.strip_suffix(b"\"").unwrap_or(before);
        let blanks = before.iter().rev().take(BLANKS_MAX).take_while(|byte| **byte == b' ').count();
        match (before[..before.len() - blanks].last()?, blanks) {
            (byte @ (b',' | b';' | b'\t'), 0) | (byte @ b'|', _) => Some(Self::Byte(*byte)),
            (byte, 2..) if byte.is_ascii_graphic() => Some(Self::Blanks),
            _ => None,
        }
    }
}

/// A line without the prefix of a listing or a diff.
struct Line {
    start: usize,
    end: usize,
}

impl Line {
    /// The line at `at`; `None` at the end of the text and if the line is too long.
    fn at(text: &[u8], at: usize) -> Option<Self> {
        let rest = text.get(at..)?;
        let length = run(&rest[..rest.len().min(LINE_BYTES_MAX)], |byte| byte != b'\n');
        if rest.is_empty() || length == LINE_BYTES_MAX {
            return None;
        }
        Some(Self { start: at + listing_prefix(&rest[..length]), end: at + length })
    }

    /// Whether it has nothing but names, as a header has.
    fn is_names(&self, text: &[u8]) -> bool {
        text[self.start..self.end]
            .iter()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-. \t,;|\"#/\r".contains(byte))
    }

    /// `----+----`, `|---|:--:|`
    fn is_rule(&self, text: &[u8]) -> bool {
        let line = text[self.start..self.end].trim_ascii();
        line.len() > 1 && line.iter().all(|byte| b"-+|:= ".contains(byte))
    }

    /// Both ends of each cell, without blanks and quotation marks.
    fn cells<'a>(
        &self,
        text: &'a [u8],
        separator: Separator,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        let (mut at, end) = (Some(self.start), self.end);
        let is_end = move |at: usize| match separator {
            Separator::Byte(byte) => text[at] == byte,
            Separator::Blanks => text[at..end].starts_with(b"  "),
        };
        let cells = std::iter::from_fn(move || {
            let start = at?;
            // A quoted cell may contain the separator.
            let quoted = match &text[start..end] {
                [b'"', inside @ ..] => memchr::memchr(b'"', inside).map_or(0, |at| at + 1),
                _ => 0,
            };
            let cell_end = (start + quoted..end).find(|at| is_end(*at));
            let cell = trimmed(text, start, cell_end.unwrap_or(end));
            at = cell_end.map(|end| match separator {
                Separator::Byte(_) => end + 1,
                Separator::Blanks => end + run(&text[end..], |byte| byte == b' '),
            });
            at = at.filter(|at| separator != Separator::Blanks || *at < end);
            Some(cell)
        });
        cells.take(CELLS_MAX)
    }
}

/// The range without blanks and quotation marks at its ends.
fn trimmed(text: &[u8], start: usize, end: usize) -> (usize, usize) {
    let is_edge = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'`');
    let cell = &text[start..end];
    let first = cell.iter().position(|byte| !is_edge(byte)).unwrap_or(cell.len());
    let last = cell.iter().rposition(|byte| !is_edge(byte)).map_or(first, |last| last + 1);
    (start + first, start + last)
}

/// The length of a line number and an arrow, or the sign of a diff.
pub(super) fn listing_prefix(line: &[u8]) -> usize {
    const ARROW: &[u8] = "→".as_bytes();
    const NUMBER_BYTES_MAX: usize = 12;
    let number = run(&line[..line.len().min(NUMBER_BYTES_MAX)], |byte| {
        byte == b' ' || byte.is_ascii_digit()
    });
    match line {
        _ if line[number..].starts_with(ARROW) => number + ARROW.len(),
        [b'+', b'-', ..] => 0, // the border of a table
        [b'+' | b'-', ..] => 1,
        _ => 0,
    }
}
