//! Reprocessing ended.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// Reprocessing is complete or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReprocessFinished {
    /// Its number.
    pub generation: u32,
    /// Whether its memories replace the earlier ones. May be set later, for one that was made for
    /// comparison.
    pub is_current: bool,
}

impl Versioned for ReprocessFinished {
    const KIND: u16 = 9;
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
        let event = ReprocessFinished { generation: 300, is_current: true };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\xfb,\x01\x01");
        assert_eq!(ReprocessFinished::read(1, &bytes), Ok(event));
        assert!(ReprocessFinished::read(ReprocessFinished::VERSION + 1, &bytes).is_err());
    }
}
