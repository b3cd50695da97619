//! A prompt was submitted.

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

define_event! {
    PromptSubmitted = 2 { 1 => Self }
    texts {
        prompt: text, is_private: none, submitter: none, prompt_id: text, cwd: text,
        extra: json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Versioned as _, define_event::assert_bytes};

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
        assert_bytes(&event, r"\x06fix it\x00\x02\x02p1\x02/p\x02{}");
        let event =
            PromptSubmitted { submitter: Submitter::Teammate, ..PromptSubmitted::default() };
        assert_eq!(PromptSubmitted::read(1, b"\x00\x00\x03\x00\x00\x00"), Ok(event));
        assert!(PromptSubmitted::read(1, b"\x00\x00\x04\x00\x00\x00").is_err());
    }
}
