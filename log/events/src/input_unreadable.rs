//! The input of a hook could not be parsed.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// The input of a hook could not be parsed. It is recorded, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputUnreadable {
    /// The hook command: `save`.
    pub hook: String,
    /// The parse error.
    pub error: String,
    /// The input as text, with secrets redacted; long input is cut in the middle.
    pub text: String,
    /// The length of the input.
    pub bytes: u64,
}

impl Versioned for InputUnreadable {
    const KIND: u16 = 13;
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
        let event =
            InputUnreadable { hook: "save".into(), error: "e".into(), text: "{".into(), bytes: 1 };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x04save\x01e\x01{\x01");
        assert_eq!(InputUnreadable::read(1, &bytes), Ok(event));
        assert!(InputUnreadable::read(InputUnreadable::VERSION + 1, &bytes).is_err());
    }
}
