//! A request to the agent failed.

use serde::{Deserialize, Serialize};

/// The agent did not reply, or its reply was unreadable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentFailed {
    /// The events in the request, by id, in order.
    pub answers: Vec<[u8; 16]>,
    /// `claude`, `anthropic`, `openai`, `extract`.
    pub provider: String,
    /// The requested model.
    pub model: String,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    /// 0 for the initial distillation; else the number of the reprocessing.
    pub generation: u32,
    /// The class of the failure.
    pub class: FailureClass,
    /// The error message.
    pub message: String,
    /// The unreadable reply, if there was one.
    pub reply: String,
    /// The number of the attempt at these events, from 1; 0 if the failure is not caused by them.
    pub attempt: u32,
    /// The delay that the provider requested; 0 if none.
    pub retry_after_ms: u64,
    /// Input tokens, if the failure was billed.
    pub tokens_in: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

/// Classes of failures; each is handled differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum FailureClass {
    /// A retry may succeed.
    #[default]
    Transient,
    /// Too many requests; wait as requested.
    RateLimit,
    /// The quota is exhausted; distilling pauses.
    Quota,
    /// The credentials are rejected; distilling pauses.
    Auth,
    /// The request itself is invalid: an unknown model, a prompt that is too long.
    Invalid,
    /// The reply could not be parsed.
    Unreadable,
}

impl FailureClass {
    /// As tables store it and users read it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::RateLimit => "rate limit",
            Self::Quota => "quota",
            Self::Auth => "auth",
            Self::Invalid => "invalid",
            Self::Unreadable => "unreadable",
        }
    }
}

define_event! {
    AgentFailed = 7 { 1 => Self }
    texts {
        answers: none, provider: text, model: text, prompt_version: text, generation: none,
        class: none, message: text, reply: reply, attempt: none, retry_after_ms: none,
        tokens_in: none, tokens_out: none, cost_micros: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = AgentFailed {
            answers: vec![[7; 16]],
            provider: "claude".into(),
            model: "m".into(),
            prompt_version: "v".into(),
            generation: 0,
            class: FailureClass::Auth,
            message: "no".into(),
            reply: "r".into(),
            attempt: 2,
            retry_after_ms: 1000,
            tokens_in: 1,
            tokens_out: 2,
            cost_micros: 3,
        };
        assert_bytes(
            &event,
            r"\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x06claude\x01m\x01v\x00\x03\x02no\x01r\x02\xfb\xe8\x03\x01\x02\x03",
        );
    }
}
