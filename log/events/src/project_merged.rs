//! Two projects were merged, or one was renamed.

use serde::{Deserialize, Serialize};

/// Everything recorded under one key, now and later, belongs to another project; or a project gets
/// a name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProjectMerged {
    /// The merged key.
    pub from: String,
    /// The key it is merged into. If it equals `from`, the project is renamed, or a merge is undone.
    pub into: String,
    /// The new name; empty to keep the old one.
    pub label: String,
}

define_event! {
    ProjectMerged = 14 { 1 => Self }
    texts {
        from: text, into: text, label: text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::define_event::assert_bytes;

    #[test]
    fn v1_bytes_are_fixed() {
        let event = ProjectMerged { from: "a".into(), into: "b".into(), label: "l".into() };
        assert_bytes(&event, r"\x01a\x01b\x01l");
    }
}
