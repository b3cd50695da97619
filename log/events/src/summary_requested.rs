//! The assistant stopped.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// The assistant stopped: a summary is requested.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SummaryRequested {
    /// What stopped.
    pub scope: StopScope,
    /// The last message of the user, if it had to be read from the transcript; else empty.
    pub last_user_message: String,
    /// The last message of the assistant.
    pub last_assistant_message: String,
    /// Whether the assistant had continued because of a stop hook.
    pub is_stop_hook_active: bool,
    /// Number of background tasks; the session continues when they end.
    pub background_tasks: u32,
    /// The subagent that stopped; empty for the main conversation.
    pub agent_id: String,
    /// The type of the subagent.
    pub agent_type: String,
    /// The client's id of the turn; empty on older clients.
    pub prompt_id: String,
    /// The client's working directory.
    pub cwd: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

/// What stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum StopScope {
    /// A turn of the main conversation.
    #[default]
    Turn,
    /// A subagent.
    Subagent,
    /// The hidden fork in which the client compacts a long conversation.
    Compaction,
}

impl Versioned for SummaryRequested {
    const KIND: u16 = 4;
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
        let event = SummaryRequested {
            scope: StopScope::Subagent,
            last_user_message: "u".into(),
            last_assistant_message: "a".into(),
            is_stop_hook_active: true,
            background_tasks: 2,
            agent_id: "i".into(),
            agent_type: "t".into(),
            prompt_id: "p1".into(),
            cwd: "/p".into(),
            extra: "{}".into(),
        };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            r"\x01\x01u\x01a\x01\x02\x01i\x01t\x02p1\x02/p\x02{}"
        );
        assert_eq!(SummaryRequested::read(1, &bytes), Ok(event));
        assert!(SummaryRequested::read(SummaryRequested::VERSION + 1, &bytes).is_err());
    }
}
