//! The envelope: fields that every event has.

use crate::{DecodeError, codec};
use claude_mem_log::Error;
use serde::{Deserialize, Serialize};

/// Machine, client, session, project and git state of an event.
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
    /// The branch that was checked out; empty if it is unknown or HEAD is detached.
    #[serde(default)]
    pub branch: String,
    /// The commit of HEAD, in hex; empty if it is unknown or there is none yet.
    #[serde(default)]
    pub commit: String,
}

/// Version 1: without git state.
#[derive(Deserialize)]
struct V1 {
    host: String,
    platform: String,
    session: String,
    project: Project,
}

impl From<V1> for Envelope {
    fn from(V1 { host, platform, session, project }: V1) -> Self {
        Self { host, platform, session, project, branch: String::new(), commit: String::new() }
    }
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

visit_texts!(Envelope {
    host: text,
    platform: text,
    session: text,
    project: text,
    branch: text,
    commit: text,
});

visit_texts!(Project { key: path, label: text, root: path });

/// The first byte of every payload: the version of the envelope that we write.
const VERSION: u8 = 2;

impl Envelope {
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.push(VERSION);
        codec::write(self, out)
    }

    /// Decodes the envelope and returns the body after it.
    pub(crate) fn read(payload: &[u8]) -> Result<(Self, &[u8]), DecodeError> {
        match payload.split_first() {
            Some((1, rest)) => {
                codec::read_prefix(rest).map(|(v1, body): (V1, _)| (v1.into(), body))
            }
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

    fn example() -> Envelope {
        Envelope {
            host: "h".into(),
            platform: "claude-code".into(),
            session: "s".into(),
            project: Project { key: "k".into(), label: "l".into(), root: "/r".into() },
            branch: "main".into(),
            commit: "c0ffee".into(),
        }
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn v1_bytes_are_read_without_git_state() {
        let bytes = b"\x01\x01h\x0bclaude-code\x01s\x01k\x01l\x02/rbody";
        let expected = Envelope { branch: String::new(), commit: String::new(), ..example() };
        assert_eq!(Envelope::read(bytes), Ok((expected, b"body".as_slice())));
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn v2_bytes_are_fixed() {
        let mut bytes = Vec::new();
        example().write(&mut bytes).unwrap();
        assert_eq!(bytes, b"\x02\x01h\x0bclaude-code\x01s\x01k\x01l\x02/r\x04main\x06c0ffee");
        bytes.extend_from_slice(b"body");
        assert_eq!(Envelope::read(&bytes), Ok((example(), b"body".as_slice())));
    }

    #[test]
    fn any_other_version_is_an_error_not_a_panic() {
        for bytes in [
            b"".as_slice(),
            b"\x00",
            b"\x01",
            b"\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x02\x00\x00\x00\x00\x00\x00",
            b"\x03\x00\x00\x00\x00\x00\x00\x00\x00",
        ] {
            assert!(Envelope::read(bytes).is_err(), "{bytes:?}");
        }
    }
}
