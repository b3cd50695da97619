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
}

impl Versioned for MemoryAdded {
    const KIND: u16 = 10;
    const VERSION: u16 = 1;

    fn read(version: u16, body: &[u8]) -> Result<Self, DecodeError> {
        match version {
            1 => codec::read(body),
            _ => Err(DecodeError::Version { kind: Self::KIND, version }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn v1_bytes_are_fixed() {
        let event = MemoryAdded {
            title: "t".into(),
            text: "x".into(),
            kind: "decision".into(),
            concepts: vec!["c".into()],
            files: vec!["f".into()],
            via: "cli".into(),
            metadata: "{}".into(),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            r"\x01t\x01x\x08decision\x01\x01c\x01\x01f\x03cli\x02{}"
        );
        assert_eq!(MemoryAdded::read(1, &bytes), Ok(event));
        assert!(MemoryAdded::read(MemoryAdded::VERSION + 1, &bytes).is_err());
    }
}
