//! One row of another store.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// One row of another store. Its id is derived from the row's own, so that a second import adds
/// nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Imported {
    /// The kind of store: `claude-mem-ts`, `transcript`, `export`.
    pub source: String,
    /// A fingerprint of the store.
    pub origin: String,
    /// The kind of row: `session`, `prompt`, `observation`, `summary`, `pending`.
    pub table: String,
    /// Its id there.
    pub row_id: String,
    /// The row, as JSON.
    pub row: String,
}

impl Versioned for Imported {
    const KIND: u16 = 12;
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
        let event = Imported {
            source: "transcript".into(),
            origin: "o".into(),
            table: "prompt".into(),
            row_id: "9".into(),
            row: "{}".into(),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\ntranscript\x01o\x06prompt\x019\x02{}");
        assert_eq!(Imported::read(1, &bytes), Ok(event));
        assert!(Imported::read(Imported::VERSION + 1, &bytes).is_err());
    }
}
