//! A memory written by hand.

use crate::{TextForm, VisitTexts};
use serde::{Deserialize, Serialize};

/// A memory written by hand.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct MemoryAdded {
    /// Its title; may be empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// One of the mode's types; empty for none.
    pub kind: String,
    /// Keywords.
    pub concepts: Vec<String>,
    /// Files that it is about.
    pub files: Vec<String>,
    /// `cli`, `mcp`, `http`, `viewer`.
    pub via: String,
    /// Additional JSON of the program that added it; else empty.
    pub metadata: String,
    /// Where it applies. Since version 2.
    #[serde(default)]
    pub scope: NoteScope,
}

/// Where a note applies. New scopes are added at the end: the position is on disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteScope {
    /// In the project in which it was written.
    #[default]
    Project,
    /// In every project.
    Global,
    /// In projects below this folder.
    Tree(String),
}

impl VisitTexts for NoteScope {
    fn visit_texts(&mut self, visit: &mut dyn FnMut(TextForm, &mut String)) {
        match self {
            Self::Tree(folder) => folder.visit_texts(visit),
            Self::Project | Self::Global => {}
        }
    }
}

define_event! {
    MemoryAdded = 10 { 1 => V1, 2 => Self }
    texts {
        title: text, text: text, kind: text, concepts: text, files: text, via: text,
        metadata: json, scope: text,
    }
}

/// Version 1, without a scope.
#[derive(Deserialize)]
struct V1 {
    title: String,
    text: String,
    kind: String,
    concepts: Vec<String>,
    files: Vec<String>,
    via: String,
    metadata: String,
}

impl From<V1> for MemoryAdded {
    fn from(V1 { title, text, kind, concepts, files, via, metadata }: V1) -> Self {
        Self { title, text, kind, concepts, files, via, metadata, scope: NoteScope::Project }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Versioned as _, define_event::assert_bytes};

    fn example() -> MemoryAdded {
        MemoryAdded {
            title: "t".into(),
            text: "x".into(),
            kind: "decision".into(),
            concepts: vec!["c".into()],
            files: vec!["f".into()],
            via: "cli".into(),
            metadata: "{}".into(),
            scope: NoteScope::Project,
        }
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    const V1_BYTES: &[u8] = b"\x01t\x01x\x08decision\x01\x01c\x01\x01f\x03cli\x02{}";

    #[test]
    fn v1_bytes_are_fixed() {
        assert_eq!(MemoryAdded::read(1, V1_BYTES), Ok(example()));
    }

    /// As above.
    #[test]
    fn v2_bytes_are_fixed() {
        let scopes: [(NoteScope, &[u8]); 3] = [
            (NoteScope::Project, b"\0"),
            (NoteScope::Global, b"\x01"),
            (NoteScope::Tree("/w".into()), b"\x02\x02/w"),
        ];
        for (scope, end) in scopes {
            let event = MemoryAdded { scope, ..example() };
            assert_bytes(&event, &[V1_BYTES, end].concat().escape_ascii().to_string());
        }
    }
}
