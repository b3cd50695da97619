//! The log is compacted up to here.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// Compaction may erase what is no longer needed before this event. Only earlier events decide what
/// is erased. So another process can finish an interrupted compaction, and rows do not depend on
/// whether the bytes are already gone. A forgetting before this point cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogCompacted {
    /// Erase replies that a later generation superseded.
    pub drops_superseded: bool,
    /// Of the inputs and outputs of these tools, keep only a digest once they are answered.
    pub tools: Vec<String>,
    /// The same for all tools before this time.
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
