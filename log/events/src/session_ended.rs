//! A session ended.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// The session ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionEnded {
    /// `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
    pub reason: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

impl Versioned for SessionEnded {
    const KIND: u16 = 5;
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
        let event = SessionEnded { reason: "clear".into(), extra: "{}".into() };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x05clear\x02{}");
        assert_eq!(SessionEnded::read(1, &bytes), Ok(event));
        assert!(SessionEnded::read(SessionEnded::VERSION + 1, &bytes).is_err());
    }
}
