//! Redaction: removes private text and secrets before anything is stored.
//!
//! In this order: replace personal data if the policy requires it, remove tags with their content,
//! replace secrets by placeholders that name their kind, truncate long text. Truncation is last, so
//! that no secret is cut in two and half of it kept. Everything takes linear time, and [`work`]
//! enforces a limit. This crate does no I/O.

mod byte_search;
mod client_text;
mod clip;
mod json;
mod json_strings;
mod long_strings;
mod personal;
mod secrets;
mod tags;
mod text_forms;
pub mod work;

use std::borrow::Cow;

pub use client_text::{Author, Typed, own_words, typed};
pub use json::redact_json;
pub use json_strings::{end_of_string, read_string};
pub use text_forms::{redact_json_or_text, redact_path, redact_reply};

use clip::Clip;
use secrets::{Found, Name, Scan};

/// The default of [`Policy::field_bytes_max`] and of its setting.
pub const FIELD_BYTES_MAX_DEFAULT: usize = 256 << 10;

/// What to redact, and how much to keep.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Whether to replace secrets. Tags are always removed.
    pub redact_secrets: bool,
    /// Whether to replace e-mail addresses, phone numbers, payment cards and the like.
    pub redact_personal: bool,
    /// Maximum bytes of one string, including the note about a cut.
    pub field_bytes_max: usize,
    /// Maximum bytes of one value.
    pub total_bytes_max: usize,
}

impl Default for Policy {
    fn default() -> Self {
        // A record has less than 16 MB. Texts get half of that. The other half is for other fields,
        // and for copies on the way to the disk.
        Self {
            redact_secrets: true,
            redact_personal: false,
            field_bytes_max: FIELD_BYTES_MAX_DEFAULT,
            total_bytes_max: 8 << 20,
        }
    }
}

impl Policy {
    /// The policy for the next value, if `bytes` of the record are used.
    #[must_use]
    pub fn after(self, bytes: usize) -> Self {
        Self { total_bytes_max: self.total_bytes_max.saturating_sub(bytes), ..self }
    }
}

/// A text that may be stored.
#[derive(Debug, PartialEq)]
pub struct Redacted {
    pub text: String,
    /// A `<private>` was removed, and only whitespace is left: the whole turn is private.
    pub wholly_private: bool,
}

impl Redacted {
    /// The text; `None` if all of it was private.
    pub fn unless_private(self) -> String {
        if self.wholly_private { String::new() } else { self.text }
    }
}

/// Redacts a prompt or a message.
pub fn redact_text(text: &str, policy: Policy) -> Redacted {
    redact_owned(Cow::Borrowed(text), policy)
}

/// Redacts input that cannot be parsed, as plain text.
pub fn redact_bytes(bytes: &[u8], policy: Policy) -> String {
    redact_owned(String::from_utf8_lossy(bytes), policy).text
}

fn redact_owned(mut text: Cow<'_, str>, policy: Policy) -> Redacted {
    if policy.redact_personal
        && let Some(redacted) = personal::redact(&text, personal::Form::Plain)
    {
        text = Cow::Owned(redacted);
    }
    let stripped = tags::strip(text);
    let wholly_private = stripped.wholly_private;
    let limit = policy.field_bytes_max.min(policy.total_bytes_max);
    let text = match redact_secrets(&stripped.text, None, policy.redact_secrets, limit) {
        Some(text) => text,
        None => stripped.text.into_owned(),
    };
    Redacted { text, wholly_private }
}

/// Redacts and truncates a text; `None` if it is unchanged.
///
/// After a name such as `password`, the whole text may be a secret.
fn redact_secrets(text: &str, name: Option<Name>, redact: bool, limit: usize) -> Option<String> {
    let plain = if redact { secrets::redact_escaped(text) } else { None };
    let text = plain.as_deref().unwrap_or(text);
    let bytes = text.as_bytes();
    let mut scan = Scan::with(bytes, name.and_then(|name| name.secret_in(bytes)));
    let first = if redact { scan.next() } else { None };
    let is_read = !work::is_over();
    if first.is_none() && is_read && text.len() <= limit.max(clip::LIMIT_BYTES_MIN) {
        return plain;
    }
    Some(rewrite(text, first.into_iter().chain(scan.filter(|_| redact)), limit))
}

/// Rewrites the text from the first secret on. Separate from [`redact_secrets`], which most texts
/// leave unchanged, because the hash of cut text takes two pages of stack.
#[inline(never)]
fn rewrite(text: &str, found: impl Iterator<Item = Found>, limit: usize) -> String {
    let mut clip = Clip::new(limit, text.len());
    write_redacted(text, found, |piece| clip.push(piece));
    clip.finish()
}

/// Emits the text in pieces, with placeholders for its secrets. Text after the work limit is
/// dropped.
fn write_redacted(text: &str, found: impl Iterator<Item = Found>, mut push: impl FnMut(&str)) {
    let mut at = 0;
    for Found { start, end, rule } in found {
        if work::is_over() {
            break;
        }
        push(&text[at..start]);
        write_placeholder(rule, &mut push);
        at = end;
    }
    match work::is_over() {
        true => push(&work::cut_note(text.len() - at)),
        false => push(&text[at..]),
    }
}

fn write_placeholder(rule: &str, mut push: impl FnMut(&str)) {
    for piece in ["[redacted:", rule, "]"] {
        push(piece);
    }
}

#[cfg(test)]
mod tests;
