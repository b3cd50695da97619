//! Reads the log backwards.

use crate::{
    Error, Gap, Item, Log, Seq,
    format::{FLAG_AGAIN, FrameHeader, KIND_RESERVED, SEGMENT_HEADER_LEN},
    read::{
        item::{Unpacker, entry, seq_of},
        rewritten::RewrittenRecords,
        seen_ids::SeenIds,
        segment::{Segment, following, snapshot},
    },
    scan::ScanResult,
};

/// Reads backwards, a block of the index at a time.
///
/// Frames have no pointer to the previous one, so a block is scanned forwards and returned in
/// reverse. Records appended later are not included.
#[derive(Debug)]
pub struct Backwards {
    log: Log,
    segment: Option<Segment>,
    /// Offsets of the remaining blocks of the current segment.
    blocks: Vec<u64>,
    /// Remaining frames and damage of the current block.
    found: Vec<(u64, ScanResult)>,
    /// Damage of whole segments, to be returned; in reverse order.
    pending: Vec<Gap>,
    /// Records before this position are not read yet.
    before: Seq,
    /// The same in the current segment: records before this offset are not read yet.
    end: u64,
    seen: SeenIds,
    originals: RewrittenRecords,
    unpacker: Unpacker,
}

/// Blocks of a segment that has no index.
const BLOCK_BYTES: u64 = 64 << 10;

impl Backwards {
    pub(crate) fn new(log: Log, before: Option<Seq>) -> Result<Self, Error> {
        let before = match before {
            Some(before) => before,
            None => log.segments()?.last().map_or(Seq::START, |last| match last.generation {
                0 => Seq::new(last.number, last.bytes),
                _ => Seq::new(last.number_last + 1, 0),
            }),
        };
        Ok(Self {
            log,
            segment: None,
            blocks: Vec::new(),
            found: Vec::new(),
            pending: Vec::new(),
            before,
            end: 0,
            seen: SeenIds::default(),
            originals: RewrittenRecords::default(),
            unpacker: Unpacker::default(),
        })
    }

    /// The previous record or gap; `None` at the beginning of the log.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        match self.step()? {
            None => Ok(None),
            Some(Step::Gap(gap)) => Ok(Some(Item::Gap(gap))),
            Some(Step::Frame(offset, header)) => {
                let segment = self.segment.as_mut().expect("the frame was just found in it");
                entry(segment, offset, header, &mut self.unpacker).map(Some)
            }
        }
    }

    fn step(&mut self) -> Result<Option<Step>, Error> {
        loop {
            if let Some((offset, found)) = self.found.pop() {
                if let Some(step) = self.wanted(offset, found)? {
                    return Ok(Some(step));
                }
            } else if let Some(start) = self.blocks.pop() {
                self.collect(start)?;
            } else if let Some(gap) = self.pending.pop() {
                return Ok(Some(Step::Gap(gap)));
            } else if !self.open_previous()? {
                return Ok(None);
            }
        }
    }

    fn wanted(&mut self, offset: u64, found: ScanResult) -> Result<Option<Step>, Error> {
        let segment = self.segment.as_mut().expect("something was just found in it");
        let header = match found {
            ScanResult::Frame(header) => header,
            ScanResult::Gap { range, reason, header } => {
                let gap = segment.gap(offset, range.end - offset, reason).of_record(header);
                return Ok(Some(Step::Gap(gap)));
            }
            ScanResult::Tail { .. } | ScanResult::End => return Ok(None),
        };
        if header.kind >= KIND_RESERVED {
            return Ok(None);
        }
        if !segment.is_as_written() && seq_of(segment, offset, &header)? >= self.before {
            return Ok(None);
        }
        if !self.seen.insert(header.id) {
            return Ok(None);
        }
        if header.has(FLAG_AGAIN) {
            let stored = segment.payload(offset, &header)?;
            if self.originals.is_repetition(&self.log.directory, &header, stored)? {
                return Ok(None);
            }
        }
        Ok(Some(Step::Frame(offset, header)))
    }

    /// Opens the segment that ends before `before`.
    fn open_previous(&mut self) -> Result<bool, Error> {
        let left = self.segment.take().map(|segment| segment.number);
        if let Some(number) = left {
            self.before = Seq::new(number, 0);
        }
        let Some(segment) = self.find_previous()? else {
            let first_missing = left.filter(|number| *number > 1).map(|_| 1);
            self.before = Seq::START;
            self.pending.extend(first_missing.map(Gap::missing));
            return Ok(!self.pending.is_empty());
        };
        if left.is_some_and(|left| segment.number_last + 1 < left) {
            self.pending.push(Gap::missing(segment.number_last + 1));
        }
        // In a compacted segment, the offset of a place is only known from its frames.
        self.end = match segment.number == self.before.segment() && segment.is_as_written() {
            true => self.before.offset(),
            false => segment.len()?,
        };
        self.seen.clear();
        self.open(segment)?;
        Ok(true)
    }

    fn find_previous(&self) -> Result<Option<Segment>, Error> {
        following(|| self.try_find_previous())
    }

    fn try_find_previous(&self) -> Result<Option<Segment>, Error> {
        let wanted = |number: u64| Seq::new(number, SEGMENT_HEADER_LEN as u64) < self.before;
        let (files, active) = snapshot(&self.log.directory)?;
        if let Some(active) = active.filter(|active| wanted(active.number)) {
            return Ok(Some(active));
        }
        let file = files.iter().rfind(|file| wanted(file.number));
        file.map(|file| Segment::open(&self.log.directory, file)).transpose()
    }

    fn open(&mut self, mut segment: Segment) -> Result<(), Error> {
        self.blocks = match &segment.seal {
            Some(seal) => seal.index.iter().map(|entry| entry.offset).collect(),
            None => blocks(&mut segment, self.end)?,
        };
        // Damage at the start lies before the first indexed frame.
        if self.blocks.first() != Some(&(SEGMENT_HEADER_LEN as u64)) {
            self.blocks.insert(0, SEGMENT_HEADER_LEN as u64);
        }
        self.segment = Some(segment);
        Ok(())
    }

    fn collect(&mut self, start: u64) -> Result<(), Error> {
        let segment = self.segment.as_mut().expect("blocks belong to an open segment");
        let mut offset = start;
        while offset < self.end {
            let found = segment.scan(offset)?;
            // At the end of the active segment, an append may be in progress.
            let Some(next) = found.end(offset) else { break };
            self.found.push((offset, found));
            offset = next;
        }
        self.end = self.end.min(start);
        if self.blocks.is_empty() {
            self.pending.extend(segment.header_gap());
        }
        Ok(())
    }
}

enum Step {
    Frame(u64, FrameHeader),
    Gap(Gap),
}

/// Where to start blocks in a segment without an index, to bound memory.
fn blocks(segment: &mut Segment, end: u64) -> Result<Vec<u64>, Error> {
    let mut blocks = Vec::new();
    let mut offset = SEGMENT_HEADER_LEN as u64;
    while offset < end {
        if blocks.last().is_none_or(|last| offset >= last + BLOCK_BYTES) {
            blocks.push(offset);
        }
        let Some(next) = segment.scan(offset)?.end(offset) else { break };
        offset = next;
    }
    Ok(blocks)
}
