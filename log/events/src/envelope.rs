//! The envelope: fields that every event has.

use crate::{DecodeError, codec};
use claude_mem_log::Error;
use serde::{Deserialize, Serialize};

/// Machine, client, session and project of an event.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    /// The id of the machine.
    pub host: String,
    /// The client: `claude-code`.
    pub platform: String,
    /// The client's id of the session; empty if there is none.
    pub session: String,
    /// The project.
    pub project: Project,
}

/// A project, as detected from the file system without running git.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Project {
    /// Its identity: from the remote if there is one, else from its path.
    pub key: String,
    /// Its name.
    pub label: String,
    /// Its top directory.
    pub root: String,
}

/// The first byte of every payload.
const VERSION: u8 = 1;

impl Envelope {
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.push(VERSION);
        codec::write(self, out)
    }

    /// Decodes the envelope and returns the body behind it.
    pub(crate) fn read(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match payload.split_first() {
            Some((&VERSION, rest)) => codec::read_prefix(rest),
            Some((version, _)) => {
                Err(DecodeError::Malformed(format!("envelope version {version} is not known")))
            }
            None => Err(DecodeError::Malformed("empty".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn v1_bytes_are_fixed() {
        let envelope = Envelope {
            host: "h".into(),
            platform: "claude-code".into(),
            session: "s".into(),
            project: Project { key: "k".into(), label: "l".into(), root: "/r".into() },
        };
        let mut bytes = Vec::new();
        envelope.write(&mut bytes).unwrap();
        assert_eq!(bytes, b"\x01\x01h\x0bclaude-code\x01s\x01k\x01l\x02/r");
        bytes.extend_from_slice(b"body");
        assert_eq!(Envelope::read(&bytes), Ok((envelope, b"body".as_slice())));
    }

    #[test]
    fn any_other_version_is_an_error_not_a_panic() {
        for bytes in [b"".as_slice(), b"\x02", b"\x01", b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff"]
        {
            assert!(Envelope::read(bytes).is_err());
        }
    }
}
