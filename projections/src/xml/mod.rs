//! Parses an agent's reply: XML by agreement, in practice any text that a model wrote.
//!
//! A strict parser would reject a whole reply for one `Vec<String>` in a sentence. Here only the
//! tags of our own contract are tags, in any case and with any attributes; everything else is text.
//! An unclosed tag ends at the next tag that can follow it. A truncated reply keeps everything
//! before the cut. Every byte is read a bounded number of times, and nothing panics.
//!
//! If it is ambiguous whether `<title>` is a tag or a mention of one, its position decides: see
//! `tags`.

mod blocks;
mod tags;
#[cfg(test)]
mod tests;
mod values;

use serde::{Deserialize, Serialize};

/// The type of an observation with an unknown type.
pub const FALLBACK_KIND: &str = "change";

/// Longer replies are cut. A provider stops at some ten thousand tokens; this only bounds memory
/// for a faulty endpoint.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The content of a reply, as far as it could be parsed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// In order; without those that have neither title, narrative nor facts.
    pub observations: Vec<Observation>,
    /// Present if any of its fields is.
    pub summary: Option<Summary>,
    /// The model declined to summarize; contains its reason, possibly empty. Independent of the
    /// observations.
    pub summary_skipped: Option<String>,
    /// Titles of earlier observations of the session that are withdrawn without a replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrects: Vec<String>,
    /// The result of the reply as a whole.
    pub verdict: Verdict,
    /// The text ended inside an element: the last item is incomplete.
    pub cut: bool,
}

/// The overall result of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Verdict {
    /// It contains at least one observation, a summary or a correction.
    Answer,
    /// The model reported that there is nothing to record. The request is answered.
    Nothing,
    /// Prose, empty or invalid: a failed attempt, to be kept and retried.
    #[default]
    Unreadable,
}

/// An observation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Observation {
    /// One of the mode's types (`<type>` in the reply).
    pub kind: String,
    /// One line.
    pub title: Option<String>,
    /// One line.
    pub subtitle: Option<String>,
    /// Prose, line breaks kept.
    pub narrative: Option<String>,
    /// Single statements.
    pub facts: Vec<String>,
    /// Keywords; among them the type the model gave, if the mode does not know it.
    pub concepts: Vec<String>,
    /// Paths that the model reports as read.
    pub files_read: Vec<String>,
    /// Paths that the model reports as changed.
    pub files_modified: Vec<String>,
    /// Titles of earlier observations of the session that this one replaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrects: Vec<String>,
}

/// The summary of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// The user's request.
    pub request: Option<String>,
    /// What was investigated.
    pub investigated: Option<String>,
    /// What was learned.
    pub learned: Option<String>,
    /// What was completed.
    pub completed: Option<String>,
    /// Next steps.
    pub next_steps: Option<String>,
    /// Anything else; also the text of a summary without fields.
    pub notes: Option<String>,
    /// Paths that the model reports as read.
    pub files_read: Vec<String>,
    /// Paths that the model reports as changed.
    pub files_edited: Vec<String>,
}

/// Parses a reply under a mode whose observation types are `kinds`.
///
/// Accepts any text: the reply itself, in a fence, with prose around it, cut at any byte. The same
/// text and kinds always give the same reply, on which replay depends.
pub fn read_reply<S: AsRef<str>>(text: &str, kinds: &[S]) -> Reply {
    let text = bounded(text);
    let read = blocks::read(text);
    let (mut observations, mut corrects) = (Vec::new(), read.corrects);
    for block in &read.observations {
        match block.observation(kinds) {
            Some(observation) => observations.push(observation),
            // It has no content, so it replaces nothing: it withdraws the observations.
            None => corrects.extend(block.corrects()),
        }
    }
    let corrects = values::distinct(corrects);
    let summary = read.summary.summary();
    let is_skipped = read.skip || read.summary_skipped.is_some() || is_bare_skip(text);
    let is_empty = observations.is_empty() && summary.is_none() && corrects.is_empty();
    let verdict = match (is_empty, is_skipped) {
        (false, _) => Verdict::Answer,
        (true, true) => Verdict::Nothing,
        (true, false) => Verdict::Unreadable,
    };
    let summary_skipped = read.summary_skipped;
    Reply { observations, summary, summary_skipped, corrects, verdict, cut: read.cut }
}

fn bounded(text: &str) -> &str {
    let mut end = text.len().min(REPLY_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Some models give the token without its brackets.
fn is_bare_skip(text: &str) -> bool {
    text.trim_matches(|c: char| !c.is_alphanumeric()).eq_ignore_ascii_case("skip")
}
