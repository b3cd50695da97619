//! Values assigned to names of secrets: `DB_PASSWORD=…`, `"apiKey": "…"`, `--token …`,
//! `<password>…`.

use super::{
    Found,
    after_name::AfterName,
    names::{Kind, kind_of},
    punctuation::{
        CDATA_END, Operator, brackets, count_blanks, element_start, literal_prefix, quote_at,
        quoted_length, sign, starts_line, yaml_property,
    },
    randomness::is_generated,
    rules::{percent_encoded, run},
    shapes::{block_end, wrapped_end},
    tables::table,
    values::{AssignmentSyntax, is_spoken_secret, secret_in},
};
use crate::work;

/// The maximum length of a name on either side of its trigger.
const NAME_BYTES_MAX: usize = 64;

/// How much of an unquoted value is classified. A secret is then redacted to its end.
const VALUE_BYTES_MAX: usize = 128;

/// The secret assigned to the name around `at`.
pub(super) fn assignment(text: &[u8], at: usize) -> Option<Found> {
    let (start, end) = name_around(text, at);
    // `AWS::IAM::AccessKey` is a type, and `arn:aws:…:secret:…` an ARN.
    if matches!(text[..start], [.., b':', b':'] | [.., b':', b'*', b':'])
        || is_arn(text, start, end)
    {
        return None;
    }
    let place = Place::after(text, start, end)?;
    let Some(kind) = kind_of(&text[start..end]) else {
        return several(text, start, end, &place);
    };
    let header = matches!(kind, Kind::Authorization | Kind::Cookie);
    if header && place.written == AssignmentSyntax::Bare {
        return None;
    }
    let place = Place { header, ..place };
    if place.is_type(text) {
        return place.behind_type(text)?.secret(text, kind);
    }
    place.secret(text, kind).or_else(|| place.behind_type(text)?.secret(text, kind))
}

/// The secret assigned to a name that ends in `code`, perhaps two words.
pub(super) fn code(text: &[u8], at: usize) -> Option<Found> {
    const BETWEEN_BYTES_MAX: usize = 16;
    let rest = &text[at..text.len().min(at + BETWEEN_BYTES_MAX)];
    let word = rest.windows(4).position(|word| word.eq_ignore_ascii_case(b"code"))?;
    assignment(text, at + word)
}

/// The secrets of the table whose header has the name around `at`, and how far it was read.
pub(super) fn table_around(text: &[u8], at: usize) -> Option<(Vec<Found>, usize)> {
    let (start, end) = name_around(text, at);
    if start < end { table(text, start, end) } else { None }
}

/// The values of a name in the plural: `api_tokens = ["…", "…"]`, `API_KEYS=…,…`. Tokens have to
/// look generated.
fn several(text: &[u8], name: usize, end: usize, place: &Place) -> Option<Found> {
    const LIST_BYTES_MAX: usize = 1 << 10;
    const ITEM_BYTES_MIN: usize = 10;
    let kind = kind_of_several(&text[name..end])?;
    let list = &text[place.start..text.len().min(place.start + LIST_BYTES_MAX)];
    let separates: fn(u8) -> bool = match list.first()? {
        b'[' => |byte| byte.is_ascii_whitespace() || b"[,\"'\\".contains(&byte),
        _ if place.written == AssignmentSyntax::Environment => |byte| byte == b',',
        _ => return None,
    };
    // People choose passwords, and with more characters than tokens have.
    let is_chosen = kind == Kind::Password && list[0] == b'[';
    let in_item: fn(u8) -> bool = match is_chosen {
        true => |byte| byte.is_ascii_graphic() && !b"[],\"'\\".contains(&byte),
        false => percent_encoded,
    };
    let (mut at, mut found) = (0, None);
    loop {
        at += run(&list[at..], separates);
        let item = &list[at..at + run(&list[at..], in_item)];
        let (start, item_end) = (place.start + at, place.start + at + item.len());
        let is_secret = match is_chosen {
            true => secret_in(kind, AssignmentSyntax::Listed, text, start, item_end).is_some(),
            false => item.len() >= ITEM_BYTES_MIN && is_generated(item),
        };
        match &mut found {
            _ if !is_secret => break,
            Some(Found { end, .. }) => *end = item_end,
            None => found = Some(Found { start, end: item_end, rule: kind.rule() }),
        }
        at += item.len();
    }
    found
}

/// What a name in the plural implies about each of its values.
fn kind_of_several(name: &[u8]) -> Option<Kind> {
    let name = name.strip_suffix(b"s").or_else(|| name.strip_suffix(b"S"))?;
    kind_of(name).filter(|kind| *kind != Kind::AnyKey)
}

/// Whether the name is between two colons without spaces.
fn is_arn(text: &[u8], start: usize, end: usize) -> bool {
    text[..start].ends_with(b":")
        && text.get(end) == Some(&b':')
        && text.get(end + 1) != Some(&b' ')
}

/// The name of a JSON member and what it implies about the value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Name {
    kind: Kind,
    written: AssignmentSyntax,
}

impl Name {
    /// Classifies a name. Sentences and code are not names.
    pub(crate) fn of(name: &[u8]) -> Option<Self> {
        if !name.iter().all(|&byte| in_name(byte) || matches!(byte, b' ' | b':' | b'/' | b'$')) {
            return None;
        }
        let written =
            if is_upper(name) { AssignmentSyntax::Environment } else { AssignmentSyntax::Quoted };
        match kind_of(name) {
            Some(kind) => Some(Self { kind, written }),
            None => Some(Self { kind: kind_of_several(name)?, written: AssignmentSyntax::Listed }),
        }
    }

    /// The range of the value to redact.
    pub(crate) fn secret_in(self, value: &[u8]) -> Option<Found> {
        if value.is_empty() {
            return None;
        }
        secret_in(self.kind, self.written, value, 0, value.len())
    }
}

/// The complete name around a trigger.
fn name_around(text: &[u8], at: usize) -> (usize, usize) {
    let before = text[..at].iter().rev().take(NAME_BYTES_MAX).take_while(|byte| in_name(**byte));
    let mut start = at - before.count();
    // The `n` of an escaped line break is not part of the name.
    if start > 0
        && text[start - 1] == b'\\'
        && matches!(text[start], b'n' | b'r' | b't')
        && start < at
    {
        start += 1;
    }
    let rest = &text[at..text.len().min(at + NAME_BYTES_MAX)];
    let end = at + run(rest, in_name);
    let words: [&[u8]; 2] = [b"key", b"code"];
    if words.iter().any(|word| text[start..end].eq_ignore_ascii_case(word)) {
        start -= word_before_key(&text[..start]);
    }
    (start, end)
}

/// In prose, `API key` is two words.
fn word_before_key(before: &[u8]) -> usize {
    let words: [&[u8]; 7] = [
        b"api ",
        b"access ",
        b"secret ",
        b"private ",
        b"verification ",
        b"one-time ",
        b"security ",
    ];
    let fits = |word: &&&[u8]| {
        before.len() >= word.len() && before[before.len() - word.len()..].eq_ignore_ascii_case(word)
    };
    words.iter().find(fits).map_or(0, |word| word.len())
}

fn in_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The position of a value, and what ends it.
pub(super) struct Place {
    pub(super) written: AssignmentSyntax,
    pub(super) start: usize,
    /// The quotation mark around the value, and the number of backslashes before it.
    pub(super) quote: Option<(u8, usize)>,
    /// Whether the next tag ends it.
    pub(super) element: bool,
    /// Whether it extends to the end of the line.
    pub(super) header: bool,
    /// Whether it is a block of lines, each indented as much as the first.
    pub(super) block: bool,
}

impl Place {
    /// The position of the value after a name, if there is one.
    fn after(text: &[u8], name: usize, end: usize) -> Option<Self> {
        if let Some(start) = element_start(text, name, end) {
            let blanks =
                run(&text[start..text.len().min(start + 64)], |byte| byte.is_ascii_whitespace());
            let is_cell = text[..start].ends_with(b"<td>") || text[..start].ends_with(b"<dd>");
            let written = if is_cell { AssignmentSyntax::Spoken } else { AssignmentSyntax::Quoted };
            let start = start + blanks;
            return Some(Self { element: true, ..Self::plain(written, start) });
        }
        let quoted_name = quote_at(&text[end..]).map_or(0, |(_, backslashes)| backslashes + 1);
        let mut at = end + quoted_name;
        at += brackets(&text[at..], quoted_name > 0 || text[..name].ends_with(b"["));
        // `**Password**: …`
        if text[at..].starts_with(b"**:") {
            at += 2;
        }
        let blanks = count_blanks(&text[at..]);
        let Some((sign, length)) = sign(&text[at + blanks..]) else {
            let rest = AfterName { text, name, end, at, blanks };
            return rest
                .value_member(quoted_name > 0)
                .or_else(|| rest.without_sign(quoted_name > 0));
        };
        if sign == Operator::Comma {
            let rest = AfterName { text, name, end, at, blanks };
            let value = at + blanks + length;
            return rest.value_member(quoted_name > 0).or_else(|| {
                let value = value + count_blanks(&text[value..]);
                let place = Self::at(text, value, AssignmentSyntax::Listed);
                let is_listed = quoted_name > 0 || text[..name].ends_with(b"{:");
                (is_listed && place.quote.is_some()).then_some(place)
            });
        }
        at += blanks + length;
        let tight = blanks == 0 && text[at - 1] == b'=';
        let more_blanks = count_blanks(&text[at..]);
        let capitals = is_upper(&text[name..end]);
        let mut value = at + more_blanks;
        if sign == Operator::Colon {
            value += yaml_property(&text[value..]);
            value += bold(&text[value..]);
        }
        // `"db_password": {"value": "…"}`
        if quoted_name > 0 && text.get(value) == Some(&b'{') {
            return AfterName { text, name, end, at: value, blanks: 0 }.value_member(true);
        }
        let mut place = Self::at(text, value, AssignmentSyntax::Loose);
        if sign == Operator::Compares {
            place.written = AssignmentSyntax::Listed;
            return place.quote.is_some().then_some(place);
        }
        place.written = match (tight && more_blanks == 0, place.quote.is_some()) {
            (true, _) if capitals => AssignmentSyntax::Environment,
            (_, true) if capitals && quoted_name > 0 => AssignmentSyntax::Environment,
            (_, true) => AssignmentSyntax::Quoted,
            _ if sign == Operator::Default => return None,
            (true, false) if text[name..].starts_with(b"--") => AssignmentSyntax::Flag,
            (true, false) => AssignmentSyntax::Tight,
            (false, false) => AssignmentSyntax::Loose,
        };
        if place.quote.is_none() {
            let is_dotted = text[name..end].contains(&b'.');
            let is_file = match sign {
                Operator::Colon => place.written == AssignmentSyntax::Loose,
                _ => place.written == AssignmentSyntax::Tight && is_dotted,
            };
            if (sign == Operator::Colon || text[place.start..].starts_with(b"<<"))
                && let Some(below) = place.on_next_line(text, name)
            {
                return Some(below);
            }
            if is_file && !capitals && place.fills_line(text, name) {
                place.written = AssignmentSyntax::Line;
            }
        }
        Some(place)
    }

    pub(super) fn at(text: &[u8], at: usize, written: AssignmentSyntax) -> Self {
        let at = at + literal_prefix(&text[at..]);
        let quote = quote_at(&text[at..]);
        let mut start = at + quote.map_or(0, |(_, backslashes)| backslashes + 1);
        // Three quotation marks, in JSON each with its backslashes.
        if let Some((quote, backslashes)) = quote {
            let mark = backslashes + 1;
            let is_next = |start: usize| quote_at(&text[start..]) == Some((quote, backslashes));
            if is_next(start) && is_next(start + mark) {
                start += 2 * mark;
            }
        }
        Self { quote, ..Self::plain(written, start) }
    }

    fn plain(written: AssignmentSyntax, start: usize) -> Self {
        Self { written, start, quote: None, element: false, header: false, block: false }
    }

    /// Whether the line has nothing but name and value, as in YAML and properties files.
    fn fills_line(&self, text: &[u8], name: usize) -> bool {
        let rest = &text[self.start..text.len().min(self.start + VALUE_BYTES_MAX)];
        let value = run(rest, |byte| !byte.is_ascii_whitespace());
        let is_last = matches!(rest.get(value), None | Some(b'\n' | b'\r'));
        value > 0 && is_last && starts_line(text, name)
    }

    /// A value on the next line: in YAML, of a `<<EOF`, or printed below `Password:`.
    fn on_next_line(&self, text: &[u8], name: usize) -> Option<Self> {
        let rest = &text[self.start..];
        let in_mark: fn(u8) -> bool = match rest.starts_with(b"<<") {
            true => |byte| b"<~-'\"_".contains(&byte) || byte.is_ascii_uppercase(),
            false => |byte| b"|>+-2".contains(&byte),
        };
        let mark = run(&rest[..rest.len().min(16)], in_mark);
        let line =
            mark + run(&rest[mark..rest.len().min(mark + 4)], |byte| b"\r\n".contains(&byte));
        if line == mark {
            return None;
        }
        let indent = run(&rest[line..rest.len().min(line + 64)], |byte| b" \t+".contains(&byte));
        let value = &rest[line + indent..];
        let value = &value[..run(&value[..value.len().min(VALUE_BYTES_MAX)], |byte| byte != b'\n')];
        let value = value.trim_ascii_end();
        let is_value = match mark {
            0 => !value.iter().any(|byte| byte.is_ascii_whitespace() || b":{}[]".contains(byte)),
            _ => value.len() < VALUE_BYTES_MAX,
        };
        let is_yaml = indent > 0 && starts_line(text, name);
        let written = match mark {
            0 if is_yaml => AssignmentSyntax::Loose,
            0 => AssignmentSyntax::Spoken,
            _ => AssignmentSyntax::Quoted,
        };
        let fits = !value.is_empty() && is_value && (is_yaml || mark == 0 || rest[0] == b'<');
        let start = self.start + line + indent;
        fits.then_some(Self { written, start, block: mark > 0, ..*self })
    }

    /// Whether this is a type followed by a value: `ERROR_BAD_PASSWORD: WIN32_ERROR = 86`.
    fn is_type(&self, text: &[u8]) -> bool {
        let rest = &text[self.start..text.len().min(self.start + VALUE_BYTES_MAX)];
        let word = run(rest, |byte| byte.is_ascii_alphanumeric() || b"_:<>[]&".contains(&byte));
        matches!(self.written, AssignmentSyntax::Loose | AssignmentSyntax::Line)
            && word > 0
            && rest[word..].starts_with(b" = ")
    }

    /// In `password: str = "…"`, the value after the type.
    fn behind_type(&self, text: &[u8]) -> Option<Self> {
        if self.written != AssignmentSyntax::Loose {
            return None;
        }
        quoted_behind_type(text, self.start)
    }

    /// The secret at this position. Without a closing quotation mark it ends with the line.
    fn secret(&self, text: &[u8], kind: Kind) -> Option<Found> {
        let rest = &text[self.start..];
        let length = match self.quote {
            Some((quote, backslashes)) => quoted_length(rest, quote, backslashes),
            None if self.element => self.length(rest),
            None => self.length(&rest[..rest.len().min(VALUE_BYTES_MAX)]),
        };
        // An apparent opening quotation mark may be a closing one: `ask('Password: ', 1)`.
        if length == 0
            || self.quote.is_some() && matches!(rest[0], b',' | b')' | b']' | b'}' | b';')
        {
            return None;
        }
        // Backticks run a shell command.
        let is_command = matches!(self.quote, Some((b'`', _)))
            && rest[..length].iter().any(u8::is_ascii_whitespace);
        if is_command {
            return None;
        }
        let end = self.start + length;
        let behind = text[end..].strip_prefix(CDATA_END).unwrap_or(&text[end..]);
        if self.element && !behind.trim_ascii_start().starts_with(b"</") {
            return None; // `user:<password>@host`
        }
        let mut found = secret_in(kind, self.written, text, self.start, end)?;
        let is_cut = self.quote.is_none() && !self.element && length == VALUE_BYTES_MAX;
        if is_cut && found.end == end {
            found.end += self.length(&text[end..]);
        }
        if self.written == AssignmentSyntax::Spoken {
            found.end += changed_to(&text[found.end..]);
        }
        if self.block {
            found.end = block_end(text, self.start, found.end);
        } else if self.quote.is_none() {
            found.end = wrapped_end(text, found.start, found.end);
        }
        if let Some((_, backslashes)) = self.quote
            && found.end == end
        {
            found.end += changed_value(&text[end..], backslashes + 1);
        }
        Some(found)
    }

    /// The end of an unquoted value.
    fn length(&self, rest: &[u8]) -> usize {
        if self.header {
            return run(rest, in_header);
        }
        if self.written == AssignmentSyntax::Quoted && !self.element {
            let length = run(rest, |byte| !matches!(byte, b'\n' | b'\r'));
            return rest[..length].trim_ascii_end().len();
        }
        let ends: &[u8] = match self.written {
            _ if self.element => b"<\r\n",
            AssignmentSyntax::Environment => b"\"'`",
            _ => b"\"'`;,&|",
        };
        let is_end = |at: usize, byte: u8| {
            ((byte.is_ascii_whitespace() || byte.is_ascii_control()) && !self.element)
                || ends.contains(&byte)
                || byte == b'\\'
                    && matches!(rest.get(at + 1), None | Some(b'n' | b'r' | b't' | b'"' | b'\\'))
        };
        let mut length =
            rest.iter().enumerate().position(|(at, &byte)| is_end(at, byte)).unwrap_or(rest.len());
        work::count(length + 1);
        if self.element {
            return rest[..length].strip_suffix(CDATA_END).unwrap_or(&rest[..length]).len();
        }
        // Punctuation at the end is not part of the value. Searched once: a value may end in a
        // megabyte of brackets.
        let opening = rest[..length].iter().position(|byte| b"({[".contains(byte));
        while length > 0 && matches!(rest[length - 1], b';' | b',' | b')' | b'}' | b']') {
            if matches!(rest[length - 1], b')' | b'}' | b']')
                && opening.is_some_and(|opening| opening < length)
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

/// The quoted value after a type and an equals sign: `str = "…"`.
pub(super) fn quoted_behind_type(text: &[u8], start: usize) -> Option<Place> {
    const TYPE_BYTES_MAX: usize = 48;
    const LIFETIME: &[u8] = b"&'static ";
    let start = if text[start..].starts_with(LIFETIME) { start + LIFETIME.len() } else { start };
    let rest = &text[start..text.len().min(start + TYPE_BYTES_MAX)];
    let sign = run(rest, |byte| !matches!(byte, b'=' | b'\n' | b';' | b',' | b'"' | b'\'' | b'`'));
    if !rest[sign..].starts_with(b"= ") {
        return None;
    }
    let at = start + sign + 1;
    let place = Place::at(text, at + count_blanks(&text[at..]), AssignmentSyntax::Quoted);
    place.quote.is_some().then_some(place)
}

/// The length of the new value of a change: `password = "…" -> "…"`. Without its closing quotation
/// mark, like the old one.
fn changed_value(rest: &[u8], mark: usize) -> usize {
    const ARROW: &[u8] = b" -> ";
    let behind = mark + ARROW.len();
    let quote = rest.get(behind..).and_then(quote_at);
    match quote {
        Some((quote, backslashes)) if rest[mark..].starts_with(ARROW) => {
            let start = behind + backslashes + 1;
            start + quoted_length(&rest[start..], quote, backslashes)
        }
        _ => 0,
    }
}

/// The length of the new value in a sentence: `the password from … to …`.
fn changed_to(rest: &[u8]) -> usize {
    const VALUE_BYTES_MAX: usize = 64;
    let Some(value) = rest.strip_prefix(b" to ") else { return 0 };
    let value = &value[..value.len().min(VALUE_BYTES_MAX)];
    let length = run(value, |byte| byte.is_ascii_graphic() && !b",;".contains(&byte));
    if is_spoken_secret(&value[..length], false) { 4 + length } else { 0 }
}

/// The length of the mark that ends bold text, and the blanks after it: `**Password:** …`.
fn bold(rest: &[u8]) -> usize {
    match rest {
        [b'*', b'*', behind @ ..] => 2 + count_blanks(behind),
        _ => 0,
    }
}

pub(super) fn is_upper(name: &[u8]) -> bool {
    name.iter().any(u8::is_ascii_uppercase) && !name.iter().any(u8::is_ascii_lowercase)
}
