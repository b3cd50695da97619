//! Reading forwards, and onwards as the log grows.

use crate::{
    Error, Gap, GapReason, Item, Log, Seq,
    format::{FLAG_AGAIN, FrameHeader, KIND_RESERVED, SEGMENT_HEADER_LEN},
    read::{
        item::{Unpacker, entry, seq_of},
        rewritten::RewrittenRecords,
        seen_ids::SeenIds,
        segment::Segment,
    },
    scan::ScanResult,
};
use std::io;

/// Reads forwards. At the end [`next`](Self::next) returns `None`, and continues when called again
/// after the log has grown.
///
/// Memory use is bounded: 256 KB of one segment, and the ids seen in it.
#[derive(Debug)]
pub struct Reader {
    log: Log,
    segment: Option<Segment>,
    offset: u64,
    from: Seq,
    /// The position after the last record read from a compacted segment, where offsets are not
    /// positions.
    passed: Seq,
    since_us: u64,
    number_expected: Option<u64>,
    /// The previous segment and its length, to compare with the header of the next one.
    left: Option<(u64, u64)>,
    /// Whether the end of the current segment was compared with the `synced` marker.
    is_end_checked: bool,
    /// Damage found when a segment was opened, to be returned; in reverse order.
    pending: Vec<Gap>,
    seen: SeenIds,
    originals: RewrittenRecords,
    unpacker: Unpacker,
}

enum Step {
    Frame(u64, FrameHeader),
    Gap(Gap),
}

impl Reader {
    pub(crate) fn new(log: Log, from: Seq, since_us: u64) -> Self {
        Self {
            log,
            segment: None,
            offset: 0,
            from,
            passed: Seq::START,
            since_us,
            number_expected: Some(from.segment().max(1)),
            left: None,
            is_end_checked: false,
            pending: Vec::new(),
            seen: SeenIds::default(),
            originals: RewrittenRecords::default(),
            unpacker: Unpacker::default(),
        }
    }

    /// Everything before the start was skipped on purpose, including missing segments.
    pub(crate) fn expect_any(mut self) -> Self {
        self.number_expected = None;
        self
    }

    /// The next record or gap; `None` at the current end.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let (offset, header) = match self.step()? {
            None => return Ok(None),
            Some(Step::Gap(gap)) => return Ok(Some(Item::Gap(gap))),
            Some(Step::Frame(offset, header)) => (offset, header),
        };
        let segment = self.segment.as_mut().expect("a frame was just found in it");
        entry(segment, offset, header, &mut self.unpacker).map(Some)
    }

    /// Where reading continues. A reader opened [there](Log::read_from) neither misses nor repeats
    /// a record.
    pub fn position(&self) -> Seq {
        match &self.segment {
            Some(segment) if segment.is_as_written() => {
                Seq::new(segment.number, self.offset).max(self.from)
            }
            Some(_) => self.passed.max(self.from),
            None => self.from,
        }
    }

    /// Continues with the record at `to`, or the first one after it. Within the current segment no
    /// file is opened.
    pub fn seek(&mut self, to: Seq) -> Result<(), Error> {
        (self.from, self.passed, self.since_us) = (to, Seq::START, 0);
        (self.number_expected, self.left) = (Some(to.segment().max(1)), None);
        self.pending.clear();
        self.seen.clear();
        let holds = |open: &Segment| (open.number..=open.number_last).contains(&to.segment());
        if let Some(mut segment) = self.segment.take().filter(holds) {
            self.begin_in(&mut segment)?;
            self.segment = Some(segment);
        }
        Ok(())
    }

    fn step(&mut self) -> Result<Option<Step>, Error> {
        loop {
            if let Some(gap) = self.pending.pop() {
                return Ok(Some(Step::Gap(gap)));
            }
            if self.segment.is_none() {
                if !self.open_next()? && !self.is_synced_segment_missing() {
                    return Ok(None);
                }
                continue;
            }
            let segment = self.segment.as_mut().expect("opened above");
            let offset = self.offset;
            match segment.scan(offset)? {
                ScanResult::Frame(header) => {
                    let is_wanted = self.is_wanted(offset, &header)?;
                    self.offset += header.frame_len() as u64;
                    if is_wanted {
                        return Ok(Some(Step::Frame(offset, header)));
                    }
                }
                ScanResult::Gap { range, reason, header } => {
                    self.offset = range.end;
                    let gap = segment.gap(offset, range.end - offset, reason).of_record(header);
                    let is_behind = Seq::new(segment.number, range.end) > self.from;
                    if is_behind || !segment.is_as_written() {
                        return Ok(Some(Step::Gap(gap)));
                    }
                }
                ScanResult::End | ScanResult::Tail { .. } if segment.is_active => {
                    if self.is_end_of_log()? {
                        return Ok(None);
                    }
                }
                ScanResult::End | ScanResult::Tail { .. } => self.leave_segment(),
            }
        }
    }

    /// Called at the end of a segment that was active when it was opened. If it was rolled
    /// meanwhile, the end may be outdated and must be read again.
    fn is_end_of_log(&mut self) -> Result<bool, Error> {
        let segment = self.segment.as_mut().expect("its end was just found");
        let directory = &self.log.directory;
        let path = directory.active();
        let own = segment.file.inode().map_err(|error| Error::io("stat", &segment.path, error))?;
        match directory.disk.inode(&path) {
            Ok(active) if active == own => {}
            Ok(_) => segment.is_active = false,
            Err(error) if error.kind() == io::ErrorKind::NotFound => segment.is_active = false,
            Err(error) => return Err(Error::io("stat", &path, error)),
        }
        if segment.is_active && !self.is_end_checked {
            self.is_end_checked = true;
            let synced = directory.read_marker(&directory.synced());
            self.pending.extend(segment.lost_end(synced, self.offset)?);
        }
        Ok(segment.is_active && self.pending.is_empty())
    }

    fn leave_segment(&mut self) {
        let segment = self.segment.take().expect("only left while open");
        let next = segment.number_last + 1;
        self.left = segment.is_as_written().then_some((segment.number, self.offset));
        self.number_expected = Some(next);
        self.from = self.from.max(Seq::new(next, 0));
        self.seen.clear();
    }

    fn open_next(&mut self) -> Result<bool, Error> {
        let Some(mut segment) = self.log.open_segment(self.from.segment().max(1))? else {
            return Ok(false);
        };
        self.is_end_checked = false;
        self.begin_in(&mut segment)?;
        if self.offset == SEGMENT_HEADER_LEN as u64 {
            self.pending.extend(segment.header_gap());
        }
        if let Some((number, len)) = self.left.take()
            && let Some(header) = segment.header
            && segment.number == number + 1
            && header.bytes_before > len
        {
            let cut = segment.gap(len, header.bytes_before - len, GapReason::Truncated);
            self.pending.push(Gap { segment: number, ..cut });
        }
        if let Some(expected) = self.number_expected.take()
            && segment.number > expected
        {
            self.pending.push(Gap::missing(expected));
        }
        self.segment = Some(segment);
        Ok(true)
    }

    /// Called if there is no next segment. If the marker shows that one was synced, it is missing.
    /// This is reported once.
    fn is_synced_segment_missing(&mut self) -> bool {
        let directory = &self.log.directory;
        let Some(expected) = self.number_expected else { return false };
        let synced = directory.read_marker(&directory.synced());
        let is_missing = synced.is_some_and(|synced| synced.segment >= expected);
        if is_missing {
            self.number_expected = None;
            self.pending.push(Gap::missing(expected));
        }
        is_missing
    }

    /// Finds the first frame to read in a segment.
    fn begin_in(&mut self, segment: &mut Segment) -> Result<(), Error> {
        self.offset = SEGMENT_HEADER_LEN as u64;
        if segment.number == self.from.segment() && segment.is_as_written() {
            self.go_to(segment)?;
        } else if segment.number <= self.from.segment() {
            self.offset = near(segment, self.from)?;
        }
        Ok(())
    }

    /// Continues at the requested offset if a frame begins there; otherwise searches from the start
    /// of the segment.
    fn go_to(&mut self, segment: &mut Segment) -> Result<(), Error> {
        let (wanted, len) = (self.from.offset(), segment.len()?);
        if wanted > len.max(self.offset) {
            // Records that were read before are gone. New records will be appended before the
            // requested offset.
            self.pending.push(segment.gap(len, wanted - len, GapReason::Truncated));
            self.from = Seq::new(segment.number, len);
            self.offset = self.offset.max(len);
        } else if wanted > self.offset
            && matches!(segment.scan(wanted)?, ScanResult::Frame(_) | ScanResult::End)
        {
            self.offset = wanted;
        }
        Ok(())
    }

    fn is_wanted(&mut self, offset: u64, header: &FrameHeader) -> Result<bool, Error> {
        if header.kind >= KIND_RESERVED || !self.seen.insert(header.id) {
            return Ok(false);
        }
        let segment = self.segment.as_mut().expect("the frame is in it");
        if !segment.is_as_written() {
            let seq = seq_of(segment, offset, header)?;
            self.passed = seq.next();
            if seq < self.from {
                return Ok(false);
            }
        } else if segment.number == self.from.segment()
            && seq_of(segment, offset, header)? < self.from
        {
            return Ok(false);
        }
        if self.since_us > 0 && header.id.time_us() < self.since_us {
            return Ok(false);
        }
        if !header.has(FLAG_AGAIN) {
            return Ok(true);
        }
        let stored = segment.payload(offset, header)?;
        Ok(!self.originals.is_repetition(&self.log.directory, header, stored)?)
    }
}

/// The offset at which to start in a compacted segment to find every record from `from` on: the
/// last indexed frame before it.
fn near(segment: &mut Segment, from: Seq) -> Result<u64, Error> {
    let index = segment.seal.as_ref().map(|seal| seal.index.clone()).unwrap_or_default();
    let mut start = SEGMENT_HEADER_LEN as u64;
    let (mut low, mut high) = (0, index.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        let offset = index[middle].offset;
        // Damage or an internal frame: start from the beginning.
        let ScanResult::Frame(header) = segment.scan(offset)? else {
            return Ok(SEGMENT_HEADER_LEN as u64);
        };
        if header.kind < KIND_RESERVED && seq_of(segment, offset, &header)? <= from {
            (start, low) = (offset, middle + 1);
        } else {
            high = middle;
        }
    }
    Ok(start)
}
