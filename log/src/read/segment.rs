//! One segment opened for reading, whatever state it is in.

use crate::{
    Error, Gap, GapReason,
    directory::{Directory, SegmentFile},
    disk::File,
    format::{
        self, FORMAT, FRAME_HEADER_LEN, FrameHeader, KIND_SEAL, SEGMENT_HEADER_LEN, Seal,
        SegmentHeader, Synced,
    },
    read::readahead::{Ahead, Checker},
    recovery::{ScanResult, Source, scan},
};
use std::{io, path::PathBuf, sync::Arc};

/// How far along a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SegmentState {
    /// Records are appended to it.
    Active,
    /// It is full, and waits for its seal.
    Rolled,
    /// It is complete, and has its seal.
    Sealed,
}

/// A segment as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its number.
    pub number: u64,
    /// The last segment number whose records are in it: its own, unless several were merged.
    pub number_last: u64,
    /// How often it was compacted.
    pub generation: u32,
    /// Where it is.
    pub path: PathBuf,
    /// How long it is.
    pub bytes: u64,
    /// How far along it is.
    pub state: SegmentState,
    /// What its seal says, if it has one that is whole.
    pub seal: Option<Seal>,
}

/// One segment, open.
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
    pub(crate) bytes: Buffered,
    ahead: Option<Ahead>,
    pub(crate) file: Arc<dyn File>,
}

impl Segment {
    /// Opens a segment that nobody appends to any more.
    pub(crate) fn open(directory: &Directory, file: &SegmentFile) -> Result<Self, Error> {
        let handle = directory
            .disk
            .open_read(&file.path)
            .map_err(|error| Error::io("open", &file.path, error))?;
        let mut segment = Self::with_header(directory, file, handle)?;
        segment.seal = read_seal(segment.file.as_ref(), segment.salt)
            .map_err(|error| Error::io("read", &file.path, error))?
            .map(|(seal, _)| seal);
        Ok(segment)
    }

    /// Takes an open file as a segment that nobody appends to any more, and is not sealed.
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
            bytes: Buffered::new(Arc::clone(&handle)),
            ahead: None,
            file: handle,
        })
    }

    /// Whether places in the file are places in the log. In a compacted one they are not: there every
    /// record that is elsewhere than it first was says where.
    pub(crate) fn is_as_written(&self) -> bool {
        self.generation == 0
    }

    /// Has the rear of the segment checked by another thread, if it is complete: for those who are going to
    /// read all of it.
    pub(crate) fn check_ahead(&mut self, checker: &Checker) {
        if let Some(seal) = &self.seal {
            self.ahead = checker.begin(&self.file, seal, self.salt);
        }
    }

    /// What is at `offset`. There are no tails in a segment that nobody appends to.
    #[inline]
    pub(crate) fn scan(&mut self, offset: u64) -> Result<ScanResult, Error> {
        if let Some(ahead) = &mut self.ahead
            && let Some(header) = ahead.next(offset)
        {
            return Ok(ScanResult::Frame(header));
        }
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

    /// Looks again at what seems damaged in a segment that grows.
    ///
    /// One scan makes several reads. A frame that was half written at the first of them is taken for damaged
    /// when the next frame is whole at a later one. But appends are serialised: a whole frame further on
    /// proves that nothing before it is still being written. So what a second look finds is final.
    #[cold]
    fn scan_again(&mut self, offset: u64) -> Result<ScanResult, Error> {
        self.bytes.clear();
        self.scan_bytes(offset)
    }

    /// The payload of a frame that [`scan`](Self::scan) has found at `offset`, as stored.
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

    /// What is missing or damaged at the end of the active segment although it was synced. `offset` is
    /// where its records end. `synced` must have been read before: lengths can only grow.
    ///
    /// Rule 4 says to wait there, for an append may be under way; but not for bytes that were all there
    /// when they were synced. Once something is appended behind, the reader meets the same gap again.
    pub(crate) fn lost_end(
        &mut self,
        synced: Option<Synced>,
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

/// Every segment file and the active segment, as they were at one moment: each record that was appended
/// before this call is in one of them, and none is in two.
///
/// The active segment is opened first and listed last. After a roll in between it is one of the files
/// listed, and those behind it are left out, because a directory that changes while it is listed may show
/// the second of two new names without the first. Listed first, a whole segment could be in neither.
pub(crate) fn snapshot(
    directory: &Directory,
) -> Result<(Vec<SegmentFile>, Option<Segment>), Error> {
    for _ in 1..FOLLOW_MAX {
        if let Some(snapshot) = try_snapshot(directory, false)? {
            return Ok(snapshot);
        }
    }
    Ok(try_snapshot(directory, true)?.expect("whatever is there is taken"))
}

type Snapshot = (Vec<SegmentFile>, Option<Segment>);

/// `None` if the active segment that was opened is full and compacted by now, unless the last word is asked
/// for.
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
            // The number is taken: a header that strayed here from another segment.
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

/// How often a directory that changes under our hands is looked at again.
const FOLLOW_MAX: usize = 8;

/// Does something with files that compaction may take away meanwhile: then they have other names by now.
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

/// The seal at the end of a file, and where its frame begins; `None` if there is none that is whole.
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

/// A piece of a segment file in memory.
///
/// Segments are read, not mapped. Any program may truncate a file, and touching a mapped page behind its end
/// kills the process (SIGBUS); a read there is merely short.
#[derive(Debug)]
pub(crate) struct Buffered {
    file: Arc<dyn File>,
    start: u64,
    bytes: Vec<u8>,
    /// How much the last read asked for.
    read_len: usize,
}

/// Large enough that reading costs little, small enough not to count.
const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of the first read after a seek: often one record is wanted.
const FIRST_READ_BYTES: usize = 16 << 10;

impl Source for Buffered {
    #[inline]
    fn window(&mut self, offset: u64, len: usize) -> io::Result<&[u8]> {
        let held = offset.checked_sub(self.start).and_then(|from| self.bytes.get(from as usize..));
        if held.is_none_or(|held| held.len() < len) {
            self.fill(offset, len)?;
        }
        Ok(&self.bytes[(offset - self.start) as usize..])
    }
}

impl Buffered {
    pub(crate) fn new(file: Arc<dyn File>) -> Self {
        Self { file, start: 0, bytes: Vec::new(), read_len: 0 }
    }

    /// Forgets what was read, so that it is read anew.
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
        // What is not there needs no room: a reader who has little left to read is not to pay for more.
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
