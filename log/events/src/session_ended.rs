//! A session ended.

use serde::{Deserialize, Serialize};

/// The session ended.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SessionEnded {
    /// `clear`, `resume`, `logout`, `prompt_input_exit`, `other`.
    pub reason: String,
    /// Unknown fields of the hook's JSON, as a JSON object; empty if there are none.
    pub extra: String,
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
