//! Seals, and the reasons for gaps.

use super::{
    FRAME_HEADER_LEN, FRAME_PAYLOAD_MAX, FrameFields, KIND_SEAL, array_at, encode_frame, u32_at,
    u64_at,
};
use crate::Id;
use sha2::{Digest, Sha256};

const SEAL_END: [u8; 4] = [0xF9, b'e', b'n', b'd'];
const SEAL_SCHEMA: u16 = 1;
const SEAL_FIXED_LEN: usize = 176;
const SEAL_TRAILER_LEN: usize = 8;

/// Why bytes of a segment are not records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum GapReason {
    /// A write was cut short; others appended after it. It was never acknowledged.
    TornWrite = 1,
    /// The header of a frame is intact, its payload is not: one record is lost, its id is known.
    DamagedPayload = 2,
    /// Bytes that are not a frame, up to the next intact one.
    DamagedFrames = 3,
    /// Bytes that are not a frame, up to the end of a segment that is no longer appended to.
    DamagedTail = 4,
    /// The header of the segment is damaged. No record is lost by that.
    DamagedHeader = 5,
    /// A segment is missing.
    MissingSegment = 6,
    /// The seal does not match the bytes before it, or the seal of the previous segment.
    BrokenSeal = 7,
    /// The payload is intact but cannot be decompressed.
    Undecodable = 8,
    /// The segment was longer before. The content of its end is unknown.
    Truncated = 9,
}

impl GapReason {
    fn from_byte(byte: u8) -> Option<Self> {
        const ALL: [GapReason; 9] = [
            GapReason::TornWrite,
            GapReason::DamagedPayload,
            GapReason::DamagedFrames,
            GapReason::DamagedTail,
            GapReason::DamagedHeader,
            GapReason::MissingSegment,
            GapReason::BrokenSeal,
            GapReason::Undecodable,
            GapReason::Truncated,
        ];
        ALL.into_iter().find(|reason| *reason as u8 == byte)
    }

    /// A description for people. Rows of gaps contain it, so a new text would change a rebuild.
    pub fn describe(self) -> &'static str {
        match self {
            Self::TornWrite => "a write that was cut short",
            Self::DamagedPayload => "one damaged record",
            Self::DamagedFrames => "damaged bytes",
            Self::DamagedTail => "a damaged end",
            Self::DamagedHeader => "a damaged segment header",
            Self::MissingSegment => "a missing segment",
            Self::BrokenSeal => "a seal that does not fit",
            Self::Undecodable => "a record that cannot be decompressed",
            Self::Truncated => "an end that was cut off",
        }
    }
}

/// The seal of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seal {
    /// Number of records.
    pub records: u64,
    /// Bytes before the seal's frame.
    pub bytes: u64,
    /// Earliest time in any record's id.
    pub time_min_us: u64,
    /// Latest time in any record's id.
    pub time_max_us: u64,
    /// Last segment number whose records are in this file.
    pub number_last: u64,
    /// Id of the first record, zero if there is none.
    pub id_first: Id,
    /// Id of the last record.
    pub id_last: Id,
    /// SHA-256 of all bytes before the seal's frame.
    pub hash: [u8; 32],
    /// The same hash in generation 0.
    pub hash_origin: [u8; 32],
    /// Link of the previous segment.
    pub link_previous: [u8; 32],
    /// Damage that existed when the segment was sealed.
    pub gaps: Vec<(u64, u64, GapReason)>,
    /// Offsets of frames, each with the latest time of any record before it.
    pub index: Vec<IndexEntry>,
}

/// An entry of a segment's sparse index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexEntry {
    /// The offset of a frame.
    pub offset: u64,
    /// Latest time of any record before it in the segment.
    pub time_max_before_us: u64,
}

impl Seal {
    /// The seal of an empty segment.
    pub(crate) fn empty(number: u64) -> Self {
        let zero = Id::from_bytes([0; 16]);
        Self {
            records: 0,
            bytes: 0,
            time_min_us: 0,
            time_max_us: 0,
            number_last: number,
            id_first: zero,
            id_last: zero,
            hash: [0; 32],
            hash_origin: [0; 32],
            link_previous: [0; 32],
            gaps: Vec::new(),
            index: Vec::new(),
        }
    }

    /// The link that the next segment's seal must contain.
    pub fn link(&self) -> [u8; 32] {
        link_of(&self.link_previous, &self.hash_origin)
    }

    /// Encodes the seal's frame.
    pub fn encode_frame(&self, id: Id, salt: u32) -> Vec<u8> {
        let mut payload =
            Vec::with_capacity(SEAL_FIXED_LEN + 24 * self.gaps.len() + 16 * self.index.len());
        for number in
            [self.records, self.bytes, self.time_min_us, self.time_max_us, self.number_last]
        {
            payload.extend_from_slice(&number.to_le_bytes());
        }
        payload.extend_from_slice(self.id_first.as_bytes());
        payload.extend_from_slice(self.id_last.as_bytes());
        for hash in [&self.hash, &self.hash_origin, &self.link_previous] {
            payload.extend_from_slice(hash);
        }
        payload.extend_from_slice(&(self.gaps.len() as u32).to_le_bytes());
        payload.extend_from_slice(&(self.index.len() as u32).to_le_bytes());
        for (offset, len, reason) in &self.gaps {
            payload.extend_from_slice(&offset.to_le_bytes());
            payload.extend_from_slice(&len.to_le_bytes());
            payload.extend_from_slice(&u64::from(*reason as u8).to_le_bytes());
        }
        for entry in &self.index {
            payload.extend_from_slice(&entry.offset.to_le_bytes());
            payload.extend_from_slice(&entry.time_max_before_us.to_le_bytes());
        }
        let frame_len = FRAME_HEADER_LEN + payload.len() + SEAL_TRAILER_LEN;
        payload.extend_from_slice(&(frame_len as u32).to_le_bytes());
        payload.extend_from_slice(&SEAL_END);
        let fields = FrameFields { kind: KIND_SEAL, schema: SEAL_SCHEMA, codec: 0, flags: 0, id };
        let mut frame = Vec::new();
        encode_frame(fields, &[&payload], salt, &mut frame);
        frame
    }

    /// Decodes a seal's payload; `None` if it is invalid. Never allocates more than the bytes
    /// given.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let fixed = payload.get(..SEAL_FIXED_LEN)?;
        let gaps_len = (u32_at(fixed, 168) as usize).checked_mul(24)?;
        let index_len = (u32_at(fixed, 172) as usize).checked_mul(16)?;
        let expected = SEAL_FIXED_LEN.checked_add(gaps_len)?.checked_add(index_len)?;
        if payload.len() != expected.checked_add(SEAL_TRAILER_LEN)? {
            return None;
        }
        let (gaps, index) = payload[SEAL_FIXED_LEN..expected].split_at(gaps_len);
        Some(Self {
            records: u64_at(fixed, 0),
            bytes: u64_at(fixed, 8),
            time_min_us: u64_at(fixed, 16),
            time_max_us: u64_at(fixed, 24),
            number_last: u64_at(fixed, 32),
            id_first: Id::from_bytes(array_at(fixed, 40)),
            id_last: Id::from_bytes(array_at(fixed, 56)),
            hash: array_at(fixed, 72),
            hash_origin: array_at(fixed, 104),
            link_previous: array_at(fixed, 136),
            gaps: gaps
                .chunks_exact(24)
                .map(|gap| Some((u64_at(gap, 0), u64_at(gap, 8), GapReason::from_byte(gap[16])?)))
                .collect::<Option<_>>()?,
            index: index
                .chunks_exact(16)
                .map(|entry| IndexEntry {
                    offset: u64_at(entry, 0),
                    time_max_before_us: u64_at(entry, 8),
                })
                .collect(),
        })
    }

    /// The length of the seal's frame, from the last eight bytes of a file; `None` if it has no
    /// seal.
    pub(crate) fn frame_len_from_end(last: [u8; SEAL_TRAILER_LEN]) -> Option<u64> {
        let len = u64::from(u32_at(&last, 0));
        let max = (FRAME_HEADER_LEN + FRAME_PAYLOAD_MAX) as u64;
        (last[4..] == SEAL_END && len <= max).then_some(len)
    }
}

/// How the segments in a merged file are linked: the payload of its first frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Links {
    /// Link of the segment before the first one.
    pub first: [u8; 32],
    /// Link of the segment before the last one. The seal contains it, too.
    pub last: [u8; 32],
    /// Generation-0 hashes of all segments but the last.
    pub hashes: Vec<[u8; 32]>,
}

impl Links {
    /// The links that follow from `first` and the hashes.
    pub fn new(first: [u8; 32], hashes: Vec<[u8; 32]>) -> Self {
        let last = hashes.iter().fold(first, |link, hash| link_of(&link, hash));
        Self { first, last, hashes }
    }

    /// Encodes the payload.
    pub fn encode(&self) -> Vec<u8> {
        [self.first].iter().chain(&self.hashes).flatten().copied().collect()
    }

    /// Decodes the payload; `None` if it is invalid.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (hashes, []) = payload.as_chunks::<32>() else { return None };
        let (first, hashes) = hashes.split_first()?;
        Some(Self::new(*first, hashes.to_vec()))
    }
}

fn link_of(link_previous: &[u8; 32], hash_origin: &[u8; 32]) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(link_previous);
    hasher.update(hash_origin);
    hasher.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_reads_back() {
        let seal = Seal {
            records: 3,
            bytes: 4096,
            time_min_us: 1,
            time_max_us: 9,
            number_last: 7,
            id_first: Id::new(1, 1),
            id_last: Id::new(9, 1),
            hash: [1; 32],
            hash_origin: [2; 32],
            link_previous: [3; 32],
            gaps: vec![(64, 10, GapReason::TornWrite)],
            index: vec![IndexEntry { offset: 64, time_max_before_us: 0 }],
        };
        let frame = seal.encode_frame(Id::new(10, 1), 5);
        assert_eq!(Seal::decode(&frame[FRAME_HEADER_LEN..]), Some(seal));
        let last = frame[frame.len() - 8..].try_into().unwrap();
        assert_eq!(Seal::frame_len_from_end(last), Some(frame.len() as u64));
    }
}
