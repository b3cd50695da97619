//! A log opened for reading.

use crate::{
    Backwards, Error, Options, Reader, Seq, Tail,
    directory::Directory,
    read::segment::{Segment, SegmentInfo, following, snapshot},
};
use std::path::Path;

/// A log opened for reading.
#[derive(Debug, Clone)]
pub struct Log {
    pub(crate) directory: Directory,
}

impl Log {
    /// Opens the log in `dir`. Reads nothing yet; a missing directory is an empty log.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Ok(Self { directory: Directory::new(dir, options.disk) })
    }

    /// Every record from the first on.
    pub fn read_from_start(&self) -> Reader {
        self.read_from(Seq::START)
    }

    /// Every record from `from` on.
    pub fn read_from(&self, from: Seq) -> Reader {
        Reader::new(self.clone(), from, 0)
    }

    /// Every record whose id has the time `time_us` or later, in the order of the log.
    ///
    /// Segments without such a record are skipped, and within a segment reading starts from its
    /// index. A clock that was set back hides nothing: a segment is skipped by its latest time.
    pub fn read_since(&self, time_us: u64) -> Result<Reader, Error> {
        let mut from = Seq::START;
        for info in self.segments()? {
            let Some(seal) = info.seal else {
                from = Seq::new(info.number, 0);
                break;
            };
            from = Seq::new(info.number_last + 1, 0);
            if seal.time_max_us >= time_us && seal.records > 0 {
                let entry = seal.index.iter().rfind(|entry| entry.time_max_before_us < time_us);
                let is_offset_seq = info.generation == 0;
                let offset = entry.filter(|_| is_offset_seq).map_or(0, |entry| entry.offset);
                from = Seq::new(info.number, offset);
                break;
            }
        }
        Ok(Reader::new(self.clone(), from, time_us).expect_any())
    }

    /// Every record before `before`, or all, in reverse order.
    pub fn read_backwards(&self, before: Option<Seq>) -> Result<Backwards, Error> {
        Backwards::new(self.clone(), before)
    }

    /// Every record from `from` on, including future ones.
    pub fn tail(&self, from: Seq) -> Tail {
        Tail::new(self.read_from(from))
    }

    /// The segments, in order.
    ///
    /// A file is left out once there is one of a later generation with the same records. Compaction
    /// removes such files, so a path may be gone when it is opened; then call this again.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, Error> {
        following(|| self.try_segments())
    }

    fn try_segments(&self) -> Result<Vec<SegmentInfo>, Error> {
        let (files, active) = snapshot(&self.directory)?;
        let mut infos = Vec::new();
        for file in files {
            infos.push(Segment::open(&self.directory, &file)?.info()?);
        }
        if let Some(active) = active {
            infos.push(active.info()?);
        }
        Ok(infos)
    }

    /// The identity of the log; `None` if nothing was ever written.
    pub fn id(&self) -> Option<[u8; 16]> {
        self.directory.read_log_id()
    }

    /// Opens the first segment with records at `number` or later.
    pub(crate) fn open_segment(&self, number: u64) -> Result<Option<Segment>, Error> {
        following(|| self.try_open_segment(number))
    }

    fn try_open_segment(&self, number: u64) -> Result<Option<Segment>, Error> {
        let (files, active) = snapshot(&self.directory)?;
        // A merged segment never includes the active one.
        if active.as_ref().is_some_and(|active| active.number == number) {
            return Ok(active);
        }
        // A merged segment contains records of higher numbers than its own, so the one before may
        // match.
        let before = files.iter().rposition(|file| file.number <= number).unwrap_or(0);
        for file in files.iter().skip(before) {
            let segment = Segment::open(&self.directory, file)?;
            if segment.number_last >= number {
                return Ok(Some(segment));
            }
        }
        Ok(active.filter(|segment| segment.number >= number))
    }
}
