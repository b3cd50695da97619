//! The disk format, byte by byte. Everything that knows an offset or a width is in this file.
//!
//! A log is a directory of *segments*. A segment has a 64-byte header, then *frames* without gaps
//! between them. Once it is complete, the last frame is its *seal*. Integers are little-endian and
//! unsigned. Checksums are CRC-32 (IEEE, as in gzip). This is format version 1.
//!
//! # Files
//!
//! | name | contents |
//! |---|---|
//! | `active.log` | the segment that is being appended to |
//! | `NNNNNNNNNNNNNNNN.gGG.seg` | a segment no longer appended to: its number in 16 hexadecimal digits, its generation (00 as written, one more each time it is compacted) |
//! | `NNNNNNNNNNNNNNNN-MMMMMMMMMMMMMMMM.gGG.seg` | several segments merged by compaction: the numbers of the first and the last, a generation above those of all of them |
//! | `compact.lock` | held during compaction |
//! | `log.id` | the log's identity in text: `claude-mem log 1 <32 hex digits> <8 hex digits of crc32 of the 16 bytes>` |
//! | `synced` | how far the log is known to be on disk: segment u64, bytes u64, crc32 of these 16 bytes |
//! | `suspect` | exists while records after the position in it (as in `synced`) may be missing on disk: a sync failed, and they must be written again |
//! | `reserve` | space reserved for the last records before the disk is full |
//! | `spill/ID.seg` | records of one process that could not reach `active.log`; a segment numbered 0 |
//! | `quarantine/NNNNNNNNNNNNNNNN-OFFSET` | damaged bytes, copied here, never removed from the segment |
//! | `quarantine/spill-ID` | a spill file with damage; its intact records have been merged |
//! | `*.tmp` | temporary files; without meaning once their process has ended |
//!
//! # Segment header, 64 bytes
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 8 | magic `F9 63 6D 6C 6F 67 0D 0A` |
//! | 8 | 2 | format version that wrote it: 1 |
//! | 10 | 2 | lowest format version that a reader must support: 1 |
//! | 12 | 4 | length of this header: 64; frames begin there |
//! | 16 | 8 | number of the segment, from 1 |
//! | 24 | 16 | id of the log |
//! | 40 | 8 | time of creation, microseconds since 1970 |
//! | 48 | 8 | length of the previous segment when it was rolled; 0 if unknown |
//! | 56 | 4 | salt: crc32 of the log's id and the segment's number (8 bytes) |
//! | 60 | 4 | crc32 of bytes 0 to 59 |
//!
//! The salt follows from the file name and `log.id`, so no record is lost with a damaged header. A
//! header whose number differs from the file name counts as damaged. If the header of `active.log`
//! is damaged, its number is that of the last segment plus one. A compacted segment has the header
//! of its original, a merged one that of its first segment.
//!
//! A file is *superseded* if a file of a later generation contains all its segments. It is no
//! longer part of the log: a compactor was killed before it deleted the file. A later generation is
//! complete and synced before it gets its name, and its name is synced before an earlier generation
//! is deleted.
//!
//! # Frame, 40 bytes and the payload
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 4 | magic `F9 6D FE 63`: two of these bytes can never occur in UTF-8 |
//! | 4 | 4 | length of the payload, at most 16 MiB + 64 |
//! | 8 | 2 | kind; 0xFF00 and above are reserved for the log |
//! | 10 | 2 | schema: version of that kind |
//! | 12 | 1 | codec: how the payload is encoded; not interpreted by the log |
//! | 13 | 1 | flags: 1 = payload is one zstd frame, 2 = moved, 4 = tombstone, 8 = again |
//! | 14 | 2 | zero |
//! | 16 | 16 | id of the record |
//! | 32 | 4 | crc32 of the payload as stored |
//! | 36 | 4 | crc32 of bytes 0 to 35, started from the segment's salt instead of 0 |
//! | 40 | | payload |
//!
//! - *Moved*: written by compaction. The payload is preceded by 8 bytes, the `seq` of the record
//!   when it was first written. They count in the length and the checksum, and are outside the zstd
//!   frame. A frame without this flag in a compacted segment is at its original position.
//! - *Tombstone*: the payload was erased. The compacting program chooses what remains, often
//!   nothing.
//! - *Again*: a sync failed, so the record was written again. The payload is preceded by 8 bytes,
//!   the `seq` of the original. Readers skip this frame if the original is intact. A record that
//!   was written again and then moved has both numbers, its own first.
//!
//! There is no padding, so a reader needs no rule to skip zeros. No checksum covers more than one
//! frame, so a damaged frame affects no other. A payload may quote a frame of another segment: its
//! salt differs, so it is not mistaken for a frame of this one.
//!
//! # Seal, the payload of a frame of kind 0xFFFF, schema 1
//!
//! | offset | size | content |
//! |---|---|---|
//! | 0 | 8 | number of records |
//! | 8 | 8 | bytes before the seal's frame, the segment header included |
//! | 16 | 8 | earliest time in any record's id, microseconds |
//! | 24 | 8 | latest |
//! | 32 | 8 | last segment number whose records are in this file (its own, unless merged) |
//! | 40 | 16 | id of the first record |
//! | 56 | 16 | id of the last record |
//! | 72 | 32 | SHA-256 of all bytes before the seal's frame |
//! | 104 | 32 | the same for generation 0, preserved by compaction; in a merged file, for its last segment |
//! | 136 | 32 | link of the segment before that one; zero for the first |
//! | 168 | 4 | number of gaps, G |
//! | 172 | 4 | number of index entries, I |
//! | 176 | 24 G | gaps: offset u64, length u64, reason u8 (see [`GapReason`]), 7 zeros |
//! | | 16 I | index: offset of a frame u64, latest time of any record before it u64 |
//! | | 4 | length of the seal's whole frame |
//! | | 4 | magic `F9 65 6E 64`: a file that ends with it ends with a seal |
//!
//! A segment's *link* is the SHA-256 of the previous link and its generation-0 hash. Seals form a
//! chain of links, so a compacted segment still fits between its neighbors. A merged file begins
//! with a frame of kind 0xFFFE, schema 1. Its payload is the link of the segment before its first
//! one, then the generation-0 hash of each of its segments but the last. The link in the seal
//! follows from these.
//!
//! # Reading
//!
//! At offset *o*, starting after the header:
//!
//! 1. Header and payload are intact: this is a record. Continue after it.
//! 2. The header is intact, but the payload is damaged or ends beyond the file: find the next
//!    intact frame after *o*. If it starts at *p*, before the end of this frame, [*o*, *p*) is a
//!    torn write that another process appended to; continue at *p*. If it starts later, this frame
//!    alone is damaged, and its id and kind are known; continue after it.
//! 3. The header is damaged: search byte by byte for an intact frame. The bytes before it are
//!    damaged.
//! 4. There is no intact frame up to the end of the file. In `active.log` an append may be in
//!    progress, so wait: only a later intact frame proves that the bytes before it are complete.
//!    Apply rules 2 and 3 there only to bytes read after that frame was seen, because an earlier
//!    read may have returned half of a write. In any other segment these bytes are damaged: one
//!    frame if the header is intact, else all of them.
//! 5. Never truncate, overwrite or skip silently. A segment has lost its end if it is shorter than
//!    its successor's header or `synced` states.
//! 6. A repeated id in the same segment is the same record; return it once.

mod marks;
mod seal;

pub use marks::{SyncMark, decode_log_id, encode_log_id};
pub use seal::{GapReason, IndexEntry, Links, Seal};

use crate::{Id, Seq};

/// The version this crate writes.
pub const FORMAT: u16 = 1;
/// Length of a segment's header.
pub const SEGMENT_HEADER_LEN: usize = 64;
/// Length of a frame without its payload.
pub const FRAME_HEADER_LEN: usize = 40;
/// The largest payload a record may have.
pub const PAYLOAD_BYTES_MAX: usize = 16 << 20;
/// The kinds from here on are reserved for the log.
pub const KIND_RESERVED: u16 = 0xFF00;
/// The kind of a seal.
pub const KIND_SEAL: u16 = 0xFFFF;
/// The kind of the frame that links the segments in a merged file.
pub const KIND_CHAIN: u16 = 0xFFFE;

/// Flag: the payload is one zstd frame.
pub const FLAG_ZSTD: u8 = 1;
/// Flag: the payload is preceded by the `seq` the record was first written at.
pub const FLAG_MOVED: u8 = 2;
/// Flag: the payload was removed.
pub const FLAG_TOMBSTONE: u8 = 4;

/// Flag: the record was written again after a failed sync; the payload is preceded by its
/// first position.
pub const FLAG_AGAIN: u8 = 8;

/// The first bytes of a frame.
pub const FRAME_MAGIC: [u8; 4] = [0xF9, 0x6D, 0xFE, 0x63];
const SEGMENT_MAGIC: [u8; 8] = [0xF9, b'c', b'm', b'l', b'o', b'g', 0x0D, 0x0A];
/// Includes space for the old `seq` of a moved record, and for the overhead of zstd on data that
/// does not shrink.
const FRAME_PAYLOAD_MAX: usize = PAYLOAD_BYTES_MAX + 64;

/// The header of a segment file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Format version that wrote it.
    pub format: u16,
    /// Least format version that a reader must know.
    pub min_reader: u16,
    /// Number of the segment; 0 in a spill file.
    pub number: u64,
    /// Identity of the log.
    pub log_id: [u8; 16],
    /// Microseconds since 1970.
    pub created_us: u64,
    /// Bytes of the previous segment when it was rolled; 0 if unknown.
    pub bytes_before: u64,
}

impl SegmentHeader {
    /// The header of a new segment.
    pub fn new(log_id: [u8; 16], number: u64, created_us: u64) -> Self {
        Self { format: FORMAT, min_reader: FORMAT, number, log_id, created_us, bytes_before: 0 }
    }

    /// The initial value of the header checksums of this segment's frames.
    pub fn salt(&self) -> u32 {
        salt(self.log_id, self.number)
    }

    /// The 64 bytes.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_LEN] {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        bytes[0..8].copy_from_slice(&SEGMENT_MAGIC);
        bytes[8..10].copy_from_slice(&self.format.to_le_bytes());
        bytes[10..12].copy_from_slice(&self.min_reader.to_le_bytes());
        bytes[12..16].copy_from_slice(&(SEGMENT_HEADER_LEN as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.number.to_le_bytes());
        bytes[24..40].copy_from_slice(&self.log_id);
        bytes[40..48].copy_from_slice(&self.created_us.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.bytes_before.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.salt().to_le_bytes());
        let crc = crc32fast::hash(&bytes[..60]);
        bytes[60..64].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a header; `None` if it is damaged or not a header.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..SEGMENT_HEADER_LEN)?;
        let whole =
            bytes[0..8] == SEGMENT_MAGIC && crc32fast::hash(&bytes[..60]) == u32_at(bytes, 60);
        whole.then(|| Self {
            format: u16_at(bytes, 8),
            min_reader: u16_at(bytes, 10),
            number: u64_at(bytes, 16),
            log_id: array_at(bytes, 24),
            created_us: u64_at(bytes, 40),
            bytes_before: u64_at(bytes, 48),
        })
    }
}

/// The name of the file that holds the segments from `number` to `number_last` in a generation.
pub fn segment_name(number: u64, number_last: u64, generation: u32) -> String {
    let last = if number_last == number { String::new() } else { format!("-{number_last:016x}") };
    format!("{number:016x}{last}.g{generation:02}.seg")
}

/// The checksum of `parts`, concatenated, continuing from `initial`.
#[inline]
fn crc(initial: u32, parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new_with_initial(initial);
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

/// The initial value of the header checksums of a segment's frames.
pub fn salt(log_id: [u8; 16], number: u64) -> u32 {
    crc(0, &[&log_id, &number.to_le_bytes()])
}

/// The intact header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Length of the payload as stored.
    pub len: usize,
    /// Its kind; the log does not interpret it.
    pub kind: u16,
    /// Version of that kind.
    pub schema: u16,
    /// How the payload is encoded.
    pub codec: u8,
    /// `FLAG_…` bits.
    pub flags: u8,
    /// The id of the record.
    pub id: Id,
    payload_crc: u32,
}

impl FrameHeader {
    /// Decodes a frame's header; `None` if it is damaged, not a header, or belongs to another
    /// segment.
    #[inline]
    pub fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes = bytes.get(..FRAME_HEADER_LEN)?;
        if bytes[0..4] != FRAME_MAGIC {
            return None;
        }
        let whole = crc(salt, &[&bytes[..36]]) == u32_at(bytes, 36);
        let len = u32_at(bytes, 4) as usize;
        (whole && len <= FRAME_PAYLOAD_MAX).then(|| Self {
            len,
            kind: u16_at(bytes, 8),
            schema: u16_at(bytes, 10),
            codec: bytes[12],
            flags: bytes[13],
            id: Id::from_bytes(array_at(bytes, 16)),
            payload_crc: u32_at(bytes, 32),
        })
    }

    /// Whether these are the bytes that were written as the payload.
    #[inline]
    pub fn fits(&self, payload: &[u8]) -> bool {
        payload.len() == self.len && crc32fast::hash(payload) == self.payload_crc
    }

    /// Length of the whole frame.
    #[inline]
    pub fn frame_len(&self) -> usize {
        FRAME_HEADER_LEN + self.len
    }

    /// Whether [`flag`](Self::flags) is set.
    #[inline]
    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// The fields of a frame's header that do not follow from the payload.
#[derive(Debug, Clone, Copy)]
pub struct FrameFields {
    /// The kind of the record.
    pub kind: u16,
    /// Version of that kind.
    pub schema: u16,
    /// How the payload is encoded.
    pub codec: u8,
    /// `FLAG_…` bits.
    pub flags: u8,
    /// The id of the record.
    pub id: Id,
}

impl From<&FrameHeader> for FrameFields {
    fn from(header: &FrameHeader) -> Self {
        let FrameHeader { kind, schema, codec, flags, id, .. } = *header;
        Self { kind, schema, codec, flags, id }
    }
}

/// Adds one frame to `out`. The payload is given in parts, so that it need not be copied together.
pub fn encode_frame(fields: FrameFields, parts: &[&[u8]], salt: u32, out: &mut Vec<u8>) {
    let start = out.len();
    let len: usize = parts.iter().map(|part| part.len()).sum();
    out.reserve(FRAME_HEADER_LEN + len);
    out.extend_from_slice(&FRAME_MAGIC);
    out.extend_from_slice(&(len as u32).to_le_bytes());
    out.extend_from_slice(&fields.kind.to_le_bytes());
    out.extend_from_slice(&fields.schema.to_le_bytes());
    out.extend_from_slice(&[fields.codec, fields.flags, 0, 0]);
    out.extend_from_slice(fields.id.as_bytes());
    out.extend_from_slice(&crc(0, parts).to_le_bytes());
    let header_crc = crc(salt, &[&out[start..start + 36]]);
    out.extend_from_slice(&header_crc.to_le_bytes());
    for part in parts {
        out.extend_from_slice(part);
    }
}

/// The `seq` before the payload of a record that was moved or written again, and the payload.
pub(crate) fn split_seq(payload: &[u8]) -> Option<(Seq, &[u8])> {
    let (seq, rest) = payload.split_first_chunk::<8>()?;
    Some((Seq::from_raw(u64::from_le_bytes(*seq)), rest))
}

/// A payload without the `seq` that was put before it when the record was moved.
pub(crate) fn without_place<'a>(header: &FrameHeader, stored: &'a [u8]) -> &'a [u8] {
    match split_seq(stored) {
        Some((_, rest)) if header.has(FLAG_MOVED) => rest,
        _ => stored,
    }
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[inline]
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the caller checked the length")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG_ID: [u8; 16] = *b"sixteen bytes ok";

    #[test]
    fn a_segment_header_reads_back() {
        let header = SegmentHeader::new(LOG_ID, 7, 1_763_000_000_000_000);
        let bytes = header.encode();
        assert_eq!(SegmentHeader::decode(&bytes), Some(header));
        assert_eq!(u32_at(&bytes, 56), header.salt());
    }

    #[test]
    fn a_frame_of_another_segment_is_rejected() {
        let fields = FrameFields { kind: 2, schema: 1, codec: 1, flags: 0, id: Id::new(5, 6) };
        let mut frame = Vec::new();
        encode_frame(fields, &[b"pay", b"load"], 77, &mut frame);
        let header = FrameHeader::decode(&frame, 77).unwrap();
        assert_eq!((header.len, header.kind, header.id), (7, 2, Id::new(5, 6)));
        assert!(header.fits(b"payload"));
        assert_eq!(FrameHeader::decode(&frame, 78), None);
    }
}
