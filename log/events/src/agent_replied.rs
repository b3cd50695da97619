//! The agent replied.

use serde::{Deserialize, Serialize};

/// The agent replied to a request about some events.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentReplied {
    /// The events in the request, by id, in order.
    pub answers: Vec<[u8; 16]>,
    /// `claude`, `anthropic`, `openai`, `extract`.
    pub provider: String,
    /// The model that replied.
    pub model: String,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    /// 0 for the initial distillation; else the number of the reprocessing.
    pub generation: u32,
    /// The reply, verbatim.
    pub reply: String,
    /// The agent's id of its conversation; empty if it has none.
    pub memory_session_id: String,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// Input tokens, including cached ones.
    pub tokens_in: u64,
    /// Input tokens read from a cache.
    pub tokens_cached: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar; 0 if unknown or free.
    pub cost_micros: u64,
    /// Duration of the request.
    pub duration_ms: u64,
}

define_event! {
    AgentReplied = 6 { 1 => Self }
    texts {
        answers: none, provider: text, model: text, prompt_version: text, generation: none,
        reply: reply, memory_session_id: text, attempt: none, tokens_in: none,
        tokens_cached: none, tokens_out: none, cost_micros: none, duration_ms: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = AgentReplied {
            answers: vec![[7; 16]],
            provider: "claude".into(),
            model: "m".into(),
            prompt_version: "v".into(),
            generation: 1,
            reply: "<skip/>".into(),
            memory_session_id: "ms".into(),
            attempt: 1,
            tokens_in: 1000,
            tokens_cached: 900,
            tokens_out: 50,
            cost_micros: 70000,
            duration_ms: 251,
        };
        assert_bytes(
            &event,
            r"\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x06claude\x01m\x01v\x01\x07<skip/>\x02ms\x01\xfb\xe8\x03\xfb\x84\x032\xfcp\x11\x01\x00\xfb\xfb\x00",
        );
    }
}
