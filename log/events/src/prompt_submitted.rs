//! A prompt was submitted.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// A prompt was submitted, by the user or by the client itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PromptSubmitted {
    /// The text with private parts removed. Empty if all of it was private.
    pub prompt: String,
    /// Whether the whole prompt was private. Then the turn is private, too: its tool uses are not
    /// recorded.
    pub is_private: bool,
    /// Who submitted it.
    pub submitter: Submitter,
    /// The client's id of the turn; a prompt queued into a running turn shares it. Empty on older
    /// clients.
    pub prompt_id: String,
    /// The client's working directory.
    pub cwd: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

/// Who submitted a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Submitter {
    /// The user, with text.
    #[default]
    User,
    /// The user, with only pictures or files.
    UserMedia,
    /// The client itself: a notification of a background task, or other text that was not typed.
    TaskNotification,
    /// Another agent of the same team. Added later to version 1: older programs keep such an event
    /// unread, and still read all others. A new version would have hidden every prompt from them.
    Teammate,
}

impl Versioned for PromptSubmitted {
    const KIND: u16 = 2;
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
        let event = PromptSubmitted {
            prompt: "fix it".into(),
            is_private: false,
            submitter: Submitter::TaskNotification,
            prompt_id: "p1".into(),
            cwd: "/p".into(),
            extra: "{}".into(),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x06fix it\x00\x02\x02p1\x02/p\x02{}");
        assert_eq!(PromptSubmitted::read(1, &bytes), Ok(event));
        assert!(PromptSubmitted::read(PromptSubmitted::VERSION + 1, &bytes).is_err());
        let event =
            PromptSubmitted { submitter: Submitter::Teammate, ..PromptSubmitted::default() };
        assert_eq!(PromptSubmitted::read(1, b"\x00\x00\x03\x00\x00\x00"), Ok(event));
        assert!(PromptSubmitted::read(1, b"\x00\x00\x04\x00\x00\x00").is_err());
    }
}
