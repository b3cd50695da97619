//! One segment opened for reading, in any state.

use crate::{
    Error, Gap, GapReason,
    directory::{Directory, SegmentFile},
    disk::{File, FileMap},
    format::{
        self, FORMAT, FRAME_HEADER_LEN, FrameHeader, KIND_SEAL, SEGMENT_HEADER_LEN, Seal,
        SegmentHeader, SyncMark,
    },
    scan::{ScanResult, Source, scan},
};
use std::{io, ops::Range, path::PathBuf, sync::Arc};

/// The state of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentState {
    /// Records are appended to it.
    Active,
    /// It is full, but not sealed yet.
    Rolled,
    /// It is complete and has a seal.
    Sealed,
}

/// Metadata of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u64,
    /// The last segment number whose records are in it: its own, unless several were merged.
    pub number_last: u64,
    /// Number of compactions.
    pub generation: u32,
    /// Its path.
    pub path: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// Its state.
    pub state: SegmentState,
    /// Its seal, if there is an intact one.
    pub seal: Option<Seal>,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    /// The last segment number whose records are in this file.
    pub(crate) number_last: u64,
    pub(crate) generation: u32,
    pub(crate) path: PathBuf,
    pub(crate) salt: u32,
    /// `None` if it is damaged, or belongs to another segment.
    pub(crate) header: Option<SegmentHeader>,
    pub(crate) is_active: bool,
    pub(crate) seal: Option<Seal>,
    pub(crate) bytes: SegmentBytes,
    pub(crate) file: Arc<dyn File>,
}

impl Segment {
    /// Opens a segment that is no longer appended to.
    pub(crate) fn open(directory: &Directory, file: &SegmentFile) -> Result<Self, Error> {
        let handle = directory
            .disk
            .open_read(&file.path)
            .map_err(|error| Error::io("open", &file.path, error))?;
        let mut segment = Self::with_header(directory, file, handle)?;
        segment.seal = read_seal(segment.file.as_ref(), segment.salt)
            .map_err(|error| Error::io("read", &file.path, error))?
            .map(|(seal, _)| seal);
        if segment.seal.is_some() {
            segment.bytes = SegmentBytes::mapped(Arc::clone(&segment.file));
        }
        Ok(segment)
    }

    /// Uses an open file as a segment that is no longer appended to and not sealed.
    pub(crate) fn with_header(
        directory: &Directory,
        file: &SegmentFile,
        handle: Arc<dyn File>,
    ) -> Result<Self, Error> {
        let path = file.path.clone();
        let header = read_header(handle.as_ref())
            .map_err(|error| Error::io("read", &path, error))?
            .filter(|header| header.number == file.number);
        if let Some(SegmentHeader { min_reader, .. }) = header
            && min_reader > FORMAT
        {
            return Err(Error::NewerFormat { path, min_reader });
        }
        let salt = match header {
            Some(header) => header.salt(),
            None => format::salt(directory.read_log_id().unwrap_or_default(), file.number),
        };
        Ok(Self {
            number: file.number,
            number_last: file.number_last,
            generation: file.generation,
            path,
            salt,
            header,
            is_active: false,
            seal: None,
            bytes: SegmentBytes::new(Arc::clone(&handle)),
            file: handle,
        })
    }

    /// Whether offsets in the file are places in the log. In a compacted segment they are not: a
    /// moved record carries its original place.
    pub(crate) fn is_as_written(&self) -> bool {
        self.generation == 0
    }

    /// Scans the frame at `offset`. A closed segment has no tail.
    #[inline]
    pub(crate) fn scan(&mut self, offset: u64) -> Result<ScanResult, Error> {
        let found = self.scan_bytes(offset)?;
        match found {
            found if !self.is_active => Ok(found.when_closed(offset)),
            ScanResult::Gap { .. } => self.scan_again(offset),
            found => Ok(found),
        }
    }

    fn scan_bytes(&mut self, offset: u64) -> Result<ScanResult, Error> {
        scan(&mut self.bytes, offset, self.salt)
            .map_err(|error| Error::io("read", &self.path, error))
    }

    /// Scans again what looks damaged in a growing segment.
    ///
    /// One scan makes several reads. A frame that was half written during the first read looks
    /// damaged if the next frame is complete in a later read. But appends are serialized: a
    /// complete frame further on proves that everything before it is written. So the second scan is
    /// final.
    #[cold]
    fn scan_again(&mut self, offset: u64) -> Result<ScanResult, Error> {
        self.bytes.clear();
        self.scan_bytes(offset)
    }

    /// The stored payload of a frame that [`scan`](Self::scan) found at `offset`.
    #[inline]
    pub(crate) fn payload(&mut self, offset: u64, header: &FrameHeader) -> Result<&[u8], Error> {
        let window = self
            .bytes
            .window(offset, header.frame_len())
            .map_err(|error| Error::io("read", &self.path, error))?;
        Ok(window.get(FRAME_HEADER_LEN..header.frame_len()).unwrap_or_default())
    }

    pub(crate) fn len(&self) -> Result<u64, Error> {
        self.file.len().map_err(|error| Error::io("stat", &self.path, error))
    }

    pub(crate) fn gap(&self, offset: u64, len: u64, reason: GapReason) -> Gap {
        Gap { segment: self.number, offset, len, reason, id: None, kind: None }
    }

    pub(crate) fn header_gap(&self) -> Option<Gap> {
        self.header
            .is_none()
            .then(|| self.gap(0, SEGMENT_HEADER_LEN as u64, GapReason::DamagedHeader))
    }

    /// The missing or damaged end of the active segment, although it was synced. `offset` is the
    /// end of its records. `synced` must have been read before, because lengths only grow.
    ///
    /// Reading rule 4 requires waiting there, because an append may be in progress. It does not
    /// apply to synced bytes. Once something is appended, the reader finds the same gap again.
    pub(crate) fn lost_end(
        &mut self,
        synced: Option<SyncMark>,
        offset: u64,
    ) -> Result<Vec<Gap>, Error> {
        let Some(synced) = synced.filter(|synced| synced.segment == self.number) else {
            return Ok(Vec::new());
        };
        let mut gaps = Vec::new();
        let len = self.len()?;
        if synced.bytes > len {
            gaps.push(self.gap(len, synced.bytes - len, GapReason::Truncated));
        }
        if let found @ ScanResult::Tail { header, .. } = self.scan(offset)?
            && let ScanResult::Gap { range, reason, .. } = found.when_closed(offset)
            && offset + header.map_or(FRAME_HEADER_LEN, |header| header.frame_len()) as u64
                <= synced.bytes
        {
            gaps.push(self.gap(offset, range.end - offset, reason).of_record(header));
        }
        Ok(gaps)
    }

    pub(crate) fn info(&self) -> Result<SegmentInfo, Error> {
        let state = match (self.is_active, &self.seal) {
            (true, _) => SegmentState::Active,
            (false, None) => SegmentState::Rolled,
            (false, Some(_)) => SegmentState::Sealed,
        };
        Ok(SegmentInfo {
            number: self.number,
            number_last: self.number_last,
            generation: self.generation,
            path: self.path.clone(),
            bytes: self.len()?,
            state,
            seal: self.seal.clone(),
        })
    }
}

/// A consistent list of all segment files and the active segment: each record appended before this
/// call is in exactly one of them.
///
/// The active segment is opened first and listed last. If it was rolled in between, it is one of
/// the listed files, and those after it are left out: a directory listing during a change may show
/// the second of two new names without the first. In the other order, a segment could be missing
/// from both.
pub(crate) fn snapshot(
    directory: &Directory,
) -> Result<(Vec<SegmentFile>, Option<Segment>), Error> {
    for _ in 1..FOLLOW_MAX {
        if let Some(snapshot) = try_snapshot(directory, false)? {
            return Ok(snapshot);
        }
    }
    Ok(try_snapshot(directory, true)?.expect("the last attempt always returns a snapshot"))
}

type Snapshot = (Vec<SegmentFile>, Option<Segment>);

/// `None` if the opened active segment was rolled and compacted meanwhile, unless this is the last
/// attempt.
fn try_snapshot(directory: &Directory, is_last: bool) -> Result<Option<Snapshot>, Error> {
    let path = directory.active();
    let handle = match directory.disk.open_read(&path) {
        Ok(handle) => Some(handle),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Error::io("open", &path, error)),
    };
    let mut files = directory.segments()?;
    let Some(handle) = handle else { return Ok(Some((files, None))) };
    let header = read_header(handle.as_ref()).map_err(|error| Error::io("read", &path, error))?;
    let inode = handle.inode().map_err(|error| Error::io("stat", &path, error))?;
    let is_handle = |file: &&SegmentFile| directory.disk.inode(&file.path).ok() == Some(inode);
    let after_last = files.last().map_or(1, |file| file.number_last + 1);
    let number = match header {
        Some(header) => match files.iter().find(|file| file.holds(header.number)) {
            Some(file) if is_handle(&file) => {
                files.retain(|file| file.number <= header.number);
                return Ok(Some((files, None)));
            }
            // Rolled, sealed and compacted since it was opened.
            Some(_) if !is_last && directory.disk.inode(&path).ok() != Some(inode) => {
                return Ok(None);
            }
            // The number is in use: the header was misplaced from another segment.
            Some(_) => after_last,
            None => header.number,
        },
        None if files.iter().rev().take(2).any(|file| is_handle(&file)) => {
            return Ok(Some((files, None)));
        }
        None => after_last,
    };
    files.retain(|file| file.number < number);
    let mut active = Segment::with_header(directory, &SegmentFile::written(number, path), handle)?;
    active.is_active = true;
    Ok(Some((files, Some(active))))
}

/// Maximum number of retries while the directory changes.
const FOLLOW_MAX: usize = 8;

/// Runs a function on files that compaction may rename meanwhile, and retries it then.
pub(crate) fn following<T>(mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let mut result = work();
    for _ in 1..FOLLOW_MAX {
        if !result.as_ref().is_err_and(Error::is_not_found) {
            break;
        }
        result = work();
    }
    result
}

fn read_header(file: &dyn File) -> io::Result<Option<SegmentHeader>> {
    let mut bytes = [0; SEGMENT_HEADER_LEN];
    let len = file.read_at(&mut bytes, 0)?;
    Ok(SegmentHeader::decode(&bytes[..len]))
}

/// The seal at the end of a file and the offset of its frame; `None` if there is no intact one.
pub(crate) fn read_seal(file: &dyn File, salt: u32) -> io::Result<Option<(Seal, u64)>> {
    let len = file.len()?;
    let mut last = [0; 8];
    if len < 8 || file.read_at(&mut last, len - 8)? != 8 {
        return Ok(None);
    }
    let Some(frame_len) = Seal::frame_len_from_end(last).filter(|frame| *frame <= len) else {
        return Ok(None);
    };
    let mut frame = vec![0; frame_len as usize];
    if file.read_at(&mut frame, len - frame_len)? != frame.len() {
        return Ok(None);
    }
    Ok(decode_seal_frame(&frame, salt).map(|seal| (seal, len - frame_len)))
}

fn decode_seal_frame(frame: &[u8], salt: u32) -> Option<Seal> {
    let header = FrameHeader::decode(frame, salt)?;
    let payload = frame.get(FRAME_HEADER_LEN..)?;
    (header.kind == KIND_SEAL && header.fits(payload)).then(|| Seal::decode(payload))?
}

/// The bytes of a segment file: mapped if it is sealed, else a buffered part.
///
/// Access to a mapped page that another program cut off, or that the disk cannot read, ends the
/// process (SIGBUS). So the length is checked and the pages are read before each window. If that
/// fails, the file is read from then on: a read only returns fewer bytes, or an error.
#[derive(Debug)]
pub(crate) struct SegmentBytes {
    file: Arc<dyn File>,
    map: Option<FileMap>,
    /// The part of the map that was checked.
    window: Range<u64>,
    start: u64,
    bytes: Vec<u8>,
    /// The length of the last read.
    read_len: usize,
}

/// Windows of a mapped file end at a multiple of this.
const WINDOW_BYTES: u64 = 1 << 20;

/// Large enough to make reading cheap.
const BUFFER_BYTES: usize = 256 << 10;
/// Length of the first read after a seek: often only one record is needed.
const FIRST_READ_BYTES: usize = 16 << 10;

impl Source for SegmentBytes {
    #[inline]
    fn window(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        if self.map.is_some() && self.is_mapped(offset, len)? {
            let map = self.map.as_ref().expect("it was just checked");
            return Ok(map.bytes(offset..self.window.end));
        }
        let held = offset.checked_sub(self.start).and_then(|from| self.bytes.get(from as usize..));
        if held.is_none_or(|held| held.len() < len) {
            self.fill(offset, len)?;
        }
        Ok(&self.bytes[(offset - self.start) as usize..])
    }
}

impl SegmentBytes {
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        Self { file, map: None, window: 0..0, start: 0, bytes: Vec::new(), read_len: 0 }
    }

    /// As [`new`](Self::new), mapped if possible. The file must be complete.
    pub(crate) fn mapped(file: Arc<dyn File>) -> Self {
        let map = file.map();
        Self { map, ..Self::new(file) }
    }

    /// Whether the map can be used for these bytes. If not, it is given up.
    #[inline]
    fn is_mapped(&mut self, offset: u64, len: usize) -> io::Result<bool> {
        let end = self.map.as_ref().map_or(0, FileMap::len).min(offset + len as u64);
        let is_checked = self.window.start <= offset && end <= self.window.end;
        if is_checked { Ok(true) } else { self.check_window(offset, len) }
    }

    #[cold]
    fn check_window(&mut self, offset: u64, len: usize) -> io::Result<bool> {
        let Some(map) = &self.map else { return Ok(false) };
        let end = (offset + (len as u64).max(1)).next_multiple_of(WINDOW_BYTES).min(map.len());
        let window = offset.min(end)..end;
        if self.file.len()? < map.len() || !map.is_readable(&window) {
            self.map = None;
            return Ok(false);
        }
        self.window = window;
        Ok(true)
    }

    /// Discards the buffer.
    fn clear(&mut self) {
        self.bytes.clear();
    }

    #[cold]
    fn fill(&mut self, offset: u64, len: usize) -> io::Result<()> {
        let end = self.start + self.bytes.len() as u64;
        self.read_len = match (self.start..=end).contains(&offset) {
            true => (self.read_len * 4).clamp(FIRST_READ_BYTES, BUFFER_BYTES),
            false => FIRST_READ_BYTES,
        };
        let len = len.max(self.read_len);
        // Do not allocate more than the rest of the file.
        let there = self.file.len()?.saturating_sub(offset);
        let len = len.min(usize::try_from(there).unwrap_or(len));
        self.start = offset;
        self.bytes.resize(len, 0);
        let mut filled = 0;
        while filled < len {
            match self.file.read_at(&mut self.bytes[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => {
                    self.bytes.clear();
                    return Err(error);
                }
            }
        }
        self.bytes.truncate(filled);
        // One record of 16 MB must not keep that much memory for the rest of the file.
        if len <= BUFFER_BYTES {
            self.bytes.shrink_to(BUFFER_BYTES);
        }
        Ok(())
    }
}
