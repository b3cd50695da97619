//! The agent did not answer.

use crate::{DecodeError, Versioned, codec};
use serde::{Deserialize, Serialize};

/// The agent did not answer, or not readably.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct AgentFailed {
    /// The events that were put to it, by id, in order.
    pub answers: Vec<[u8; 16]>,
    /// `claude`, `anthropic`, `openai`, `extract`.
    pub provider: String,
    /// The model that was asked.
    pub model: String,
    /// The hash of the prompt texts in force.
    pub prompt_version: String,
    /// 0 as the work went on; above that, which reprocessing asked.
    pub generation: u32,
    /// What kind of failure.
    pub class: FailureClass,
    /// What was said, for people.
    pub message: String,
    /// What came instead of a readable reply, if anything.
    pub reply: String,
    /// Which attempt at these events this was, from 1; 0 if the failure says nothing about them.
    pub attempt: u32,
    /// How long the provider asked us to wait; 0 if it did not say.
    pub retry_after_ms: u64,
    /// Tokens read, where the failure was paid for.
    pub tokens_in: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Millionths of a dollar.
    pub cost_micros: u64,
}

/// What kind of failure, because each is treated differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum FailureClass {
    /// It may work when tried again.
    #[default]
    Transient,
    /// Too many requests; wait as told.
    RateLimit,
    /// Nothing left to spend; asking pauses.
    Quota,
    /// The key or login is not accepted; asking pauses.
    Auth,
    /// The request itself is wrong: a model that does not exist, a prompt that is too long.
    Invalid,
    /// An answer came, but nothing in it could be read.
    Unreadable,
}

impl Versioned for AgentFailed {
    const KIND: u16 = 7;
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
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            r"\x01\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x06claude\x01m\x01v\x00\x03\x02no\x01r\x02\xfb\xe8\x03\x01\x02\x03"
        );
        assert_eq!(AgentFailed::read(1, &bytes), Ok(event));
        assert!(AgentFailed::read(AgentFailed::VERSION + 1, &bytes).is_err());
    }
}
