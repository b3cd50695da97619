//! A hook was given something unreadable.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// A hook was given something that is not what a hook is given. Kept, so that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct InputUnreadable {
    /// The command that was called: `save`.
    pub hook: String,
    /// What is wrong with it.
    pub error: String,
    /// What was given, as text, without secrets; the middle left out if it was long.
    pub text: String,
    /// How long it was.
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
