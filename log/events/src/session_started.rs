//! A session began or was resumed.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// A session of the assistant began or was resumed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionStarted {
    /// `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: String,
    /// The client's working directory.
    pub cwd: String,
    /// The model, if the client reports it; often empty.
    pub model: String,
    /// The client's transcript of the session.
    pub transcript_path: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

impl Versioned for SessionStarted {
    const KIND: u16 = 1;
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
        let event = SessionStarted {
            source: "startup".into(),
            cwd: "/p".into(),
            model: "m".into(),
            transcript_path: "/t".into(),
            extra: "{}".into(),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x07startup\x02/p\x01m\x02/t\x02{}");
        assert_eq!(SessionStarted::read(1, &bytes), Ok(event));
        assert!(SessionStarted::read(SessionStarted::VERSION + 1, &bytes).is_err());
    }
}
