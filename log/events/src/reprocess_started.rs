//! Reprocessing began.

use serde::{Deserialize, Serialize};

/// Reprocessing of earlier events began.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReprocessStarted {
    /// Number of this reprocessing, from 1.
    pub generation: u32,
    /// The hash of the prompt texts.
    pub prompt_version: String,
    /// The prompt texts themselves, so that it can be resumed.
    pub prompt: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Events from this time on.
    pub since_us: Option<u64>,
    /// Events before this time.
    pub until_us: Option<u64>,
    /// Only this project; empty for all.
    pub project: String,
    /// Only this session; empty for all.
    pub session: String,
    /// Send requests even if a reply with this prompt version is recorded.
    pub is_fresh: bool,
    /// For comparison only; not to be made current.
    pub is_shadow: bool,
}

// The prompt is the user's own file, and can mention our tags, so it is not redacted.
define_event! {
    ReprocessStarted = 8 { 1 => Self }
    texts {
        generation: none, prompt_version: none, prompt: none, provider: text, model: text,
        since_us: none, until_us: none, project: text, session: text, is_fresh: none,
        is_shadow: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = ReprocessStarted {
            generation: 1,
            prompt_version: "v".into(),
            prompt: "t".into(),
            provider: "extract".into(),
            model: "m".into(),
            since_us: Some(1),
            until_us: None,
            project: "p".into(),
            session: "s".into(),
            is_fresh: true,
            is_shadow: false,
        };
        assert_bytes(&event, r"\x01\x01v\x01t\x07extract\x01m\x01\x01\x00\x01p\x01s\x01\x00");
    }
}
