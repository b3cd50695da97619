//! Reading an agent's reply: XML by agreement, in practice whatever a model wrote.
//!
//! A strict reader would throw away a whole reply for one `Vec<String>` in a sentence. Here only the
//! tags of our own contract are tags, in any case and with any attributes; everything else between
//! them is text. A tag left open ends where the next one makes sense. What was cut off keeps all that
//! was complete before the cut. Every byte is looked at a bounded number of times, and nothing panics.
//!
//! Where a model truly leaves it open whether `<title>` is a tag or a word about tags, position
//! decides: see `tags`.

mod blocks;
mod tags;
#[cfg(test)]
mod tests;
mod values;

use serde::{Deserialize, Serialize};

/// The type of an observation whose own type the mode does not know.
pub const FALLBACK_KIND: &str = "change";

/// Replies beyond this are read up to here. A provider stops at some ten thousand tokens; this only
/// bounds the memory a broken endpoint can make us use.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// What a reply says, as far as it could be read.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    /// In the order given; those with neither title, narrative nor facts are left out.
    pub observations: Vec<Observation>,
    /// Present as soon as any of its fields is.
    pub summary: Option<Summary>,
    /// The model declined to summarise; holds its reason, possibly empty. Says nothing about the
    /// observations beside it.
    pub summary_skipped: Option<String>,
    /// What to do with the reply as a whole.
    pub verdict: Verdict,
    /// The text ended inside an element: the last item is incomplete, those before are whole.
    pub cut: bool,
}

/// What a reply amounts to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Verdict {
    /// It holds at least one observation or a summary.
    Answer,
    /// The model said there is nothing to record. The question is answered.
    Nothing,
    /// Prose, silence or wreckage: a failed attempt, to be kept and tried again.
    #[default]
    Unreadable,
}

/// One thing worth remembering.
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
    /// Paths the model says were read.
    pub files_read: Vec<String>,
    /// Paths the model says were changed.
    pub files_modified: Vec<String>,
}

/// What a turn came to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Summary {
    /// What the user wanted.
    pub request: Option<String>,
    /// What was looked into.
    pub investigated: Option<String>,
    /// What is known now.
    pub learned: Option<String>,
    /// What was done.
    pub completed: Option<String>,
    /// What is left.
    pub next_steps: Option<String>,
    /// Anything else; also the text of a summary that came without fields.
    pub notes: Option<String>,
    /// Paths the model says were read.
    pub files_read: Vec<String>,
    /// Paths the model says were changed.
    pub files_edited: Vec<String>,
}

/// Reads a reply under a mode whose observation types are `kinds`.
///
/// Takes any text: the reply itself, in a fence, with prose around it, cut at any byte. The same text
/// and kinds always give the same reply, on which replay depends.
pub fn read_reply<S: AsRef<str>>(text: &str, kinds: &[S]) -> Reply {
    let text = bounded(text);
    let read = blocks::read(text);
    let observations: Vec<_> =
        read.observations.iter().filter_map(|block| block.observation(kinds)).collect();
    let summary = read.summary.summary();
    let said_nothing = read.skip || read.summary_skipped.is_some() || is_bare_skip(text);
    let verdict = match (observations.is_empty() && summary.is_none(), said_nothing) {
        (false, _) => Verdict::Answer,
        (true, true) => Verdict::Nothing,
        (true, false) => Verdict::Unreadable,
    };
    Reply { observations, summary, summary_skipped: read.summary_skipped, verdict, cut: read.cut }
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
