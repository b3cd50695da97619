//! A tool was used.

use serde::{Deserialize, Serialize};

/// The assistant ran a tool and saw its result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolUsed {
    /// The tool's name: `Read`, `Bash`.
    pub tool: String,
    /// The input, as JSON.
    pub input: String,
    /// The output, as JSON; empty if the tool failed.
    pub output: String,
    /// The error, if the tool failed.
    pub error: String,
    /// Whether the tool failed.
    pub has_failed: bool,
    /// Whether the user interrupted it.
    pub is_interrupt: bool,
    /// The client's id of this tool use. The same id means the same use.
    pub tool_use_id: String,
    /// The working directory.
    pub cwd: String,
    /// The subagent that ran it; empty in the main conversation.
    pub agent_id: String,
    /// The type of the subagent.
    pub agent_type: String,
    /// The client's id of the turn; empty on older clients.
    pub prompt_id: String,
    /// The duration, if the client reports it.
    pub duration_ms: Option<u64>,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

define_event! {
    ToolUsed = 3 { 1 => Self }
    texts {
        tool: text, input: json, output: json, error: text, has_failed: none,
        is_interrupt: none, tool_use_id: text, cwd: text, agent_id: text, agent_type: text,
        prompt_id: text, duration_ms: none, extra: json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = ToolUsed {
            tool: "Read".into(),
            input: "{}".into(),
            output: "ok".into(),
            error: String::new(),
            has_failed: false,
            is_interrupt: true,
            tool_use_id: "t1".into(),
            cwd: "/p".into(),
            agent_id: "a".into(),
            agent_type: "b".into(),
            prompt_id: "p1".into(),
            duration_ms: Some(300),
            extra: "{}".into(),
        };
        assert_bytes(
            &event,
            r"\x04Read\x02{}\x02ok\x00\x00\x01\x02t1\x02/p\x01a\x01b\x02p1\x01\xfb,\x01\x02{}",
        );
    }
}
