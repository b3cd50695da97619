//! Redacts JSON in one pass, without building a tree.
//!
//! Unchanged text is copied in spans as long as possible. Nesting is a list of brackets, not
//! recursion, so ten thousand levels cost ten thousand bytes.

mod neighbours;

use std::{borrow::Cow, collections::BTreeMap};

use blake3::Hasher;

use neighbours::Neighbours;

use crate::{
    Policy, clip,
    json_strings::{end_of_string, read_string, write_string},
    long_strings, personal, redact_secrets, redact_text,
    secrets::{self, Name},
    tags,
};

/// Space for the note about a cut, in addition to closing brackets.
const NOTE_BYTES_MAX: usize = 256;

/// Redacts every string of a JSON text, including member names. The result is always valid JSON:
/// invalid input becomes one string, redacted as plain text.
pub fn redact_json(raw: &str, policy: Policy) -> String {
    if policy.redact_personal
        && let Some(redacted) = personal::redact(raw, personal::Form::Json)
    {
        return redact_json(&redacted, Policy { redact_personal: false, ..policy });
    }
    let mut pass = JsonPass::new(raw, policy);
    if pass.run().is_some() {
        return pass.finish();
    }
    drop(pass);
    redact_other(raw, policy)
}

/// Invalid JSON, as a string.
#[cold]
#[inline(never)]
fn redact_other(raw: &str, policy: Policy) -> String {
    let mut out = String::new();
    write_string(&mut out, &redact_text(raw, policy).text);
    if out.len() > policy.total_bytes_max {
        let mut rest = AfterLimit { hash: Hasher::new(), bytes: out.len(), open: Vec::new() };
        rest.hash.update(out.as_bytes());
        out.clear();
        close_early(&mut out, &rest);
    }
    out
}

struct JsonPass<'a> {
    raw: &'a str,
    policy: Policy,
    at: usize,
    /// Everything before is in `out`; from here to `at` the input is copied unchanged.
    copied: usize,
    out: String,
    /// The closing brackets that are due, innermost last.
    open: Vec<u8>,
    /// For each open array, the offset up to which its strings were read as one text.
    read_together: Vec<usize>,
    /// Replacements for strings that were redacted together with their neighbors, by offset.
    replaced: BTreeMap<usize, String>,
    names: Names,
    /// The number of open brackets inside of the data of a Kubernetes secret.
    secret_depth: Option<usize>,
    /// The length of the output after the last complete value: where it may be cut.
    whole: usize,
    /// Set once the total limit is reached. Boxed, because a hash takes half a page and few values
    /// need one.
    rest: Option<Box<AfterLimit>>,
    scratch: String,
}

/// What the name before a value implies.
#[derive(Default)]
struct Names {
    name: Option<Name>,
    /// In `{"name": "API_KEY", "value": "…"}` the first member describes the second.
    described: Option<Name>,
    is_name: bool,
    is_value: bool,
    /// The next value is the data of a Kubernetes secret.
    is_secret_data: bool,
}

/// State after the total limit was reached.
struct AfterLimit {
    hash: Hasher,
    bytes: usize,
    /// The brackets that were open then.
    open: Vec<u8>,
}

/// What may come next.
#[derive(Clone, Copy, PartialEq)]
enum Expect {
    Value,
    ValueOrEnd,
    Name,
    NameOrEnd,
    CommaOrEnd,
}

impl<'a> JsonPass<'a> {
    fn new(raw: &'a str, policy: Policy) -> Self {
        Self {
            raw,
            policy,
            at: 0,
            copied: 0,
            out: String::with_capacity(
                raw.len().min(policy.field_bytes_max + long_strings::NOTE_BYTES),
            ),
            open: Vec::new(),
            read_together: Vec::new(),
            replaced: BTreeMap::new(),
            names: Names::default(),
            secret_depth: None,
            whole: 0,
            rest: None,
            scratch: String::new(),
        }
    }

    /// Processes the whole text; `None` if it is not JSON.
    fn run(&mut self) -> Option<()> {
        let mut expect = Expect::Value;
        loop {
            self.skip_blanks();
            expect = match (expect, self.byte()?) {
                (Expect::Value | Expect::ValueOrEnd, byte) if byte != b']' => self.value(byte)?,
                (Expect::Name | Expect::NameOrEnd, b'"') => self.name()?,
                (Expect::ValueOrEnd | Expect::CommaOrEnd, b']') => self.close(b']')?,
                (Expect::NameOrEnd | Expect::CommaOrEnd, b'}') => self.close(b'}')?,
                (Expect::CommaOrEnd, b',') => self.comma()?,
                _ => return None,
            };
            if expect == Expect::CommaOrEnd && self.open.is_empty() {
                self.skip_blanks();
                return (self.at == self.raw.len()).then_some(());
            }
        }
    }

    fn value(&mut self, byte: u8) -> Option<Expect> {
        match byte {
            b'{' => {
                if self.names.is_secret_data {
                    self.secret_depth = Some(self.open.len() + 1);
                }
                // `{"db_password": {"value": "…"}}`
                self.names = Names { described: self.names.name, ..Names::default() };
                return Some(self.open(b'}', Expect::NameOrEnd));
            }
            b'[' => {
                let expect = self.open(b']', Expect::ValueOrEnd);
                self.read_together.push(self.at);
                self.read_neighbours(true);
                return Some(expect);
            }
            b'"' => self.string_value()?,
            _ => self.scalar()?,
        }
        self.value_done();
        Some(Expect::CommaOrEnd)
    }

    fn open(&mut self, closing: u8, expect: Expect) -> Expect {
        self.at += 1;
        self.value_done();
        self.open.push(closing);
        expect
    }

    fn close(&mut self, closing: u8) -> Option<Expect> {
        if *self.open.last()? != closing {
            return None;
        }
        self.at += 1;
        self.names = Names::default();
        self.value_done();
        self.secret_depth.take_if(|depth| *depth == self.open.len());
        self.open.pop();
        if closing == b']' {
            self.read_together.pop();
        }
        Some(Expect::CommaOrEnd)
    }

    /// Reads the following strings of an array as one text: something may start in one and end in
    /// another.
    fn read_neighbours(&mut self, is_first: bool) {
        let Some(read_to) = self.read_together.last_mut().filter(|to| **to <= self.at) else {
            return;
        };
        let neighbours = Neighbours::gather(self.raw, self.at, is_first);
        *read_to = neighbours.end;
        self.replaced.extend(neighbours.clean(self.policy.redact_secrets));
    }

    fn comma(&mut self) -> Option<Expect> {
        self.at += 1;
        if *self.open.last()? == b'}' {
            self.names.name = None;
            return Some(Expect::Name);
        }
        self.read_neighbours(false);
        Some(Expect::Value)
    }

    fn name(&mut self) -> Option<Expect> {
        let string = self.string()?;
        let described = self.names.described;
        self.names = Names { described, ..Names::default() };
        if self.policy.redact_secrets {
            let name = string.text.as_bytes();
            self.names.name = name_of(name);
            let is_one_of = |words: &[&str]| {
                words.iter().any(|word| name.eq_ignore_ascii_case(word.as_bytes()))
            };
            self.names.is_name = is_one_of(&["name", "key", "variable", "parameterkey"]);
            self.names.is_value = is_one_of(&["value", "parametervalue"]);
            self.names.is_secret_data = matches!(name, b"data" | b"stringData")
                && secrets::is_kubernetes_secret(self.raw.as_bytes(), string.start, self.at);
        }
        self.put(string, None);
        self.skip_blanks();
        if self.byte()? != b':' {
            return None;
        }
        self.at += 1;
        Some(Expect::Value)
    }

    fn string_value(&mut self) -> Option<()> {
        let replaced = self.replaced.remove(&self.at);
        if replaced.is_none() && self.long_string().is_some() {
            return Some(());
        }
        let mut string = self.string()?;
        if self.secret_depth == Some(self.open.len()) && !string.text.is_empty() {
            let text = Cow::Borrowed("[redacted:kubernetes-secret]");
            string = StringRead { text, changed: true, ..string };
        }
        if let Some(text) = replaced {
            string = StringRead { text: Cow::Owned(text), changed: true, ..string };
        }
        if self.names.is_name {
            self.names.described = name_of(string.text.as_bytes());
        }
        let described = self.names.described.filter(|_| self.names.is_value);
        let name = described.or(self.names.name);
        self.put(string, name);
        Some(())
    }

    /// Writes the two ends of a very long string, unless it must be redacted in full.
    fn long_string(&mut self) -> Option<()> {
        let limit = self.policy.field_bytes_max.min(self.policy.total_bytes_max);
        let rest = &self.raw[self.at + 1..];
        let is_named = self.names.is_name || self.names.is_value || self.names.name.is_some();
        if is_named || rest.len() < long_strings::bytes_min(limit) {
            return None;
        }
        let string = &rest[..end_of_string(rest.as_bytes())?];
        self.copy_to(self.at);
        long_strings::write(&mut self.out, string, self.policy.redact_secrets, limit)?;
        self.at += string.len() + 2;
        self.copied = self.at;
        Some(())
    }

    /// Reads the string that starts here and removes its tags, without writing.
    fn string(&mut self) -> Option<StringRead<'a>> {
        let start = self.at;
        if let Some(text) = short_string(&self.raw[start + 1..]) {
            self.at += text.len() + 2;
            return Some(StringRead { start, text: Cow::Borrowed(text), changed: false });
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let read = read_string(self.raw, start + 1, &mut scratch)?;
        self.at = read.end;
        let text = if read.escaped {
            Cow::Owned(scratch)
        } else {
            self.scratch = scratch;
            Cow::Borrowed(&self.raw[start + 1..read.end - 1])
        };
        let stripped = tags::strip(text);
        Some(StringRead { start, text: stripped.text, changed: read.replaced || stripped.changed })
    }

    /// Writes the redacted string; unchanged if nothing was redacted.
    fn put(&mut self, string: StringRead<'_>, name: Option<Name>) {
        let StringRead { start, text, changed } = string;
        let limit = self.policy.field_bytes_max.min(self.policy.total_bytes_max);
        let hidden = redact_secrets(&text, name, self.policy.redact_secrets, limit);
        if changed || hidden.is_some() {
            self.copy_to(start);
            write_string(&mut self.out, hidden.as_deref().unwrap_or(&text));
            self.copied = self.at;
        }
        if let Cow::Owned(text) = text {
            self.scratch = text;
        }
    }

    /// A number or a literal. A number may be a secret, too.
    fn scalar(&mut self) -> Option<()> {
        let start = self.at;
        let rest = &self.raw.as_bytes()[start..];
        let length = scalar_length(rest)?;
        self.at += length;
        let number = &self.raw[start..self.at];
        let secret = self.names.name.filter(|_| rest[0].is_ascii_digit());
        let secret = secret.and_then(|name| name.secret_in(number.as_bytes())).is_some();
        if secret || length > self.policy.field_bytes_max {
            let name = self.names.name.filter(|_| secret);
            let text = redact_secrets(number, name, secret, self.policy.field_bytes_max);
            self.copy_to(start);
            write_string(&mut self.out, text.as_deref().unwrap_or(number));
            self.copied = self.at;
        }
        Some(())
    }

    /// Checks the total limit. Called at the end of every value and bracket, before the bracket
    /// counts: on overflow, the open brackets are those at `whole`.
    fn value_done(&mut self) {
        const HASHED_AT_ONCE: usize = 64 << 10;
        let length = self.out.len() + (self.at - self.copied);
        if self.rest.is_none() {
            let closing = self.open.len() + 1 + NOTE_BYTES_MAX;
            if length + closing <= self.policy.total_bytes_max {
                self.whole = length;
                return;
            }
            let rest = AfterLimit { hash: Hasher::new(), bytes: 0, open: self.open.clone() };
            self.rest = Some(Box::new(rest));
        }
        if length - self.whole > HASHED_AT_ONCE {
            self.take_rest();
        }
    }

    /// Moves text that no longer fits from the buffer to the hash.
    fn take_rest(&mut self) {
        self.copy_to(self.at);
        let Some(rest) = &mut self.rest else { return };
        rest.hash.update(&self.out.as_bytes()[self.whole..]);
        rest.bytes += self.out.len() - self.whole;
        self.out.truncate(self.whole);
    }

    fn finish(mut self) -> String {
        if self.rest.is_some() {
            self.take_rest();
        }
        self.copy_to(self.at);
        if let Some(rest) = self.rest {
            close_early(&mut self.out, &rest);
        }
        self.out
    }

    fn copy_to(&mut self, end: usize) {
        self.out.push_str(&self.raw[self.copied..end]);
        self.copied = end;
    }

    fn byte(&self) -> Option<u8> {
        self.raw.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.raw.as_bytes()[self.at..];
        let blank = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += rest.iter().take_while(blank).count();
    }
}

/// The string at the start, if it is short and has neither escapes nor tags. Most are, and this is
/// faster than the search for long ones.
fn short_string(rest: &str) -> Option<&str> {
    const BYTES_MAX: usize = 24;
    let ends = |byte: &u8| matches!(byte, b'"' | b'\\' | b'<' | 0..b' ');
    let end = rest.as_bytes().iter().take(BYTES_MAX).position(ends)?;
    (rest.as_bytes()[end] == b'"').then(|| &rest[..end])
}

/// What a name implies about its value. Most imply nothing, which is cheap to check.
pub(super) fn name_of(name: &[u8]) -> Option<Name> {
    // The members of a JSON Web Key are too short for a trigger.
    if name.len() <= 2 || secrets::may_hold(name) { Name::of(name) } else { None }
}

/// A string as read.
struct StringRead<'a> {
    /// The offset of its opening quotation mark.
    start: usize,
    text: Cow<'a, str>,
    /// Whether it changed: tags removed, or half a surrogate pair replaced.
    changed: bool,
}

/// Writes the note about the cut, and closes the open brackets.
fn close_early(out: &mut String, rest: &AfterLimit) {
    let mut note = String::new();
    clip::write_note(&mut note, rest.bytes, out.len() + rest.bytes, rest.hash.finalize());
    if !out.is_empty() && !out.ends_with(['[', '{']) {
        out.push(',');
    }
    if rest.open.last() == Some(&b'}') {
        write_string(out, "[cut]");
        out.push(':');
    }
    write_string(out, &note);
    out.extend(rest.open.iter().rev().map(|&bracket| char::from(bracket)));
}

/// The length of the number or literal at the start; `None` if there is none.
pub(super) fn scalar_length(rest: &[u8]) -> Option<usize> {
    for word in [&b"true"[..], b"false", b"null"] {
        if rest.starts_with(word) {
            return Some(word.len());
        }
    }
    let digits = |from: usize| {
        rest.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let some = |count: usize| (count > 0).then_some(count);
    let mut length = usize::from(rest.first() == Some(&b'-'));
    length += if rest.get(length) == Some(&b'0') { 1 } else { some(digits(length))? };
    if rest.get(length) == Some(&b'.') {
        length += 1 + some(digits(length + 1))?;
    }
    if matches!(rest.get(length), Some(b'e' | b'E')) {
        length += 1 + usize::from(matches!(rest.get(length + 1), Some(b'+' | b'-')));
        length += some(digits(length))?;
    }
    Some(length)
}
