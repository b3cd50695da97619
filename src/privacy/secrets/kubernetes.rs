//! The values of a Kubernetes secret, below any name: base64 in `data`, text in `stringData`.

use memchr::memmem;

use super::{
    Found,
    rules::{base64, run, starts_word},
    shapes::line_length,
    values::is_placeholder,
};
use crate::work;

/// How far the kind of the object may be from its data.
const AROUND_BYTES_MAX: usize = 512;

/// The lines below `data:`, `"data": {` or `stringData:`, if the object is a secret. `kubectl`
/// prints the kind after the data.
pub(super) fn kubernetes_secret(text: &[u8], at: usize) -> Option<Found> {
    const NAME_BYTES_MAX: usize = 16;
    if !starts_word(text, at) {
        return None; // `metadata:`
    }
    let name = &text[at..text.len().min(at + NAME_BYTES_MAX)];
    let is_text = name.starts_with(b"stringData");
    let first = at + run(name, |byte| b"\"stringData: {".contains(&byte));
    let (mut end, mut has_secret) = (first, false);
    loop {
        let next = end + line_break(&text[end..]);
        let length = line_length(&text[next..]);
        let value = if next > end { value_of(&text[next..next + length]) } else { None };
        let Some(value) = value.filter(|value| is_text || is_base64(value)) else { break };
        has_secret |= !is_text || !is_placeholder(value);
        end = next + length;
    }
    let start = first + line_break(&text[first..]);
    let around = |from: usize, to: usize| {
        work::count(to - from);
        let kinds: [&[u8]; 2] = [b"kind: Secret", b"\"kind\": \"Secret\""];
        kinds.iter().any(|kind| memmem::find(&text[from..to], kind).is_some())
    };
    let is_secret = has_secret
        && (around(end, text.len().min(end + AROUND_BYTES_MAX))
            || around(at.saturating_sub(AROUND_BYTES_MAX), at));
    is_secret.then_some(Found { start, end, rule: "kubernetes-secret" })
}

/// The length of a line break, which may be written as `\n`.
fn line_break(rest: &[u8]) -> usize {
    match rest {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => 2,
        _ => 0,
    }
}

/// The value in a line with an indented name.
fn value_of(line: &[u8]) -> Option<&[u8]> {
    const NAME_BYTES_MAX: usize = 128;
    work::count(line.len() + 1);
    let entry = line.trim_ascii_end();
    let entry = entry.strip_suffix(b",").unwrap_or(entry);
    let colon = memmem::find(&entry[..entry.len().min(NAME_BYTES_MAX)], b": ")?;
    let quoted = |byte: &u8| matches!(byte, b'"' | b'\\');
    let value = &entry[colon + 2..];
    let start = value.iter().position(|byte| !quoted(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !quoted(byte)).map_or(start, |last| last + 1);
    let value = &value[start..end];
    // A diff has a sign before it.
    let line = line.strip_prefix(b"+").or_else(|| line.strip_prefix(b"-")).unwrap_or(line);
    (line.starts_with(b" ") && !value.is_empty()).then_some(value)
}

fn is_base64(value: &[u8]) -> bool {
    value.len().is_multiple_of(4) && value.iter().all(|&byte| base64(byte))
}
