//! Records that were rewritten after a failed sync: whether to skip them.

use crate::{
    Error, Id, Seq,
    directory::Directory,
    format::{FLAG_AGAIN, FrameHeader, split_seq, without_place},
    read::segment::{Segment, following},
    scan::ScanResult,
};
use std::collections::HashSet;

/// Decides whether a rewritten record was already returned.
///
/// If the record is intact at its original position, the copy is skipped, for any direction and
/// start of reading. That needs no state.
#[derive(Debug, Default)]
pub(crate) struct RewrittenRecords {
    segment: Option<Segment>,
    /// All ids of the segment, for when offsets are not reliable: it was compacted, or is damaged,
    /// and a misdirected write may have put the record elsewhere in it.
    ids: Option<HashSet<Id>>,
    /// Records whose original is damaged. If the rewrite itself failed and was repeated, there are
    /// several copies of each.
    given: HashSet<Id>,
}

/// Bounds a reader's memory: beyond this, the list is cleared.
const GIVEN_MAX: usize = 1 << 18;

impl RewrittenRecords {
    /// Whether to skip this rewritten frame.
    pub(crate) fn is_repetition(
        &mut self,
        directory: &Directory,
        header: &FrameHeader,
        stored: &[u8],
    ) -> Result<bool, Error> {
        let Some((origin, _)) = split_seq(without_place(header, stored)) else { return Ok(false) };
        if self.is_at(directory, origin, header.id)? {
            return Ok(true);
        }
        if self.given.len() >= GIVEN_MAX {
            self.given.clear();
        }
        Ok(!self.given.insert(header.id))
    }

    fn is_at(&mut self, directory: &Directory, origin: Seq, id: Id) -> Result<bool, Error> {
        if self.segment.as_ref().is_none_or(|segment| !holds(segment, origin)) {
            self.open(directory, origin)?;
        }
        let Some(segment) = &mut self.segment else { return Ok(false) };
        if segment.is_as_written()
            && let ScanResult::Frame(header) = segment.scan(origin.offset())?
            && header.id == id
        {
            return Ok(true);
        }
        let ids = match &mut self.ids {
            Some(ids) => ids,
            none => none.insert(ids(segment)?),
        };
        Ok(ids.contains(&id))
    }

    fn open(&mut self, directory: &Directory, origin: Seq) -> Result<(), Error> {
        (self.segment, self.ids) = (None, None);
        self.segment = following(|| {
            let files = directory.segments()?;
            let file = files.iter().find(|file| file.holds(origin.segment()));
            file.map(|file| Segment::open(directory, file)).transpose()
        })?;
        Ok(())
    }
}

fn holds(segment: &Segment, origin: Seq) -> bool {
    (segment.number..=segment.number_last).contains(&origin.segment())
}

/// The ids of all original records of a segment.
fn ids(segment: &mut Segment) -> Result<HashSet<Id>, Error> {
    let mut ids = HashSet::new();
    let mut offset = crate::format::SEGMENT_HEADER_LEN as u64;
    loop {
        let found = segment.scan(offset)?;
        let Some(next) = found.end(offset) else { return Ok(ids) };
        if let ScanResult::Frame(header) = found
            && !header.has(FLAG_AGAIN)
        {
            ids.insert(header.id);
        }
        offset = next;
    }
}
