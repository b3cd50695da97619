//! Reprocessing began.

use crate::{DecodeError, Versioned, codec};
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

impl Versioned for ReprocessStarted {
    const KIND: u16 = 8;
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
        let mut bytes = Vec::new();
        codec::write(&event, &mut bytes).unwrap();
        assert_eq!(
            bytes.escape_ascii().to_string(),
            r"\x01\x01v\x01t\x07extract\x01m\x01\x01\x00\x01p\x01s\x01\x00"
        );
        assert_eq!(ReprocessStarted::read(1, &bytes), Ok(event));
        assert!(ReprocessStarted::read(ReprocessStarted::VERSION + 1, &bytes).is_err());
    }
}
