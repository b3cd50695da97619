//! What a reader returns: records and gaps.

use crate::{
    Error, GapReason, Id, Seq,
    format::{
        FLAG_AGAIN, FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameHeader, PAYLOAD_BYTES_MAX,
        split_seq,
    },
    read::segment::Segment,
};
use std::{fmt, io};

/// A record or a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record, whole.
    Record(Entry<'a>),
    /// Bytes that are not a record. Reading continues after them.
    Gap(Gap),
}

/// A record, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its place.
    pub seq: Seq,
    /// Its id.
    pub id: Id,
    /// Its kind; the log does not interpret it.
    pub kind: u16,
    /// Version of that kind.
    pub schema: u16,
    /// How the payload is encoded.
    pub codec: u8,
    /// Whether the payload was erased.
    pub is_tombstone: bool,
    /// The payload.
    pub payload: &'a [u8],
}

/// Bytes of a segment that are not a record, or a missing segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Number of the segment.
    pub segment: u64,
    /// Its offset.
    pub offset: u64,
    /// Its length; 0 if unknown.
    pub len: u64,
    /// The reason.
    pub reason: GapReason,
    /// The id of the damaged record, if it is readable.
    pub id: Option<Id>,
    /// Its kind.
    pub kind: Option<u16>,
}

impl Gap {
    /// Segment `segment`, and maybe later ones, are missing.
    pub(crate) fn missing(segment: u64) -> Self {
        let reason = GapReason::MissingSegment;
        Self { segment, offset: 0, len: 0, reason, id: None, kind: None }
    }

    pub(crate) fn of_record(self, header: Option<FrameHeader>) -> Self {
        Self { id: header.map(|header| header.id), kind: header.map(|header| header.kind), ..self }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, offset, len, .. } = self;
        write!(out, "{} in segment {segment:016x} at byte {offset}", self.reason.describe())?;
        if *len > 0 {
            write!(out, ", {len} bytes")?;
        }
        match (self.id, self.kind) {
            (Some(id), Some(kind)) => write!(out, " (record {id}, kind {kind})"),
            _ => Ok(()),
        }
    }
}

/// The original place of a record.
pub(crate) fn seq_of(
    segment: &mut Segment,
    offset: u64,
    header: &FrameHeader,
) -> Result<Seq, Error> {
    let here = Seq::new(segment.number, offset);
    if !header.has(FLAG_MOVED) {
        return Ok(here);
    }
    Ok(split_seq(segment.payload(offset, header)?).map_or(here, |(seq, _)| seq))
}

/// Turns a frame into a record with its original place and payload.
#[inline]
pub(crate) fn entry<'a>(
    segment: &'a mut Segment,
    offset: u64,
    header: FrameHeader,
    unpacker: &'a mut Unpacker,
) -> Result<Item<'a>, Error> {
    let here = Seq::new(segment.number, offset);
    let gap = segment
        .gap(offset, header.frame_len() as u64, GapReason::Undecodable)
        .of_record(Some(header));
    let stored = segment.payload(offset, &header)?;
    let (seq, stored) = match split_seq(stored) {
        Some((seq, rest)) if header.has(FLAG_MOVED) => (seq, rest),
        _ => (here, stored),
    };
    let stored = match split_seq(stored) {
        Some((_, rest)) if header.has(FLAG_AGAIN) => rest,
        _ => stored,
    };
    let payload = if header.has(FLAG_ZSTD) {
        match unpacker.unpack(stored) {
            Ok(payload) => payload,
            Err(_) => return Ok(Item::Gap(gap)),
        }
    } else {
        stored
    };
    let FrameHeader { id, kind, schema, codec, .. } = header;
    let is_tombstone = header.has(FLAG_TOMBSTONE);
    Ok(Item::Record(Entry { seq, id, kind, schema, codec, is_tombstone, payload }))
}

/// Decompresses payloads. The zstd context is larger than most of them, so it is reused.
#[derive(Default)]
pub(crate) struct Unpacker {
    bytes: Vec<u8>,
    decompressor: Option<zstd::bulk::Decompressor<'static>>,
}

impl Unpacker {
    pub(crate) fn unpack(&mut self, stored: &[u8]) -> io::Result<&[u8]> {
        let decompressor = match &mut self.decompressor {
            Some(decompressor) => decompressor,
            none => none.insert(zstd::bulk::Decompressor::new()?),
        };
        let len = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten().unwrap_or(0);
        self.bytes.clear();
        // The stated length is only trusted up to the maximum of a record.
        self.bytes.reserve((len as usize).min(PAYLOAD_BYTES_MAX));
        decompressor.decompress_to_buffer(stored, &mut self.bytes)?;
        Ok(&self.bytes)
    }
}

impl fmt::Debug for Unpacker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Unpacker").field("bytes", &self.bytes.len()).finish_non_exhaustive()
    }
}
