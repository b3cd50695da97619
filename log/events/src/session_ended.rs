//! A session ended.

use serde::{Deserialize, Serialize};

/// The session ended, or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionEnded {
    /// `clear`, `resume`, `logout`, `prompt_input_exit`, `other`, or [`CANCELLED`](Self::CANCELLED).
    pub reason: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
}

impl SessionEnded {
    /// The reason of a session that was cancelled over the API: it has failed, and its events are
    /// not distilled until it continues. No client gives this reason.
    pub const CANCELLED: &str = "claude-mem:cancelled";
}

define_event! {
    SessionEnded = 5 { 1 => Self }
    texts {
        reason: text, extra: json,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = SessionEnded { reason: "clear".into(), extra: "{}".into() };
        assert_bytes(&event, r"\x05clear\x02{}");
    }
}
