//! Reading the log from its end.

use crate::{
    Error, GapReason, Item, Log, Seq,
    format::{FrameHeader, KIND_SEAL, SEGMENT_HEADER_LEN},
    reader::entry,
    recovery::Found,
    segment::Segment,
};

/// Reads backwards, a block of the index at a time.
///
/// Frames have no pointer to the one before, so a block is scanned forwards and then given in reverse.
/// The end is where the log ended when this was made.
#[derive(Debug)]
pub struct Backwards {
    log: Log,
    segment: Option<Segment>,
    /// Where blocks of the current segment begin, those not yet given.
    blocks: Vec<u64>,
    /// Frames and damage of the current block, those not yet given.
    found: Vec<(u64, Found)>,
    /// Segments below this number are left, and in it, frames below this offset.
    before: Seq,
    decompressed: Vec<u8>,
}

impl Backwards {
    pub(crate) fn new(log: Log, before: Option<Seq>) -> Result<Self, Error> {
        let before = match before {
            Some(before) => before,
            None => {
                log.segments()?.last().map_or(Seq::START, |last| Seq::new(last.number, last.bytes))
            }
        };
        Ok(Self {
            log,
            segment: None,
            blocks: Vec::new(),
            found: Vec::new(),
            before,
            decompressed: Vec::new(),
        })
    }

    /// The record or gap before the last one given; `None` at the beginning of the log.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let Some((offset, found)) = self.step()? else { return Ok(None) };
        let segment = self.segment.as_mut().expect("something was just found in it");
        let (len, reason, header) = match found {
            Found::Frame(header) => {
                return entry(segment, offset, header, &mut self.decompressed).map(Some);
            }
            Found::Gap { range, reason, header } => (range.end - offset, reason, header),
            Found::Tail { len, header } => (len, GapReason::DamagedTail, header),
            Found::End => unreachable!("ends are not collected"),
        };
        let mut gap = segment.gap(offset, len, reason);
        gap.id = header.map(|header: FrameHeader| header.id);
        gap.kind = header.map(|header| header.kind);
        Ok(Some(Item::Gap(gap)))
    }

    fn step(&mut self) -> Result<Option<(u64, Found)>, Error> {
        loop {
            if let Some(found) = self.found.pop() {
                return Ok(Some(found));
            }
            if let Some(start) = self.blocks.pop() {
                self.collect(start)?;
            } else if !self.open_previous()? {
                return Ok(None);
            }
        }
    }

    /// Opens the segment that ends before `before`.
    fn open_previous(&mut self) -> Result<bool, Error> {
        if let Some(segment) = self.segment.take() {
            self.before = Seq::new(segment.number, 0);
        }
        let wanted = |number: u64| Seq::new(number, SEGMENT_HEADER_LEN as u64) < self.before;
        let files = self.log.directory.segments()?;
        let active =
            Segment::open_active(&self.log.directory)?.filter(|active| wanted(active.number));
        let segment = match active {
            Some(active) => active,
            None => match files.iter().rev().find(|file| wanted(file.number)) {
                Some(file) => Segment::open(&self.log.directory, file)?,
                None => return Ok(false),
            },
        };
        self.blocks = match &segment.seal {
            Some(seal) => seal.index.iter().map(|entry| entry.offset).collect(),
            None => Vec::new(),
        };
        if self.blocks.is_empty() {
            self.blocks.push(SEGMENT_HEADER_LEN as u64);
        }
        self.before = match segment.number == self.before.segment() {
            true => self.before,
            false => Seq::new(segment.number, segment.len()?),
        };
        self.segment = Some(segment);
        Ok(true)
    }

    fn collect(&mut self, start: u64) -> Result<(), Error> {
        let segment = self.segment.as_mut().expect("blocks belong to an open segment");
        let mut offset = start;
        while offset < self.before.offset() {
            let found = segment.scan(offset)?;
            let next = match &found {
                Found::Frame(header) => offset + header.frame_len() as u64,
                Found::Gap { range, .. } => range.end,
                // An append may be under way there.
                Found::Tail { .. } if segment.is_active => break,
                Found::Tail { len, .. } => offset + len,
                Found::End => break,
            };
            if !matches!(&found, Found::Frame(header) if header.kind == KIND_SEAL) {
                self.found.push((offset, found));
            }
            offset = next;
        }
        self.before = self.before.min(Seq::new(segment.number, start));
        Ok(())
    }
}
