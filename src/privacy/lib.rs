//! What may be remembered: everything a hook stores goes through here first.
//!
//! In this order: the tags whose content is not ours are removed, secrets become placeholders that name
//! their kind, and what is still too long keeps its head and its tail. Clipping comes last, so that no
//! secret is cut in two and survives by halves. All of it takes linear time, and [`work`] stops it if a text is more
//! work than that. Nothing here touches the world.

mod clip;
mod json;
mod json_strings;
mod long_strings;
mod memchr_small;
mod secrets;
mod tags;
pub mod work;

use std::borrow::Cow;

pub use json::clean_json;
pub use json_strings::{end_of_string, read_string};
pub use tags::is_only_task_notification;

use clip::Clip;
use secrets::{Found, Name};

/// The default of [`Policy::field_bytes_max`], and of the setting.
pub const FIELD_BYTES_MAX_DEFAULT: usize = 256 << 10;

/// How strict to be, and how much to keep.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Whether secrets become placeholders. The tags are removed in any case.
    pub redact_secrets: bool,
    /// The longest a single text or string may be, a note on what was cut included.
    pub field_bytes_max: usize,
    /// The longest one whole cleaned value may be.
    pub total_bytes_max: usize,
}

impl Default for Policy {
    fn default() -> Self {
        // A record is below 16 MB. Half of that for its texts leaves room for everything else, and for
        // the copies made on the way to the disk.
        Self {
            redact_secrets: true,
            field_bytes_max: FIELD_BYTES_MAX_DEFAULT,
            total_bytes_max: 8 << 20,
        }
    }
}

impl Policy {
    /// The policy for the next value of a record of which `bytes` are already taken.
    #[must_use]
    pub fn after(self, bytes: usize) -> Self {
        Self { total_bytes_max: self.total_bytes_max.saturating_sub(bytes), ..self }
    }
}

/// A text that may be stored.
#[derive(Debug, PartialEq)]
pub struct Cleaned {
    pub text: String,
    /// A `<private>` was removed, and nothing but blanks is left: the whole turn is private.
    pub wholly_private: bool,
}

impl Cleaned {
    /// The text, or nothing if all of it was private.
    pub fn unless_private(self) -> String {
        if self.wholly_private { String::new() } else { self.text }
    }
}

/// Cleans a prompt or a message.
pub fn clean_text(text: &str, policy: Policy) -> Cleaned {
    clean_owned(Cow::Borrowed(text), policy)
}

/// Cleans input that could not be understood, as the text it most resembles.
pub fn clean_bytes(bytes: &[u8], policy: Policy) -> String {
    clean_owned(String::from_utf8_lossy(bytes), policy).text
}

fn clean_owned(text: Cow<'_, str>, policy: Policy) -> Cleaned {
    let stripped = tags::strip(text);
    let wholly_private = stripped.wholly_private;
    let limit = policy.field_bytes_max.min(policy.total_bytes_max);
    let text = match hide(&stripped.text, None, policy.redact_secrets, limit) {
        Some(text) => text,
        None => stripped.text.into_owned(),
    };
    Cleaned { text, wholly_private }
}

/// The text without its secrets and within its limit, or nothing when that is what it was.
///
/// Under a telling name the text may be a secret as a whole, whatever it looks like.
fn hide(text: &str, name: Option<Name>, redact: bool, limit: usize) -> Option<String> {
    let plain = if redact { secrets::redact_escaped(text) } else { None };
    let text = plain.as_deref().unwrap_or(text);
    let bytes = text.as_bytes();
    let named = name.filter(|_| redact).and_then(|name| name.secret_in(bytes));
    let first = match named {
        Some(whole) if whole.start == 0 => named,
        _ if redact => {
            secrets::next(bytes, 0).into_iter().chain(named).min_by_key(|found| found.start)
        }
        _ => None,
    };
    let is_read = !work::is_over();
    if first.is_none() && is_read && text.len() <= limit.max(clip::LIMIT_BYTES_MIN) {
        return plain;
    }
    Some(without(text, first, limit))
}

/// The text without what was found first and all that follows. Apart from [`hide`], which most texts go
/// through without any change, because the hash of what is cut takes two pages of stack.
#[inline(never)]
fn without(text: &str, first: Option<Found>, limit: usize) -> String {
    let mut clip = Clip::new(limit, text.len());
    write_redacted(text, first, |piece| clip.push(piece));
    clip.finish()
}

/// Gives out the text piece by piece, with a placeholder for what was found first and for all that follows. What the
/// work limit leaves unread is not given out.
fn write_redacted(text: &str, first: Option<Found>, mut push: impl FnMut(&str)) {
    let mut at = 0;
    let mut next = first;
    while let Some(Found { start, end, rule }) = next
        && !work::is_over()
    {
        push(&text[at..start]);
        write_placeholder(rule, &mut push);
        at = end;
        next = secrets::next(text.as_bytes(), at);
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
