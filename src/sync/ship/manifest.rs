//! The format of a remote's index: manifests and increments, linked as a hash chain.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::ship::{Error, key::Key};

/// The id of a log: 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub [u8; 16]);

impl HostId {
    pub fn parse(text: &str) -> Option<Self> {
        from_hex(text).map(Self)
    }

    pub fn folder(self) -> String {
        format!("hosts/{self}")
    }

    pub fn description(self) -> String {
        format!("hosts/{self}/host")
    }

    pub fn entry(self, number: u64) -> String {
        format!("hosts/{self}/chain/{number:016x}")
    }

    pub fn part(self, object: &str) -> String {
        format!("hosts/{self}/seg/{object}")
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, out)
    }
}

/// A BLAKE3 or SHA-256 hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, out)
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, out)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    pub version: String,
}

/// The complete state of a log at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub log: HostId,
    pub number: u64,
    /// The hash of the previous entry; none for the first.
    pub previous: Option<Hash>,
    /// When it was created, microseconds since 1970.
    pub time_us: u64,
    /// Fingerprint of the key that encrypts the parts.
    pub key: Option<String>,
    /// The segments, in order.
    pub segments: Vec<Segment>,
}

pub const FORMAT: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub number: u64,
    /// The compaction generation.
    pub generation: u32,
    /// The last segment number whose records it contains.
    pub number_last: u64,
    /// Bytes shipped.
    pub bytes: u64,
    /// BLAKE3 of the first [`hash_bytes`](Self::hash_bytes) bytes.
    pub hash: Hash,
    /// The number of bytes covered by [`hash`](Self::hash). Later bytes came as increments, which
    /// the chain covers.
    pub hash_bytes: u64,
    /// The SHA-256 in the seal; none before the segment is sealed.
    pub seal: Option<Hash>,
    pub is_active: bool,
    /// Its parts, in order, without gaps.
    pub parts: Vec<Part>,
}

impl Segment {
    pub fn file_name(&self) -> String {
        let Self { number, number_last, generation, .. } = self;
        if self.is_active {
            "active.log".into()
        } else if number_last > number {
            format!("{number:016x}-{number_last:016x}.g{generation:02}.seg")
        } else {
            format!("{number:016x}.g{generation:02}.seg")
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Offset of its first byte in the segment.
    pub from: u64,
    /// Offset after its last byte.
    pub to: u64,
    /// Hash of the bytes, or of the last entry of the run.
    pub hash: Hash,
    /// Where the bytes are stored.
    #[serde(flatten)]
    pub at: PartLocation,
}

/// Where the bytes of a part are stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartLocation {
    /// In an object with this name.
    Object(String),
    /// In the increments with these numbers, inclusive.
    Run(u64, u64),
}

/// Bytes appended to a segment since the previous entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Increment {
    pub number: u64,
    /// The number of the manifest it extends.
    pub manifest: u64,
    pub previous: Hash,
    /// When it was created, microseconds since 1970.
    pub time_us: u64,
    pub segment: u64,
    /// The offset of the bytes in the segment.
    pub from: u64,
    pub bytes: Vec<u8>,
}

impl Increment {
    pub fn to(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry {
    Manifest(Manifest),
    Increment(Increment),
}

const KIND_MANIFEST: u8 = b'M';
const KIND_INCREMENT: u8 = b'I';
const INCREMENT_HEAD_LEN: usize = 72;

impl Entry {
    /// Encodes the entry: a letter, then JSON, or a header and the appended bytes. Increments are
    /// small and many, so their header has a fixed size.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Manifest(manifest) => {
                let mut bytes = vec![KIND_MANIFEST];
                serde_json::to_writer(&mut bytes, manifest).expect("a manifest is plain data");
                bytes
            }
            Self::Increment(increment) => {
                let mut bytes = vec![KIND_INCREMENT];
                let Increment { number, manifest, time_us, segment, from, .. } = *increment;
                bytes.extend_from_slice(&increment.previous.0);
                for field in [number, manifest, time_us, segment, from] {
                    bytes.extend_from_slice(&field.to_le_bytes());
                }
                bytes.extend_from_slice(&increment.bytes);
                bytes
            }
        }
    }

    /// Decodes the entry from the object `name`.
    pub fn decode(name: &str, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = |why: String| Error::Damaged { object: name.into(), why };
        match bytes.split_first() {
            Some((&KIND_MANIFEST, json)) => {
                let format = serde_json::from_slice::<Format>(json)
                    .map_err(|error| damaged(error.to_string()))?;
                if format.format > FORMAT {
                    return Err(Error::Newer { object: name.into() });
                }
                let manifest: Manifest =
                    serde_json::from_slice(json).map_err(|error| damaged(error.to_string()))?;
                manifest.check().map_err(|why| damaged(why.into()))?;
                Ok(Self::Manifest(manifest))
            }
            Some((&KIND_INCREMENT, rest)) => {
                let (head, bytes) = rest
                    .split_first_chunk::<INCREMENT_HEAD_LEN>()
                    .ok_or_else(|| damaged("it is too short".into()))?;
                let (previous, numbers) = head.split_at(32);
                let field = |at: usize| {
                    let bytes = numbers[8 * at..8 * at + 8].try_into().expect("there are five");
                    u64::from_le_bytes(bytes)
                };
                Ok(Self::Increment(Increment {
                    previous: Hash(previous.try_into().expect("it was split there")),
                    number: field(0),
                    manifest: field(1),
                    time_us: field(2),
                    segment: field(3),
                    from: field(4),
                    bytes: bytes.to_vec(),
                }))
            }
            _ => Err(Error::Newer { object: name.into() }),
        }
    }
}

#[derive(Deserialize)]
struct Format {
    format: u32,
}

impl Manifest {
    /// Checks that it is consistent: segments in order, parts without gaps.
    fn check(&self) -> Result<(), &'static str> {
        let mut number_next = 0;
        for segment in &self.segments {
            if segment.number < number_next || segment.number_last < segment.number {
                return Err("its segments are not in order");
            }
            number_next = segment.number_last + 1;
            let mut from = 0;
            for part in &segment.parts {
                if part.from != from || part.to <= part.from {
                    return Err("there is a gap between the parts of a segment");
                }
                from = part.to;
            }
            if from != segment.bytes || segment.hash_bytes > segment.bytes {
                return Err("the parts of a segment do not make up its length");
            }
        }
        Ok(())
    }
}

/// The name of a part, derived from its content, so uploading twice is idempotent. With a key the
/// name is keyed, too, and reveals nothing about the content.
pub(crate) fn part_object(
    segment: u64,
    generation: u32,
    from: u64,
    to: u64,
    hash: &Hash,
    key: Option<&Key>,
) -> String {
    let tag = match key {
        None => *hash,
        Some(key) => {
            let naming = blake3::derive_key("claude-mem 2026 names of parts", key.bytes());
            Hash(blake3::keyed_hash(&naming, &hash.0).into())
        }
    };
    let tag = tag.to_string();
    format!("{segment:016x}.g{generation:02}/{from:08x}-{to:08x}.{}", &tag[..16])
}

fn write_hex(bytes: &[u8], out: &mut fmt::Formatter<'_>) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let value = |digit: u8| (digit as char).to_digit(16);
        *byte = (value(pair[0])? << 4 | value(pair[1])?) as u8;
    }
    Some(bytes)
}

macro_rules! as_hex {
    ($($type:ident),*) => {$(
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                out.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = String::deserialize(from)?;
                from_hex(&text).map(Self).ok_or_else(|| de::Error::custom("not hexadecimal"))
            }
        }
    )*};
}
as_hex!(HostId, Hash);

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        let part =
            Part { from: 0, to: 9, hash: Hash([2; 32]), at: PartLocation::Object("a".into()) };
        let run = Part { from: 9, to: 12, hash: Hash([3; 32]), at: PartLocation::Run(4, 6) };
        Manifest {
            format: FORMAT,
            log: HostId([0xab; 16]),
            number: 7,
            previous: Some(Hash([1; 32])),
            time_us: 5,
            key: None,
            segments: vec![Segment {
                number: 1,
                generation: 0,
                number_last: 1,
                bytes: 12,
                hash: Hash([4; 32]),
                hash_bytes: 12,
                seal: None,
                is_active: true,
                parts: vec![part, run],
            }],
        }
    }

    #[test]
    fn entries_round_trip() {
        let manifest = Entry::Manifest(manifest());
        assert_eq!(Entry::decode("m", &manifest.encode()).unwrap(), manifest);
        let increment = Entry::Increment(Increment {
            number: 8,
            manifest: 7,
            previous: Hash([9; 32]),
            time_us: 6,
            segment: 1,
            from: 12,
            bytes: b"more".to_vec(),
        });
        assert_eq!(Entry::decode("i", &increment.encode()).unwrap(), increment);
    }

    /// These bytes are in users' buckets. If this fails, add a version; do not edit the bytes.
    #[test]
    fn the_bytes_of_a_manifest_are_fixed() {
        let text = String::from_utf8(Entry::Manifest(manifest()).encode()).unwrap();
        let hash = |byte: u8| Hash([byte; 32]).to_string();
        assert_eq!(
            text,
            format!(
                "M{{\"format\":1,\"log\":\"{}\",\"number\":7,\"previous\":\"{}\",\"time_us\":5,\
                 \"key\":null,\"segments\":[{{\"number\":1,\"generation\":0,\"number_last\":1,\
                 \"bytes\":12,\"hash\":\"{}\",\"hash_bytes\":12,\"seal\":null,\"is_active\":true,\
                 \"parts\":[{{\"from\":0,\"to\":9,\"hash\":\"{}\",\"object\":\"a\"}},\
                 {{\"from\":9,\"to\":12,\"hash\":\"{}\",\"run\":[4,6]}}]}}]}}",
                "ab".repeat(16),
                hash(1),
                hash(4),
                hash(2),
                hash(3)
            )
        );
    }

    #[test]
    fn a_manifest_that_contradicts_itself_is_damaged() {
        let spoilt = |change: fn(&mut Segment)| {
            let mut manifest = manifest();
            change(&mut manifest.segments[0]);
            Entry::decode("m", &Entry::Manifest(manifest).encode())
        };
        assert!(spoilt(|_| ()).is_ok());
        assert!(spoilt(|segment| segment.bytes = 13).is_err());
        assert!(spoilt(|segment| segment.parts[1].from = 8).is_err());
        assert!(spoilt(|segment| segment.number_last = 0).is_err());
        let newer = b"M{\"format\":2}";
        assert!(matches!(Entry::decode("m", newer), Err(Error::Newer { .. })));
    }
}
