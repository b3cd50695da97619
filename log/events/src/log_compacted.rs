//! The point up to which a compaction may remove things.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// From here on, what is no longer needed of the past is removed from it. What that is follows from the
/// events before this one alone, so that a compaction that was cut short can be finished by another, and rows
/// are the same whether bytes are removed yet or not. What was forgotten before this point cannot be taken
/// back any more.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogCompacted {
    /// Replies go whose place was taken by those of a later generation.
    pub drops_superseded: bool,
    /// Of what these tools were given and gave back only a digest stays, once it is answered.
    pub tools: Vec<String>,
    /// The same of all tools before this moment.
    pub raw_before_us: Option<u64>,
}

impl Versioned for LogCompacted {
    const KIND: u16 = 15;
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
        let event = LogCompacted {
            drops_superseded: true,
            tools: vec!["t".into()],
            raw_before_us: Some(5),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x01\x01\x01t\x01\x05");
        assert_eq!(LogCompacted::read(1, &bytes), Ok(event));
        assert!(LogCompacted::read(LogCompacted::VERSION + 1, &bytes).is_err());
    }
}
