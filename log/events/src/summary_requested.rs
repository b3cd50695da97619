//! The assistant stopped.

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
    /// Texts of the transcript between the prompt and the last message, in order. Since version 2.
    #[serde(default)]
    pub remarks: Vec<Remark>,
}

/// A text of a turn that no other event contains.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Remark {
    /// The kind of remark.
    pub kind: RemarkKind,
    /// The client's id of the tool use it is about; empty if there is none.
    pub tool_use_id: String,
    /// The text, with private parts and secrets removed.
    pub text: String,
}

/// The kind of a remark. New kinds are added at the end: the position is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum RemarkKind {
    /// The assistant's text before the next tool use.
    #[default]
    Narration,
    /// The user rejected a tool use; the text is the user's reason.
    Rejection,
    /// Permission for a tool use was denied without a reason; the text is the tool and its input.
    Denied,
    /// The client's summary of a long conversation, which replaced it.
    Compaction,
    /// The turn ended with an error of the model's API.
    ApiError,
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

visit_texts!(Remark { kind: none, tool_use_id: text, text: text });

define_event! {
    SummaryRequested = 4 { 1 => V1, 2 => Self }
    texts {
        scope: none, last_user_message: text, last_assistant_message: text,
        is_stop_hook_active: none, background_tasks: none, agent_id: text, agent_type: text,
        prompt_id: text, cwd: text, extra: json, remarks: text,
    }
}

/// Version 1, without remarks.
#[derive(Deserialize)]
struct V1 {
    scope: StopScope,
    last_user_message: String,
    last_assistant_message: String,
    is_stop_hook_active: bool,
    background_tasks: u32,
    agent_id: String,
    agent_type: String,
    prompt_id: String,
    cwd: String,
    extra: String,
}

impl From<V1> for SummaryRequested {
    fn from(v1: V1) -> Self {
        Self {
            scope: v1.scope,
            last_user_message: v1.last_user_message,
            last_assistant_message: v1.last_assistant_message,
            is_stop_hook_active: v1.is_stop_hook_active,
            background_tasks: v1.background_tasks,
            agent_id: v1.agent_id,
            agent_type: v1.agent_type,
            prompt_id: v1.prompt_id,
            cwd: v1.cwd,
            extra: v1.extra,
            remarks: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Versioned as _, define_event::assert_bytes};

    fn example() -> SummaryRequested {
        SummaryRequested {
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
            remarks: Vec::new(),
        }
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    const V1_BYTES: &[u8] = b"\x01\x01u\x01a\x01\x02\x01i\x01t\x02p1\x02/p\x02{}";

    #[test]
    fn v1_bytes_stay_readable() {
        assert_eq!(SummaryRequested::read(1, V1_BYTES), Ok(example()));
        assert!(SummaryRequested::read(2, V1_BYTES).is_err());
    }

    #[test]
    fn v2_bytes_are_fixed() {
        let remark =
            |kind, id: &str, text: &str| Remark { kind, tool_use_id: id.into(), text: text.into() };
        let event = SummaryRequested {
            remarks: vec![
                remark(RemarkKind::Narration, "t1", "n"),
                remark(RemarkKind::Rejection, "t2", "no"),
                remark(RemarkKind::Denied, "t3", "d"),
                remark(RemarkKind::Compaction, "", "c"),
                remark(RemarkKind::ApiError, "", "e"),
            ],
            ..example()
        };
        let remarks =
            br"\x05\x00\x02t1\x01n\x01\x02t2\x02no\x02\x02t3\x01d\x03\x00\x01c\x04\x00\x01e";
        let expected = format!("{}{}", V1_BYTES.escape_ascii(), String::from_utf8_lossy(remarks));
        assert_bytes(&event, &expected);
    }
}
