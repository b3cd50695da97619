//! Inspection of a log, frame by frame, as stored on the disk.

mod dump;
mod list;
mod stat;

pub(crate) use dump::dump;
pub(crate) use list::list;
pub(crate) use stat::stat;

use claude_mem_log::{
    GapReason, Log, Options, SegmentInfo, SegmentState,
    format::{self, FrameHeader, KIND_SEAL, SEGMENT_HEADER_LEN, SegmentHeader},
    recovery::{ScanResult, scan},
};
use std::{error::Error, fs, ops::Range, path::Path};

pub(crate) type Outcome<T> = Result<T, Box<dyn Error>>;

/// An opened log.
struct OpenedLog {
    log_id: [u8; 16],
    segments: Vec<SegmentInfo>,
}

impl OpenedLog {
    fn open(dir: &Path) -> Outcome<Self> {
        let log = Log::open(dir, Options::default())?;
        let segments = log.segments()?;
        if segments.is_empty() {
            return Err(format!("there is no log in {}", dir.display()).into());
        }
        Ok(Self { log_id: log.id().unwrap_or_default(), segments })
    }

    /// Reads a segment to its end and passes on everything in it.
    fn walk(
        &self,
        segment: &SegmentInfo,
        mut show: impl FnMut(u64, FrameOrGap<'_>) -> Outcome<()>,
    ) -> Outcome<()> {
        let bytes = fs::read(&segment.path)?;
        let header = SegmentHeader::decode(&bytes);
        let salt = header
            .map_or_else(|| format::salt(self.log_id, segment.number), |header| header.salt());
        if header.is_none() {
            show(0, FrameOrGap::gap(0..SEGMENT_HEADER_LEN as u64, GapReason::DamagedHeader, None))?;
        }
        let mut offset = SEGMENT_HEADER_LEN as u64;
        loop {
            let mut found = scan(&mut bytes.as_slice(), offset, salt)?;
            if segment.state != SegmentState::Active {
                found = found.when_closed(offset);
            }
            let start = offset;
            let met = match found {
                ScanResult::End => return Ok(()),
                ScanResult::Frame(header) => {
                    offset += header.frame_len() as u64;
                    let stored = &bytes[offset as usize - header.len..offset as usize];
                    match header.kind {
                        KIND_SEAL => FrameOrGap::Seal(header),
                        _ => FrameOrGap::Record(header, stored),
                    }
                }
                ScanResult::Gap { range, reason, header } => {
                    offset = range.end;
                    FrameOrGap::gap(range, reason, header)
                }
                ScanResult::Tail { len, .. } => {
                    offset += len;
                    FrameOrGap::Unfinished(len)
                }
            };
            show(start, met)?;
        }
    }
}

/// The content at an offset of a segment.
#[derive(Clone, Copy)]
enum FrameOrGap<'a> {
    /// A record, and its payload as stored.
    Record(FrameHeader, &'a [u8]),
    Seal(FrameHeader),
    Gap {
        len: u64,
        reason: GapReason,
        header: Option<FrameHeader>,
    },
    /// The end of the active segment: an append may be in progress.
    Unfinished(u64),
}

impl FrameOrGap<'_> {
    fn gap(range: Range<u64>, reason: GapReason, header: Option<FrameHeader>) -> Self {
        Self::Gap { len: range.end - range.start, reason, header }
    }
}

fn state_name(state: SegmentState) -> &'static str {
    match state {
        SegmentState::Active => "active",
        SegmentState::Rolled => "rolled",
        SegmentState::Sealed => "sealed",
    }
}

/// The time of an id, formatted.
fn show_time(time_us: u64) -> String {
    jiff::Timestamp::from_microsecond(time_us as i64)
        .map_or_else(|_| format!("{time_us} µs"), |time| time.to_string())
}
