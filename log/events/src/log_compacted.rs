//! The log is compacted up to here.

use serde::{Deserialize, Serialize};

/// Compaction may erase what is no longer needed before this event. Only earlier events decide what
/// is erased. So another process can finish an interrupted compaction, and rows do not depend on
/// whether the bytes are already gone. A forgetting before this point cannot be undone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct LogCompacted {
    /// Erase replies that a later generation superseded.
    pub drops_superseded: bool,
    /// Of the inputs and outputs of these tools, keep only a digest once they are answered.
    pub tools: Vec<String>,
    /// The same for all tools before this time.
    pub raw_before_us: Option<u64>,
}

define_event! {
    LogCompacted = 15 { 1 => Self }
    texts {
        drops_superseded: none, tools: text, raw_before_us: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = LogCompacted {
            drops_superseded: true,
            tools: vec!["t".into()],
            raw_before_us: Some(5),
        };
        assert_bytes(&event, r"\x01\x01\x01t\x01\x05");
    }
}
