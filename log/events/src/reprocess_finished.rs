//! Reprocessing ended.

use serde::{Deserialize, Serialize};

/// Reprocessing is complete or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReprocessFinished {
    /// Its number.
    pub generation: u32,
    /// Whether its memories replace the earlier ones. May be set later, for one that was made for
    /// comparison.
    pub is_current: bool,
}

define_event! {
    ReprocessFinished = 9 { 1 => Self }
    texts {
        generation: none, is_current: none,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = ReprocessFinished { generation: 300, is_current: true };
        assert_bytes(&event, r"\xfb,\x01\x01");
    }
}
