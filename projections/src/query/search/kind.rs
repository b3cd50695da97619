//! Kinds of memories, and the ids of memories.

use serde::{Serialize, Serializer};
use std::{fmt, str::FromStr};

/// A kind of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Observation,
    /// The summary of a turn.
    Summary,
    /// A prompt of the user.
    Prompt,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Observation, Self::Summary, Self::Prompt];

    pub fn name(self) -> &'static str {
        match self {
            Self::Observation => "observation",
            Self::Summary => "summary",
            Self::Prompt => "prompt",
        }
    }

    /// Its number in vector files. Never changes.
    pub fn number(self) -> u8 {
        match self {
            Self::Observation => 0,
            Self::Summary => 1,
            Self::Prompt => 2,
        }
    }

    /// The kind of this number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.number() == number)
    }

    pub(crate) fn table(self) -> &'static str {
        match self {
            Self::Observation => "observations",
            Self::Summary => "summaries",
            Self::Prompt => "prompts",
        }
    }

    pub(crate) fn index(self) -> &'static str {
        match self {
            Self::Observation => "observations_fts",
            Self::Summary => "summaries_fts",
            Self::Prompt => "prompts_fts",
        }
    }

    /// The title column, then the other scored columns, in the order of the index.
    pub(crate) fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Observation => &[
                "title",
                "subtitle",
                "narrative",
                "facts",
                "concepts",
                "files_read",
                "files_modified",
            ],
            Self::Summary => &[
                "request",
                "investigated",
                "learned",
                "completed",
                "next_steps",
                "notes",
                "files_read",
                "files_edited",
            ],
            Self::Prompt => &["text"],
        }
    }

    /// The whole text of a `row`, as an expression.
    pub(crate) fn text(self) -> String {
        let columns: Vec<String> =
            self.columns().iter().map(|column| format!("row.{column}")).collect();
        format!("concat_ws(' ', {}, row.identifiers)", columns.join(", "))
    }
}

impl FromStr for Kind {
    type Err = InvalidMemoryId;

    fn from_str(text: &str) -> Result<Self, InvalidMemoryId> {
        match text.to_lowercase().as_str() {
            "observation" | "observations" => Ok(Self::Observation),
            "summary" | "summaries" | "session" | "sessions" => Ok(Self::Summary),
            "prompt" | "prompts" => Ok(Self::Prompt),
            _ => Err(InvalidMemoryId(text.into())),
        }
    }
}

/// The id of a memory: `12` is an observation, `S12` a summary, `P9` a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemoryId {
    pub kind: Kind,
    pub id: i64,
}

impl fmt::Display for MemoryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Observation => write!(out, "{}", self.id),
            Kind::Summary => write!(out, "S{}", self.id),
            Kind::Prompt => write!(out, "P{}", self.id),
        }
    }
}

impl FromStr for MemoryId {
    type Err = InvalidMemoryId;

    fn from_str(text: &str) -> Result<Self, InvalidMemoryId> {
        let trimmed = text.trim().trim_start_matches('#');
        let (kind, number) = match trimmed.as_bytes().first() {
            Some(b'S' | b's') => (Kind::Summary, &trimmed[1..]),
            Some(b'P' | b'p') => (Kind::Prompt, &trimmed[1..]),
            _ => (Kind::Observation, trimmed),
        };
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let id = number.parse().ok().filter(|_| is_number);
        id.map(|id| Self { kind, id }).ok_or_else(|| InvalidMemoryId(text.into()))
    }
}

/// Always a string in JSON.
impl Serialize for MemoryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A text that is not the id of a memory or the name of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidMemoryId(pub String);

impl fmt::Display for InvalidMemoryId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` is not the ID of a memory, such as `12`, `S3` or `P9`", self.0)
    }
}

impl std::error::Error for InvalidMemoryId {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_are_named_by_number_and_kind() {
        for (text, kind, id, name) in [
            ("12", Kind::Observation, 12, "12"),
            ("#12", Kind::Observation, 12, "12"),
            ("S3", Kind::Summary, 3, "S3"),
            ("p9", Kind::Prompt, 9, "P9"),
        ] {
            assert_eq!(text.parse(), Ok(MemoryId { kind, id }));
            assert_eq!(MemoryId { kind, id }.to_string(), name);
        }
        for text in ["", "S", "x1", "-1", "+1", "1.5", "99999999999999999999"] {
            assert!(text.parse::<MemoryId>().is_err(), "{text}");
        }
    }
}
