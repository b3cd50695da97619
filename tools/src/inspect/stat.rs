//! `inspect stat`: counts by kind, bytes saved by compression, damaged places.

use super::{FrameOrGap, OpenedLog, Outcome, state_name};
use claude_mem_log::{
    GapReason,
    format::{FLAG_AGAIN, FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameHeader},
};
use serde::Serialize;
use std::{borrow::Cow, collections::BTreeMap, io::Write, path::Path};

/// The totals of a log.
#[derive(Debug, Default, Serialize)]
struct Stat {
    segments: BTreeMap<&'static str, u64>,
    bytes: u64,
    total: Count,
    kinds: BTreeMap<u16, Count>,
    gaps: BTreeMap<&'static str, Gaps>,
    unfinished_bytes: u64,
}

#[derive(Debug, Default, Serialize)]
struct Count {
    records: u64,
    /// Payload bytes before compression.
    payload_bytes: u64,
    /// Payload bytes as stored.
    stored_bytes: u64,
    compressed: u64,
    tombstones: u64,
}

#[derive(Debug, Default, Serialize)]
struct Gaps {
    count: u64,
    bytes: u64,
}

impl Count {
    fn add(&mut self, header: &FrameHeader, payload_len: usize) {
        self.records += 1;
        self.payload_bytes += payload_len as u64;
        self.stored_bytes += header.len as u64;
        self.compressed += u64::from(header.has(FLAG_ZSTD));
        self.tombstones += u64::from(header.has(FLAG_TOMBSTONE));
    }
}

/// Adds up the log in `dir`. Returns whether it is undamaged.
pub(crate) fn stat(dir: &Path, json: bool, out: &mut impl Write) -> Outcome<bool> {
    let inspected = OpenedLog::open(dir)?;
    let mut stat = Stat::default();
    let mut number_next = 1;
    for segment in &inspected.segments {
        for _ in number_next..segment.number {
            stat.add(&FrameOrGap::gap(0..0, GapReason::MissingSegment, None));
        }
        number_next = segment.seal.as_ref().map_or(segment.number, |seal| seal.number_last) + 1;
        *stat.segments.entry(state_name(segment.state)).or_default() += 1;
        stat.bytes += segment.bytes;
        inspected.walk(segment, |_, met| {
            stat.add(&met);
            Ok(())
        })?;
    }
    if json {
        writeln!(out, "{}", serde_json::to_string(&stat)?)?;
    } else {
        stat.print(out)?;
    }
    // A torn record was never acknowledged.
    Ok(stat.gaps.keys().all(|reason| *reason == GapReason::TornWrite.describe()))
}

impl Stat {
    fn add(&mut self, met: &FrameOrGap<'_>) {
        match met {
            FrameOrGap::Record(header, stored) => {
                let len = payload(header, stored).len();
                self.total.add(header, len);
                self.kinds.entry(header.kind).or_default().add(header, len);
            }
            FrameOrGap::Gap { len, reason, .. } => {
                let gaps = self.gaps.entry(reason.describe()).or_default();
                gaps.count += 1;
                gaps.bytes += len;
            }
            FrameOrGap::Unfinished(len) => self.unfinished_bytes += len,
            FrameOrGap::Seal(_) => {}
        }
    }

    fn print(&self, out: &mut impl Write) -> Outcome<()> {
        let states: Vec<_> =
            self.segments.iter().map(|(state, count)| format!("{count} {state}")).collect();
        let ratio = self.bytes as f64 / self.total.payload_bytes.max(1) as f64;
        writeln!(out, "segments: {}", states.join(", "))?;
        writeln!(out, "bytes: {}, {ratio:.3} per byte of payload", self.bytes)?;
        writeln!(
            out,
            "{:>6} {:>9} {:>13} {:>13} {:>11} {:>11}",
            "kind", "records", "payload", "stored", "compressed", "tombstones"
        )?;
        let kinds = self.kinds.iter().map(|(kind, count)| (kind.to_string(), count));
        for (kind, count) in kinds.chain([("all".to_owned(), &self.total)]) {
            let Count { records, payload_bytes, stored_bytes, compressed, tombstones } = count;
            writeln!(
                out,
                "{kind:>6} {records:>9} {payload_bytes:>13} {stored_bytes:>13} {compressed:>11} \
                 {tombstones:>11}"
            )?;
        }
        for (reason, Gaps { count, bytes }) in &self.gaps {
            writeln!(out, "gaps: {count} × {reason}, {bytes} bytes")?;
        }
        if self.gaps.is_empty() {
            writeln!(out, "gaps: none")?;
        }
        if self.unfinished_bytes > 0 {
            writeln!(out, "unfinished: {} bytes at the end", self.unfinished_bytes)?;
        }
        Ok(())
    }
}

/// A decompressed payload; as stored if it cannot be decompressed.
pub(super) fn payload<'a>(header: &FrameHeader, stored: &'a [u8]) -> Cow<'a, [u8]> {
    // Both start with the first position of the record.
    let stored = match header.has(FLAG_MOVED | FLAG_AGAIN) {
        true => stored.get(8..).unwrap_or_default(),
        false => stored,
    };
    match header.has(FLAG_ZSTD).then(|| zstd::decode_all(stored)) {
        Some(Ok(payload)) => Cow::Owned(payload),
        _ => Cow::Borrowed(stored),
    }
}
