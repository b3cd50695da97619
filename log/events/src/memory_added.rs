//! A memory written by hand.

use crate::{DecodeError, Versioned, codec};
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

impl Versioned for MemoryAdded {
    const KIND: u16 = 10;
    const VERSION: u16 = 2;

    fn read(version: u16, body: &[u8]) -> Result<Self, DecodeError> {
        match version {
            1 => codec::read::<V1>(body).map(Self::from),
            2 => codec::read(body),
            _ => Err(DecodeError::Version { kind: Self::KIND, version }),
        }
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
            let mut bytes = Vec::new();
            codec::write(&event, &mut bytes).unwrap();
            assert_eq!(bytes, [V1_BYTES, end].concat());
            assert_eq!(MemoryAdded::read(2, &bytes), Ok(event));
            assert!(MemoryAdded::read(MemoryAdded::VERSION + 1, &bytes).is_err());
        }
    }
}
