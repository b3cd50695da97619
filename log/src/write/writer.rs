//! Appending: one `write` per record, from any number of processes.

use crate::{
    Error, Id, Options, Seq, Spill,
    directory::Directory,
    disk::{AppendResult, File, Lock},
    format::{
        self, FLAG_TOMBSTONE, FLAG_ZSTD, FORMAT, FRAME_HEADER_LEN, FrameFields, KIND_RESERVED,
        PAYLOAD_BYTES_MAX, SEGMENT_HEADER_LEN, SegmentHeader,
    },
    write::{roll, spill, sync},
};
use std::{io, path::Path, sync::Arc, time::Duration};

/// A record to append.
#[derive(Debug, Clone, Copy)]
pub struct Record<'a> {
    /// Its id. The same id means the same record.
    pub id: Id,
    /// Its kind; below 0xFF00.
    pub kind: u16,
    /// Version of that kind.
    pub schema: u16,
    /// How the payload is encoded.
    pub codec: u8,
    /// The payload.
    pub payload: &'a [u8],
}

/// The result of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// Its place; `None` if it was spilled: then it gets one when it is merged.
    pub seq: Option<Seq>,
}

/// Appends records to the active segment. Any number of processes may each have one.
#[derive(Debug)]
pub struct Appender {
    pub(crate) directory: Directory,
    pub(crate) options: Options,
    pub(crate) target: Option<Target>,
    pub(crate) spilled: Option<Target>,
    /// Spill files that are closed but not synced yet.
    pub(crate) released: Vec<Target>,
    frame: Vec<u8>,
}

/// An open file that records are appended to.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) file: Arc<dyn File>,
    pub(crate) inode: u64,
    pub(crate) number: u64,
    pub(crate) salt: u32,
    pub(crate) is_shared_over_network: bool,
}

/// The hard limit of a segment, if rolling fails for long: offsets must fit 32 bits.
const SEGMENT_BYTES_LIMIT: u64 = 3 << 30;
/// How often an append follows the active segment to a new file.
const FOLLOW_MAX: usize = 16;
/// How often a frame is written again after a short write; each leaves dead bytes.
const WRITE_MAX: usize = 8;
/// One of zstd's fast levels. On 16 KB of hook input the first call in a process takes two thirds
/// of the time of level 1 and less than half of level 3, and saves 58 % where they save 65 % and 66
/// %.
const COMPRESSION_LEVEL: i32 = -1;
const LOCK_PAUSE: Duration = Duration::from_micros(200);

impl Appender {
    /// Prepares to append to the log in `dir`, which need not exist yet. Reads and writes nothing:
    /// opening costs the same at any size.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        let directory = Directory::new(dir, Arc::clone(&options.disk));
        Ok(Self {
            directory,
            options,
            target: None,
            spilled: None,
            released: Vec::new(),
            frame: Vec::new(),
        })
    }

    /// Adds one record by a single `write`. It survives the death of any process once this returns,
    /// and the loss of power only after [`sync`](Self::sync).
    ///
    /// If the active segment cannot be reached in time, the record goes to a file of our own, which
    /// [`maintain()`](crate::maintain()) merges later.
    pub fn append(&mut self, record: &Record<'_>) -> Result<Appended, Error> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Adds several records by a single `write`: for imports, where one call each would be slow.
    /// All of them are there once this returns. The place given is that of the first.
    pub fn append_all(&mut self, records: &[Record<'_>]) -> Result<Appended, Error> {
        for record in records {
            check(record)?;
        }
        let parts: Vec<Part<'_>> = records.iter().map(|record| self.part(record)).collect();
        self.append_parts(&parts)
    }

    /// Appends the tombstone of a record that was erased in another log.
    pub fn append_erased(&mut self, record: &Record<'_>) -> Result<Appended, Error> {
        check(record)?;
        let mut part = self.part(record);
        part.fields.flags |= FLAG_TOMBSTONE;
        self.append_parts(&[part])
    }

    /// Starts a new segment if this one has records. Returns whether it did.
    pub(crate) fn roll(&mut self) -> Result<bool, Error> {
        let path = self.directory.active();
        if let Err(error) = self.directory.disk.inode(&path)
            && error.kind() == io::ErrorKind::NotFound
        {
            return Ok(false);
        }
        self.target = None;
        let target = self.open_target()?;
        let len = target.file.len().map_err(|error| Error::io("stat", &path, error))?;
        if len <= SEGMENT_HEADER_LEN as u64 {
            return Ok(false);
        }
        self.target = None;
        roll::roll(&self.directory, &target, self.options.lock_wait_max)
    }

    /// Lets others merge the spilled records from now on, even if this process runs for days. The
    /// file must still be synced.
    pub(crate) fn release_spilled(&mut self) {
        if let Some(spilled) = self.spilled.take() {
            let _ = spilled.file.unlock();
            self.released.push(spilled);
        }
    }

    fn append_parts(&mut self, parts: &[Part<'_>]) -> Result<Appended, Error> {
        let failure = match self.append_to_active(parts) {
            Ok(Some(seq)) => {
                self.release_spilled();
                return Ok(Appended { seq: Some(seq) });
            }
            Ok(None) => Error::Busy { path: self.directory.active() },
            // Without space, another file would not help.
            Err(error @ Error::Full { .. }) => return Err(error),
            Err(error) => error,
        };
        if self.options.spill == Spill::Never {
            return Err(failure);
        }
        match spill::append(self, parts) {
            Ok(()) => Ok(Appended { seq: None }),
            Err(_) => Err(failure),
        }
    }

    /// Returns once every record in a segment, of any process, and every record spilled by this
    /// appender is on disk.
    ///
    /// After a failed sync nothing is assumed to be clean: the records since the last good one are
    /// rewritten to a new segment, and readers recognize them by their ids.
    pub fn sync(&mut self) -> Result<(), Error> {
        sync::sync(self)
    }

    /// The place of the first record, or `None` if the active segment is not available.
    pub(crate) fn append_to_active(&mut self, parts: &[Part<'_>]) -> Result<Option<Seq>, Error> {
        for _ in 0..FOLLOW_MAX {
            let target = self.open_target()?;
            let must_spill = match self.options.spill {
                Spill::Always => true,
                Spill::Auto => target.is_shared_over_network,
                Spill::Never => false,
            };
            if must_spill || !self.lock_shared(&target)? {
                return Ok(None);
            }
            let result = self.append_locked(&target, parts);
            let _ = target.file.unlock();
            match result? {
                Locked::Appended(taken) => {
                    if self.is_roll_due(taken) {
                        // A segment that cannot be rolled now grows; a later append tries again.
                        let _ = roll::roll(&self.directory, &target, self.options.lock_wait_max);
                    }
                    return Ok(Some(Seq::new(target.number, taken.start)));
                }
                Locked::TooLong => return Ok(None),
                Locked::RolledAway => self.target = None,
            }
        }
        Ok(None)
    }

    /// Whether the segment is full. If rolling failed, it is retried after each further sixteenth
    /// of its size: a retry costs a sync.
    fn is_roll_due(&self, taken: AppendRange) -> bool {
        let max = self.options.segment_bytes_max;
        let step = (max / 16).max(1);
        taken.end > max && (taken.start <= max || taken.start / step != taken.end / step)
    }

    fn append_locked(&mut self, target: &Target, parts: &[Part<'_>]) -> Result<Locked, Error> {
        let path = self.directory.active();
        if self.directory.disk.inode(&path).ok() != Some(target.inode) {
            return Ok(Locked::RolledAway);
        }
        let len = target.file.len().map_err(|error| Error::io("stat", &path, error))?;
        if len > SEGMENT_BYTES_LIMIT {
            return Ok(Locked::TooLong);
        }
        self.encode(parts, target.salt);
        self.write_whole(target.file.as_ref(), &path).map(Locked::Appended)
    }

    pub(crate) fn encode(&mut self, parts: &[Part<'_>], salt: u32) {
        self.frame.clear();
        for part in parts {
            format::encode_frame(part.fields, &[part.payload.bytes()], salt, &mut self.frame);
        }
    }

    /// Writes the frames with one `write`. After a short write, complete frames stay; the partial
    /// one becomes dead bytes, because others may have appended after it, and is written again.
    pub(crate) fn write_whole(&self, file: &dyn File, path: &Path) -> Result<AppendRange, Error> {
        let mut is_reserve_left = true;
        let mut done = 0;
        let mut start = None;
        for _ in 0..WRITE_MAX {
            match file.append(&self.frame[done..]) {
                Ok(AppendResult { bytes, end }) => {
                    let whole = whole_frames(&self.frame[done..], bytes);
                    if whole > 0 || self.frame.is_empty() {
                        start.get_or_insert(end - bytes as u64);
                    }
                    done += whole;
                    if let (Some(start), true) = (start, done == self.frame.len()) {
                        return Ok(AppendRange { start, end });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::StorageFull && is_reserve_left => {
                    is_reserve_left = false;
                    if self.directory.disk.remove(&self.directory.reserve()).is_err() {
                        return Err(Error::io("write", path, error));
                    }
                }
                Err(error) => return Err(Error::io("write", path, error)),
            }
        }
        Err(Error::Full { path: path.to_path_buf() })
    }

    /// Takes the shared lock. Only a roll excludes an append, for a short time; we do not wait for
    /// a stopped process.
    fn lock_shared(&self, target: &Target) -> Result<bool, Error> {
        let path = self.directory.active();
        let mut waited = Duration::ZERO;
        loop {
            match target.file.try_lock(Lock::Shared) {
                Ok(true) => return Ok(true),
                Ok(false) if waited < self.options.lock_wait_max => {
                    self.directory.disk.pause(LOCK_PAUSE);
                    waited += LOCK_PAUSE;
                }
                Ok(false) => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => waited += LOCK_PAUSE,
                Err(error) => return Err(Error::io("lock", &path, error)),
            }
        }
    }

    pub(crate) fn open_target(&mut self) -> Result<Target, Error> {
        if let Some(target) = &self.target {
            return Ok(target.clone());
        }
        for _ in 0..FOLLOW_MAX {
            let path = self.directory.active();
            let file = match self.directory.disk.open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    roll::create_log(&self.directory, self.options.reserve_bytes)?;
                    continue;
                }
                Err(error) => return Err(Error::io("open", &path, error)),
            };
            if let Some(target) = self.read_target(file, &path)? {
                return Ok(self.target.insert(target).clone());
            }
            roll::roll_away_headless(&self.directory, self.options.lock_wait_max)?;
        }
        Err(Error::Busy { path: self.directory.active() })
    }

    /// The state for appending to an open segment; `None` if its header is damaged.
    fn read_target(&self, file: Arc<dyn File>, path: &Path) -> Result<Option<Target>, Error> {
        let mut bytes = [0; SEGMENT_HEADER_LEN];
        let len = file.read_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
        let Some(header) = SegmentHeader::decode(&bytes[..len]) else { return Ok(None) };
        if header.min_reader > FORMAT {
            let path = path.to_path_buf();
            return Err(Error::NewerFormat { path, min_reader: header.min_reader });
        }
        let inode = file.inode().map_err(|error| Error::io("stat", path, error))?;
        // A header misplaced from another segment would give our frames the wrong salt.
        let namesake = self.directory.disk.inode(&self.directory.segment(header.number, 0));
        if namesake.is_ok_and(|namesake| namesake != inode) && !self.is_rolled_away(inode) {
            return Ok(None);
        }
        let is_shared_over_network = file.is_shared_over_network();
        let (number, salt) = (header.number, header.salt());
        Ok(Some(Target { file, inode, number, salt, is_shared_over_network }))
    }

    fn is_rolled_away(&self, inode: u64) -> bool {
        self.directory.disk.inode(&self.directory.active()).is_ok_and(|active| active != inode)
    }

    fn part<'a>(&self, record: &Record<'a>) -> Part<'a> {
        let Record { id, kind, schema, codec, payload } = *record;
        let fields = FrameFields { kind, schema, codec, flags: 0, id };
        match self.compress(payload) {
            Some(smaller) => Part {
                fields: FrameFields { flags: FLAG_ZSTD, ..fields },
                payload: Payload::Owned(smaller),
            },
            None => Part { fields, payload: Payload::Borrowed(payload) },
        }
    }

    fn compress(&self, payload: &[u8]) -> Option<Vec<u8>> {
        if payload.len() < self.options.compress_bytes_min {
            return None;
        }
        let compressed = zstd::bulk::compress(payload, COMPRESSION_LEVEL).ok()?;
        (compressed.len() <= payload.len() - payload.len() / 8).then_some(compressed)
    }
}

/// One frame to write.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub(crate) fields: FrameFields,
    pub(crate) payload: Payload<'a>,
}

#[derive(Debug)]
pub(crate) enum Payload<'a> {
    Borrowed(&'a [u8]),
    Owned(Vec<u8>),
}

impl Payload<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// The range of the frames of one call. It may also contain dead bytes and frames of others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AppendRange {
    start: u64,
    end: u64,
}

enum Locked {
    Appended(AppendRange),
    RolledAway,
    TooLong,
}

fn check(record: &Record<'_>) -> Result<(), Error> {
    let len = record.payload.len();
    if len > PAYLOAD_BYTES_MAX {
        return Err(Error::TooLarge { len, max: PAYLOAD_BYTES_MAX });
    }
    if record.kind >= KIND_RESERVED {
        return Err(Error::ReservedKind { kind: record.kind });
    }
    Ok(())
}

/// How many of the first `taken` bytes are complete frames.
fn whole_frames(frames: &[u8], taken: usize) -> usize {
    let mut whole = 0;
    while let Some(len) = frames[whole..].get(4..8) {
        let len = u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
        if whole + FRAME_HEADER_LEN + len > taken {
            break;
        }
        whole += FRAME_HEADER_LEN + len;
    }
    whole
}
