//! Two projects were merged, or one was renamed.

use crate::{DecodeError, Versioned, codec};
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

impl Versioned for ProjectMerged {
    const KIND: u16 = 14;
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
        let event = ProjectMerged { from: "a".into(), into: "b".into(), label: "l".into() };
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(bytes.escape_ascii().to_string(), r"\x01a\x01b\x01l");
        assert_eq!(ProjectMerged::read(1, &bytes), Ok(event));
        assert!(ProjectMerged::read(ProjectMerged::VERSION + 1, &bytes).is_err());
    }
}
