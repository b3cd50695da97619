//! The values of a Kubernetes secret, below any name: base64 in `data`, text in `stringData`.

use memchr::memmem;

use super::{
    Found,
    rules::{run, starts_word},
    shapes::line_length,
    tables::listing_prefix,
};
use crate::work;

/// How far the kind of the object may be from its data.
const AROUND_BYTES_MAX: usize = 1 << 10;
/// How much is read of an object whose kind may come after its data.
const UNDECLARED_BYTES_MAX: usize = 2 << 10;
const KINDS: [&[u8]; 4] = [
    b"kind: Secret",
    b"\"kind\": \"Secret\"",
    b"\"kind\":\"Secret\"",
    b"\\\"kind\\\":\\\"Secret\\\"",
];

/// Everything below `data:`, `"data": {` or `stringData:`, if the object is a secret. `kubectl`
/// prints the kind after the data.
pub(super) fn kubernetes_secret(text: &[u8], at: usize) -> Option<Found> {
    const NAME_BYTES_MAX: usize = 20;
    if !starts_word(text, at) {
        return None; // `metadata:`
    }
    let name = &text[at..text.len().min(at + NAME_BYTES_MAX)];
    let first = at + run(name, |byte| b"\"dstringDa: {\\".contains(&byte));
    // The `n` of a written line break is not one of these bytes.
    let first = first - usize::from(text[..first].ends_with(b"\\"));
    let is_declared = declares(&text[at.saturating_sub(AROUND_BYTES_MAX)..at]);
    // Read on only as far as the kind may be, unless it is known.
    let bytes_max = if is_declared { text.len() } else { UNDECLARED_BYTES_MAX };
    let judged = &text[..text.len().min(first.saturating_add(bytes_max))];
    let (start, end) = match judged[..first].ends_with(b"{") {
        true => (first, memchr::memchr(b'}', &judged[first..]).map_or(first, |end| first + end)),
        false => block(judged, at, first),
    };
    work::count(end - first);
    let is_secret =
        is_declared || end > start && declares(&text[end..text.len().min(end + AROUND_BYTES_MAX)]);
    let length = text[start..end].trim_ascii_end().len();
    let found = Found { start, end: start + length, rule: "kubernetes-secret" };
    (is_secret && length > 0).then_some(found)
}

/// Whether the JSON member whose name is at `start..end` is the data of a secret.
pub(crate) fn is_kubernetes_secret(text: &[u8], start: usize, end: usize) -> bool {
    declares(&text[start.saturating_sub(AROUND_BYTES_MAX)..start])
        || declares(&text[end..text.len().min(end + UNDECLARED_BYTES_MAX)])
}

/// Whether an object next to this is a secret, not a `SecretStore`.
fn declares(around: &[u8]) -> bool {
    work::count(around.len());
    let is_whole = |end: usize| around.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    KINDS.iter().any(|kind| memmem::find_iter(around, kind).any(|at| is_whole(at + kind.len())))
}

/// The lines below the name that are indented more than it.
fn block(text: &[u8], at: usize, first: usize) -> (usize, usize) {
    const BEFORE_BYTES_MAX: usize = 128;
    let before = &text[at.saturating_sub(BEFORE_BYTES_MAX)..at];
    let line = before.rsplit(|&byte| byte == b'\n').next().unwrap_or_default();
    let name_indent = indent(line);
    let (mut start, mut end) = (first, first);
    loop {
        let next = end + line_break(&text[end..]);
        let line = &text[next..next + line_length(&text[next..])];
        work::count(line.len() + 1);
        let is_value = indent(line) > name_indent && !line.trim_ascii().is_empty();
        if next == end || !is_value {
            return (start, end);
        }
        start = if end == first { next } else { start };
        end = next + line.len();
    }
}

/// The length of a line break, which may be written as `\n`.
fn line_break(rest: &[u8]) -> usize {
    match rest {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => 2,
        _ => 0,
    }
}

fn indent(line: &[u8]) -> usize {
    let line = &line[listing_prefix(line)..];
    run(line, |byte| byte == b' ')
}
