//! Which files a log consists of, and what they are called.

use crate::{
    Error,
    disk::Disk,
    format::{self, SEGMENT_HEADER_LEN, SegmentHeader},
};
use std::{
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
    pub(crate) generation: u32,
    pub(crate) path: PathBuf,
}

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

    /// A name that nobody else uses, for something being made.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.path.join(format!("{}.tmp", crate::Id::random(self.disk.now_us())))
    }

    pub(crate) fn segment(&self, number: u64, generation: u32) -> PathBuf {
        self.path.join(format!("{number:016x}.g{generation:02}.seg"))
    }

    /// The segments no longer appended to, in order, each in its newest generation only.
    ///
    /// A roller that died half-way leaves a segment that is still `active.log` as well. It is left out
    /// here: it is still being appended to.
    pub(crate) fn segments(&self) -> Result<Vec<SegmentFile>, Error> {
        let names = match self.disk.list(&self.path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io("list", &self.path, error)),
        };
        let mut files: Vec<_> = names.iter().filter_map(|name| self.parse(name)).collect();
        files.sort_by_key(|file| (file.number, file.generation));
        files.reverse();
        files.dedup_by_key(|file| file.number);
        files.reverse();
        if let Some(last) = files.last() {
            let active = self.disk.inode(&self.active()).ok();
            if active.is_some() && self.disk.inode(&last.path).ok() == active {
                files.pop();
            }
        }
        Ok(files)
    }

    fn parse(&self, name: &str) -> Option<SegmentFile> {
        let (number, generation) = name.strip_suffix(".seg")?.split_once(".g")?;
        Some(SegmentFile {
            number: u64::from_str_radix(number, 16).ok().filter(|_| number.len() == 16)?,
            generation: generation.parse().ok()?,
            path: self.path.join(name),
        })
    }

    /// The identity of this log: from `log.id`, or, if that is damaged or gone, from the first segment
    /// whose header is whole.
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

    /// The header of a segment file, if it is whole.
    pub(crate) fn read_header(&self, path: &Path) -> Option<SegmentHeader> {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        let len = self.disk.open_read(path).ok()?.read_at(&mut bytes, 0).ok()?;
        SegmentHeader::decode(&bytes[..len])
    }

    /// The number that `active.log` has if its own header does not say.
    pub(crate) fn number_after_last(&self) -> Result<u64, Error> {
        Ok(self.segments()?.last().map_or(1, |file| file.number + 1))
    }
}
