//! Tombstones: what remains of an erased event, enough to fold all other rows as before.

use crate::{DecodeError, Envelope, Event, codec};
use claude_mem_log::Error;
use serde::{Deserialize, Serialize};

/// What remains of an erased event. On disk, its record contains the envelope and this.
#[derive(Debug, Clone, PartialEq)]
pub struct Tombstone {
    /// The event without its content; `None` for an unknown kind.
    pub event: Option<Event>,
    /// The size of the erased content, as rows count it.
    pub bytes: u64,
    /// Files that the input of a tool read, as given.
    pub files_read: Vec<String>,
    /// Files that it wrote.
    pub files_written: Vec<String>,
    /// The parsed reply as JSON, with erased memories emptied. Empty for other kinds.
    pub reply: String,
    /// SHA-256 of the erased payload; `None` if it was forgotten.
    pub hash: Option<[u8; 32]>,
}

visit_texts!(Tombstone {
    event: text,
    bytes: none,
    files_read: text,
    files_written: text,
    reply: json,
    hash: none,
});

/// The first byte after the envelope.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct V1 {
    version: Option<u16>,
    bytes: u64,
    files_read: Vec<String>,
    files_written: Vec<String>,
    reply: String,
    hash: Option<[u8; 32]>,
}

impl Tombstone {
    /// For a forgotten event: keeps only what other events depend on.
    pub fn of_forgotten(event: Option<Event>) -> Self {
        Self {
            event,
            bytes: 0,
            files_read: Vec::new(),
            files_written: Vec::new(),
            reply: String::new(),
            hash: None,
        }
    }

    /// Encodes the payload; an error if it is too large for a record.
    pub fn encode(&self, envelope: &Envelope) -> Result<Vec<u8>, Error> {
        let mut payload = Vec::new();
        envelope.write(&mut payload)?;
        payload.push(VERSION);
        let rest = V1 {
            version: self.event.as_ref().map(Event::version),
            bytes: self.bytes,
            files_read: self.files_read.clone(),
            files_written: self.files_written.clone(),
            reply: self.reply.clone(),
            hash: self.hash,
        };
        codec::write(&rest, &mut payload)?;
        if let Some(event) = &self.event {
            event.write_body(&mut payload)?;
        }
        Ok(payload)
    }

    /// Decodes the payload of a tombstone of this kind.
    pub(crate) fn read(kind: u16, payload: &[u8]) -> Result<(Envelope, Self), DecodeError> {
        let (envelope, rest) = Envelope::read(payload)?;
        let body = match rest.split_first() {
            Some((&VERSION, body)) => body,
            Some((version, _)) => {
                return Err(DecodeError::Malformed(format!("the tombstone has version {version}")));
            }
            None => return Err(DecodeError::Malformed("the tombstone is empty".into())),
        };
        let (rest, body): (V1, &[u8]) = codec::read_prefix(body)?;
        let V1 { version, bytes, files_read, files_written, reply, hash } = rest;
        let event = match version {
            Some(version) => Event::read_body(kind, version, body)?,
            None => None,
        };
        Ok((envelope, Self { event, bytes, files_read, files_written, reply, hash }))
    }
}

impl Event {
    /// The erased event of this kind; `None` if the payload cannot be decoded.
    pub fn erased(kind: u16, payload: &[u8]) -> Option<Self> {
        let left = match payload {
            [] => None,
            payload => Some(Box::new(Tombstone::read(kind, payload).ok()?.1)),
        };
        Some(Self::Erased { kind, left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SessionEnded, Versioned as _};

    fn example() -> (Envelope, Tombstone) {
        let event = SessionEnded { reason: "r".into(), extra: String::new() };
        let left = Tombstone {
            event: Some(event.into()),
            bytes: 7,
            files_read: vec!["a".into()],
            files_written: vec!["b".into()],
            reply: "{}".into(),
            hash: None,
        };
        (Envelope { session: "s".into(), ..Envelope::default() }, left)
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn v1_bytes_are_fixed() {
        let (envelope, left) = example();
        let payload = left.encode(&envelope).unwrap();
        assert_eq!(
            payload.escape_ascii().to_string(),
            r"\x02\x00\x00\x01s\x00\x00\x00\x00\x00\x01\x01\x01\x07\x01\x01a\x01\x01b\x02{}\x00\x01r\x00"
        );
        assert_eq!(Tombstone::read(SessionEnded::KIND, &payload), Ok((envelope, left)));
    }

    /// These bytes are on users' disks. If this fails, add a version; do not edit the bytes.
    #[test]
    fn a_tombstone_in_an_envelope_of_version_1_is_read() {
        let payload =
            b"\x01\x00\x00\x01s\x00\x00\x00\x01\x01\x01\x07\x01\x01a\x01\x01b\x02{}\x00\x01r\x00";
        assert_eq!(Tombstone::read(SessionEnded::KIND, payload), Ok(example()));
    }

    #[test]
    fn an_empty_tombstone_does_not_panic() {
        for payload in [b"".as_slice(), &[0; 32], b"\x01\x00\x00\x00\x00\x00\x00\x02"] {
            assert!(Tombstone::read(1, payload).is_err());
        }
        let unknown = Tombstone::of_forgotten(None);
        let payload = unknown.encode(&Envelope::default()).unwrap();
        assert_eq!(Tombstone::read(999, &payload), Ok((Envelope::default(), unknown)));
    }
}
