//! The files of a log and their names.

use crate::{
    Error,
    disk::Disk,
    format::{self, SEGMENT_HEADER_LEN, SegmentHeader, SyncMark},
};
use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The directory of a log.
#[derive(Debug, Clone)]
pub(crate) struct Directory {
    pub(crate) path: PathBuf,
    pub(crate) disk: Arc<dyn Disk>,
}

/// A segment file, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentFile {
    pub(crate) number: u64,
    /// The last segment number whose records are in it; its own, unless merged.
    pub(crate) number_last: u64,
    pub(crate) generation: u32,
    pub(crate) path: PathBuf,
}

impl SegmentFile {
    /// The file of one segment, as written.
    pub(crate) fn written(number: u64, path: PathBuf) -> Self {
        Self { number, number_last: number, generation: 0, path }
    }

    /// Whether this file contains everything in `other`, compacted.
    pub(crate) fn supersedes(&self, other: &Self) -> bool {
        self.generation > other.generation
            && self.number <= other.number
            && other.number_last <= self.number_last
    }

    /// Whether it contains records of segment `number`.
    pub(crate) fn holds(&self, number: u64) -> bool {
        (self.number..=self.number_last).contains(&number)
    }
}

/// Maximum number of listings of a directory that changes meanwhile.
const LIST_MAX: usize = 16;

impl Directory {
    pub(crate) fn new(path: &Path, disk: Arc<dyn Disk>) -> Self {
        Self { path: path.to_path_buf(), disk }
    }

    pub(crate) fn active(&self) -> PathBuf {
        self.path.join("active.log")
    }

    pub(crate) fn log_id(&self) -> PathBuf {
        self.path.join("log.id")
    }

    pub(crate) fn synced(&self) -> PathBuf {
        self.path.join("synced")
    }

    pub(crate) fn suspect(&self) -> PathBuf {
        self.path.join("suspect")
    }

    pub(crate) fn reserve(&self) -> PathBuf {
        self.path.join("reserve")
    }

    pub(crate) fn spill(&self) -> PathBuf {
        self.path.join("spill")
    }

    pub(crate) fn quarantine(&self) -> PathBuf {
        self.path.join("quarantine")
    }

    /// A unique name for a temporary file.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join(format!("{}.tmp", crate::Id::random(self.disk.now_us())))
    }

    /// The lock file of compaction.
    pub(crate) fn compacting(&self) -> PathBuf {
        self.path.join("compact.lock")
    }

    /// A temporary name for a compacted segment.
    pub(crate) fn compacted_temporary(&self) -> PathBuf {
        self.path.join(format!("{}{COMPACTED_TEMPORARY}", crate::Id::random(self.disk.now_us())))
    }

    pub(crate) fn segment(&self, number: u64, generation: u32) -> PathBuf {
        self.merged(number, number, generation)
    }

    pub(crate) fn merged(&self, number: u64, number_last: u64, generation: u32) -> PathBuf {
        self.path.join(format::segment_name(number, number_last, generation))
    }

    /// The segments that are no longer appended to, in order, each in its newest generation.
    ///
    /// A roll that died half-way leaves a segment that is also `active.log`. It is left out: it is
    /// still appended to.
    pub(crate) fn segments(&self) -> Result<Vec<SegmentFile>, Error> {
        let (mut files, _) = present(self.segment_files()?);
        if let Some(last) = files.last() {
            let active = self.disk.inode(&self.active()).ok();
            if active.is_some() && self.disk.inode(&last.path).ok() == active {
                files.pop();
            }
        }
        Ok(files)
    }

    /// Every segment file, including superseded ones.
    ///
    /// Compaction adds the new name before it removes the old one, but a listing during the change
    /// may miss both. What one listing missed existed when it ended, so the next one contains it.
    /// Two equal listings are right.
    pub(crate) fn segment_files(&self) -> Result<Vec<SegmentFile>, Error> {
        let mut files = self.list_segment_files()?;
        for _ in 1..LIST_MAX {
            let again = self.list_segment_files()?;
            if again == files {
                break;
            }
            files = again;
        }
        Ok(files)
    }

    fn list_segment_files(&self) -> Result<Vec<SegmentFile>, Error> {
        let names = match self.disk.list(&self.path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &self.path, error)),
        };
        let mut files: Vec<_> = names.iter().filter_map(|name| self.parse(name)).collect();
        files.sort_by_key(|file| (file.number, file.number_last, file.generation));
        Ok(files)
    }

    fn parse(&self, name: &str) -> Option<SegmentFile> {
        let (numbers, generation) = name.strip_suffix(".seg")?.split_once(".g")?;
        let number = |digits: &str| {
            u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == NUMBER_DIGITS)
        };
        let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
        let (first, last) = (number(first)?, number(last)?);
        (first <= last).then_some(())?;
        Some(SegmentFile {
            number: first,
            number_last: last,
            generation: generation.parse().ok()?,
            path: self.path.join(name),
        })
    }

    /// The identity of this log: from `log.id`, or if that is damaged or missing, from the first
    /// segment with an intact header.
    pub(crate) fn read_log_id(&self) -> Option<[u8; 16]> {
        let from_file = || {
            let mut text = [0; 128];
            let len = self.disk.open_read(&self.log_id()).ok()?.read_at(&mut text, 0).ok()?;
            format::decode_log_id(&text[..len])
        };
        let from_segments = || {
            let segments = self.segments().ok()?;
            let paths = segments.into_iter().map(|file| file.path).chain([self.active()]);
            paths.into_iter().find_map(|path| Some(self.read_header(&path)?.log_id))
        };
        from_file().or_else(from_segments)
    }

    /// The header of a segment file, if it is intact.
    pub(crate) fn read_header(&self, path: &Path) -> Option<SegmentHeader> {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        let len = self.disk.open_read(path).ok()?.read_at(&mut bytes, 0).ok()?;
        SegmentHeader::decode(&bytes[..len])
    }

    /// Reads `synced` or `suspect`.
    pub(crate) fn read_marker(&self, path: &Path) -> Option<SyncMark> {
        let mut bytes = [0; SyncMark::LEN];
        let len = self.disk.open_read(path).ok()?.read_at(&mut bytes, 0).ok()?;
        SyncMark::decode(&bytes[..len])
    }

    /// The number of `active.log` if its own header is damaged.
    pub(crate) fn number_after_last(&self) -> Result<u64, Error> {
        Ok(self.segments()?.last().map_or(1, |file| file.number_last + 1))
    }
}

/// Digits of a segment's number in a file name.
const NUMBER_DIGITS: usize = 16;
/// The suffix of a compacted segment while it is being written.
pub(crate) const COMPACTED_TEMPORARY: &str = ".compact.tmp";

/// Splits the files into those that make up the log, in order, and those that a killed compaction
/// left behind: a file of a later generation contains all of them.
pub(crate) fn present(mut files: Vec<SegmentFile>) -> (Vec<SegmentFile>, Vec<SegmentFile>) {
    files.sort_by_key(|file| std::cmp::Reverse(file.generation));
    let mut kept: BTreeMap<(u64, u64), SegmentFile> = BTreeMap::new();
    let mut superseded = Vec::new();
    for file in files {
        let newer = kept.range(..=(file.number, u64::MAX)).next_back();
        match newer.is_some_and(|(_, newer)| newer.supersedes(&file)) {
            true => superseded.push(file),
            false => _ = kept.insert((file.number, file.number_last), file),
        }
    }
    (kept.into_values().collect(), superseded)
}
