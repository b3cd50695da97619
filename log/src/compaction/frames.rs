//! Copies the frames of a segment according to their fate.

use super::{CompactionPolicy, Damage, Head, Output, Packing, RecordAction, Rewritten};
use crate::{
    Error, Gap, GapReason, Item, Seq,
    format::{
        FLAG_AGAIN, FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameFields, FrameHeader, KIND_RESERVED,
        KIND_SEAL, SEGMENT_HEADER_LEN, split_seq, without_place,
    },
    read::{
        item::{Unpacker, entry, seq_of},
        seen_ids::SeenIds,
        segment::Segment,
    },
    scan::{ScanResult, Source as _},
};
use std::io;
use zstd::zstd_safe::CParameter;

/// The minimum match length of zstd: shorter matches take time and save little.
const MATCH_BYTES_MIN: u32 = 6;

/// Copies frames.
pub(super) struct Frames<'a> {
    judge: &'a mut dyn CompactionPolicy,
    packing: Packing,
    compressor: zstd::bulk::Compressor<'static>,
    /// Whether damage can be copied: frames of another segment have another salt.
    is_alone: bool,
    seen: SeenIds,
    unpacker: Unpacker,
    compressed: Vec<u8>,
    pub(super) rewritten: Rewritten,
}

impl<'a> Frames<'a> {
    pub(super) fn new(
        judge: &'a mut dyn CompactionPolicy,
        packing: Packing,
        is_alone: bool,
    ) -> Result<Self, Error> {
        let compressor = compressor(packing.level).map_err(|source| Error::Io {
            action: "prepare",
            path: "zstd".into(),
            source,
        })?;
        let (seen, unpacker, compressed, rewritten) = Default::default();
        Ok(Self { judge, packing, compressor, is_alone, seen, unpacker, compressed, rewritten })
    }

    /// Copies one segment. Returns false if damage forbids it.
    pub(super) fn copy(
        &mut self,
        source: &mut Segment,
        output: &mut Output<'_>,
    ) -> Result<bool, Error> {
        let mut offset = SEGMENT_HEADER_LEN as u64;
        loop {
            let found = source.scan(offset)?;
            let Some(next) = found.end(offset) else { return Ok(true) };
            match found {
                ScanResult::Frame(header) if header.kind == KIND_SEAL => return Ok(true),
                ScanResult::Frame(header) => self.frame(source, offset, header, output)?,
                ScanResult::Gap { range, reason, header } => {
                    let gap = source.gap(offset, range.end - offset, reason).of_record(header);
                    if !self.gap(source, &gap, header, output)? {
                        return Ok(false);
                    }
                }
                ScanResult::Tail { .. } | ScanResult::End => return Ok(true),
            }
            offset = next;
        }
    }

    fn frame(
        &mut self,
        source: &mut Segment,
        offset: u64,
        header: FrameHeader,
        output: &mut Output<'_>,
    ) -> Result<(), Error> {
        // A record that is in this file twice is copied once.
        if header.kind >= KIND_RESERVED || !self.seen.insert(header.id) {
            return Ok(());
        }
        let seq = seq_of(source, offset, &header)?;
        let FrameHeader { id, kind, .. } = header;
        let head = Head { seq, id, kind, is_tombstone: header.has(FLAG_TOMBSTONE) };
        let fate = match self.judge.concerns(&head) {
            true => self.fate(source, offset, header)?,
            false => RecordAction::Keep,
        };
        let stored = without_place(&header, source.payload(offset, &header)?);
        // The original place of a rewritten record stays before its payload.
        let (origin, content) = match split_seq(stored) {
            Some((_, rest)) if header.has(FLAG_AGAIN) => stored.split_at(stored.len() - rest.len()),
            _ => stored.split_at(0),
        };
        let flags = header.flags & (FLAG_AGAIN | FLAG_TOMBSTONE);
        let mut fields: FrameFields = (&header).into();
        let (content, flags, is_packed) = match &fate {
            RecordAction::Keep => (content, flags, header.has(FLAG_ZSTD)),
            RecordAction::Replace { schema, codec, payload } => {
                self.rewritten.replaced += 1;
                (fields.schema, fields.codec) = (*schema, *codec);
                (payload.as_slice(), flags, false)
            }
            RecordAction::Erase(left) => {
                self.rewritten.erased += 1;
                (left.as_slice(), flags | FLAG_TOMBSTONE, false)
            }
        };
        let is_packed_now = self.pack(content, is_packed);
        let (content, flags) = match is_packed_now {
            true => (self.compressed.as_slice(), flags | FLAG_ZSTD),
            false if is_packed => (content, flags | FLAG_ZSTD),
            false => (content, flags),
        };
        put(output, FrameFields { flags, ..fields }, seq, [origin, content])
    }

    fn fate(
        &mut self,
        source: &mut Segment,
        offset: u64,
        header: FrameHeader,
    ) -> Result<RecordAction, Error> {
        Ok(match entry(source, offset, header, &mut self.unpacker)? {
            Item::Record(entry) => self.judge.judge(&entry),
            // The record is intact, but cannot be decompressed. It stays unchanged, unless it is
            // dropped.
            Item::Gap(gap) => match self.judge.damage(&gap) {
                Damage::Drop => RecordAction::Erase(Vec::new()),
                Damage::Keep | Damage::Refuse => RecordAction::Keep,
            },
        })
    }

    /// Compresses a payload. Returns whether that is worth it.
    fn pack(&mut self, content: &[u8], is_packed: bool) -> bool {
        let raw = match is_packed {
            true if !self.packing.is_anew => return false,
            true => match self.unpacker.unpack(content) {
                Ok(raw) => raw,
                Err(_) => return false,
            },
            false => content,
        };
        if raw.len() < self.packing.bytes_min {
            return false;
        }
        self.compressed.clear();
        self.compressed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
        let is_done = self.compressor.compress_to_buffer(raw, &mut self.compressed).is_ok();
        is_done && self.compressed.len() <= content.len() - content.len() / 8
    }

    /// Handles damage. Returns whether the segment may be compacted.
    fn gap(
        &mut self,
        source: &mut Segment,
        gap: &Gap,
        header: Option<FrameHeader>,
        output: &mut Output<'_>,
    ) -> Result<bool, Error> {
        let damage = match gap.reason {
            // It was never acknowledged.
            GapReason::TornWrite => {
                self.rewritten.dropped_bytes += gap.len;
                return Ok(true);
            }
            _ => self.judge.damage(gap),
        };
        match damage {
            Damage::Keep if self.is_alone => {
                let len = gap.len as usize;
                let window = source
                    .bytes
                    .window(gap.offset, len)
                    .map_err(|error| Error::io("read", &source.path, error))?;
                output.put_damage(&window[..window.len().min(len)], gap.reason)?;
            }
            Damage::Keep | Damage::Refuse => return Ok(false),
            Damage::Drop => {
                self.rewritten.dropped_bytes += gap.len;
                // A tombstone shows that the record existed, unless it was read elsewhere.
                if let Some(header) = header.filter(|header| header.kind < KIND_RESERVED)
                    && self.seen.insert(header.id)
                {
                    self.rewritten.erased += 1;
                    let fields = FrameFields { flags: FLAG_TOMBSTONE, ..(&header).into() };
                    let seq = Seq::new(source.number, gap.offset);
                    put(output, fields, seq, [&[], &[]])?;
                }
            }
        }
        Ok(true)
    }
}

fn compressor(level: i32) -> io::Result<zstd::bulk::Compressor<'static>> {
    let mut compressor = zstd::bulk::Compressor::new(level)?;
    compressor.set_parameter(CParameter::MinMatch(MATCH_BYTES_MIN))?;
    Ok(compressor)
}

/// Writes a record, with its original place before the payload if it has moved.
fn put(
    output: &mut Output<'_>,
    fields: FrameFields,
    seq: Seq,
    [origin, content]: [&[u8]; 2],
) -> Result<(), Error> {
    if seq == output.here() {
        return output.put_record(fields, &[origin, content]);
    }
    let place = seq.raw().to_le_bytes();
    let fields = FrameFields { flags: fields.flags | FLAG_MOVED, ..fields };
    output.put_record(fields, &[&place, origin, content])
}
