//! Reading the log: forwards, from a place or a time, and onwards as it grows.

use crate::{
    Backwards, Error, GapReason, Id, Options, Seq, Tail,
    directory::Directory,
    format::{
        FLAG_MOVED, FLAG_TOMBSTONE, FLAG_ZSTD, FrameHeader, KIND_SEAL, PAYLOAD_BYTES_MAX,
        SEGMENT_HEADER_LEN, split_moved,
    },
    recovery::Found,
    segment::{Segment, SegmentInfo},
};
use std::{
    collections::HashSet,
    fmt,
    hash::{BuildHasherDefault, Hasher},
    path::Path,
};

/// A log, to be read.
#[derive(Debug, Clone)]
pub struct Log {
    pub(crate) directory: Directory,
}

impl Log {
    /// Opens the log in `dir`. Reads nothing yet; a directory that does not exist is an empty log.
    pub fn open(dir: &Path, options: Options) -> Result<Self, Error> {
        Ok(Self { directory: Directory::new(dir, options.disk) })
    }

    /// Every record from the first on.
    pub fn read_from_start(&self) -> Reader {
        self.read_from(Seq::START)
    }

    /// Every record at `from` or behind it.
    pub fn read_from(&self, from: Seq) -> Reader {
        Reader::new(self.clone(), from, 0)
    }

    /// Every record whose id is of `time_us` or later, in the order of the log.
    ///
    /// Segments in which nothing is that late are passed over, and within a segment reading begins at the
    /// index. A clock that was set back hides nothing: a segment is passed over by its latest time.
    pub fn read_since(&self, time_us: u64) -> Result<Reader, Error> {
        let mut from = Seq::START;
        for info in self.segments()? {
            let Some(seal) = info.seal else {
                from = Seq::new(info.number, 0);
                break;
            };
            from = Seq::new(info.number, seal.bytes);
            if seal.time_max_us >= time_us && seal.records > 0 {
                let entry = seal.index.iter().rfind(|entry| entry.time_max_before_us < time_us);
                let is_offset_seq = info.generation == 0;
                let offset = entry.filter(|_| is_offset_seq).map_or(0, |entry| entry.offset);
                from = Seq::new(info.number, offset);
                break;
            }
        }
        let mut reader = Reader::new(self.clone(), from, time_us);
        // What lies before was passed over on purpose, missing segments included.
        reader.number_expected = None;
        Ok(reader)
    }

    /// Every record before `before`, or every record, the last one first.
    pub fn read_backwards(&self, before: Option<Seq>) -> Result<Backwards, Error> {
        Backwards::new(self.clone(), before)
    }

    /// Every record at `from` or behind it, and then those that come.
    pub fn tail(&self, from: Seq) -> Tail {
        Tail::new(self.read_from(from))
    }

    /// The segments, in order.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, Error> {
        let mut infos = Vec::new();
        for file in self.directory.segments()? {
            infos.push(Segment::open(&self.directory, &file)?.info()?);
        }
        if let Some(active) = Segment::open_active(&self.directory)? {
            infos.push(active.info()?);
        }
        Ok(infos)
    }

    /// The identity of the log; `None` if nothing was ever written.
    pub fn id(&self) -> Option<[u8; 16]> {
        self.directory.read_log_id()
    }

    /// Opens the first segment with records at `number` or behind it.
    pub(crate) fn open_segment(&self, number: u64) -> Result<Option<Segment>, Error> {
        let files = self.directory.segments()?;
        // A merged segment holds records of numbers above its own, so the one before may be meant.
        let before = files.iter().rposition(|file| file.number <= number).unwrap_or(0);
        for file in &files[before.min(files.len())..] {
            let segment = Segment::open(&self.directory, file)?;
            if segment.number_last() >= number {
                return Ok(Some(segment));
            }
        }
        let active = Segment::open_active(&self.directory)?;
        Ok(active.filter(|segment| segment.number >= number))
    }
}

/// One thing met while reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item<'a> {
    /// A record, whole.
    Record(Entry<'a>),
    /// Bytes that are no record. Reading goes on behind them.
    Gap(Gap),
}

/// A record, as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Where it is.
    pub seq: Seq,
    /// Who it is.
    pub id: Id,
    /// What it is, to whoever wrote it.
    pub kind: u16,
    /// Version of that kind.
    pub schema: u16,
    /// How the payload is encoded.
    pub codec: u8,
    /// Whether the payload was removed for good.
    pub is_tombstone: bool,
    /// What was recorded.
    pub payload: &'a [u8],
}

/// Bytes of a segment that are no record, or a segment that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// Number of the segment.
    pub segment: u64,
    /// Where it begins.
    pub offset: u64,
    /// How long it is; 0 if not known.
    pub len: u64,
    /// Why.
    pub reason: GapReason,
    /// The record that was there, if that can still be read.
    pub id: Option<Id>,
    /// Its kind.
    pub kind: Option<u16>,
}

impl fmt::Display for Gap {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, offset, len, .. } = self;
        write!(out, "{} in segment {segment:016x} at byte {offset}", self.reason.describe())?;
        if *len > 0 {
            write!(out, ", {len} bytes")?;
        }
        match (self.id, self.kind) {
            (Some(id), Some(kind)) => write!(out, " (record {id}, kind {kind})"),
            _ => Ok(()),
        }
    }
}

/// Reads forwards. At the end [`next`](Self::next) gives `None`, and goes on when called again after the
/// log has grown.
#[derive(Debug)]
pub struct Reader {
    log: Log,
    segment: Option<Segment>,
    offset: u64,
    from: Seq,
    since_us: u64,
    number_expected: Option<u64>,
    is_known_closed: bool,
    seen: Seen,
    decompressed: Vec<u8>,
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
            since_us,
            number_expected: Some(from.segment().max(1)),
            is_known_closed: false,
            seen: Seen::default(),
            decompressed: Vec::new(),
        }
    }

    /// The next record or gap; `None` at the end of what there is now.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        let (offset, header) = match self.step()? {
            None => return Ok(None),
            Some(Step::Gap(gap)) => return Ok(Some(Item::Gap(gap))),
            Some(Step::Frame(offset, header)) => (offset, header),
        };
        let segment = self.segment.as_mut().expect("a frame was just found in it");
        entry(segment, offset, header, &mut self.decompressed).map(Some)
    }

    /// Where reading goes on. A reader opened [there](Log::read_from) misses nothing and repeats nothing.
    pub fn position(&self) -> Seq {
        match &self.segment {
            Some(segment) => Seq::new(segment.number, self.offset).max(self.from),
            None => self.from,
        }
    }

    fn step(&mut self) -> Result<Option<Step>, Error> {
        loop {
            if self.segment.is_none() {
                match self.open_next()? {
                    Opened::Nothing => return Ok(None),
                    Opened::Whole => {}
                    Opened::After(gap) => return Ok(Some(Step::Gap(gap))),
                }
            }
            let segment = self.segment.as_mut().expect("opened above");
            let offset = self.offset;
            match segment.scan(offset)? {
                Found::Frame(header) => {
                    self.offset += header.frame_len() as u64;
                    if self.is_wanted(offset, &header)? {
                        return Ok(Some(Step::Frame(offset, header)));
                    }
                }
                Found::Gap { range, reason, header } => {
                    self.offset = range.end;
                    let gap = with_header(segment.gap(offset, range.end - offset, reason), header);
                    if Seq::new(segment.number, range.end) > self.from {
                        return Ok(Some(Step::Gap(gap)));
                    }
                }
                Found::End | Found::Tail { .. } if segment.is_active && !self.is_known_closed => {
                    if self.is_still_active()? {
                        return Ok(None);
                    }
                    // The end that was just seen may be an old one, so look once more.
                    self.is_known_closed = true;
                }
                Found::End => self.leave_segment(),
                Found::Tail { len, header } => {
                    self.offset += len;
                    let reason = match header {
                        Some(_) => GapReason::TornWrite,
                        None => GapReason::DamagedTail,
                    };
                    return Ok(Some(Step::Gap(with_header(
                        segment.gap(offset, len, reason),
                        header,
                    ))));
                }
            }
        }
    }

    fn is_still_active(&self) -> Result<bool, Error> {
        let Some(segment) = &self.segment else { return Ok(false) };
        let directory = &self.log.directory;
        let path = directory.active();
        let active =
            directory.disk.inode(&path).map_err(|error| Error::io("stat", &path, error))?;
        let own = segment.file.inode().map_err(|error| Error::io("stat", &segment.path, error))?;
        Ok(active == own)
    }

    fn leave_segment(&mut self) {
        let segment = self.segment.take().expect("only left while open");
        self.number_expected = Some(segment.number_last() + 1);
        self.from = self.from.max(Seq::new(segment.number_last() + 1, 0));
        self.seen.turn();
    }

    fn open_next(&mut self) -> Result<Opened, Error> {
        let Some(mut segment) = self.log.open_segment(self.from.segment().max(1))? else {
            return Ok(Opened::Nothing);
        };
        self.is_known_closed = false;
        self.offset = SEGMENT_HEADER_LEN as u64;
        if segment.number == self.from.segment() && segment.generation == 0 {
            let wanted = self.from.offset();
            // A place that is no frame's beginning is looked for from the front of the segment.
            if wanted > self.offset && matches!(segment.scan(wanted)?, Found::Frame(_) | Found::End)
            {
                self.offset = wanted;
            }
        }
        let expected = self.number_expected.take();
        let missing = expected.filter(|expected| segment.number > *expected);
        let gap = match missing {
            Some(number) => {
                Some(Gap { segment: number, ..segment.gap(0, 0, GapReason::MissingSegment) })
            }
            None => segment.header_gap().filter(|_| self.offset == SEGMENT_HEADER_LEN as u64),
        };
        self.segment = Some(segment);
        Ok(gap.map_or(Opened::Whole, Opened::After))
    }

    fn is_wanted(&mut self, offset: u64, header: &FrameHeader) -> Result<bool, Error> {
        if header.kind == KIND_SEAL || !self.seen.insert(header.id) {
            return Ok(false);
        }
        if header.id.time_us() < self.since_us {
            return Ok(false);
        }
        let segment = self.segment.as_mut().expect("the frame is in it");
        Ok(segment.number > self.from.segment() || seq_of(segment, offset, header)? >= self.from)
    }
}

enum Opened {
    Nothing,
    Whole,
    After(Gap),
}

fn with_header(gap: Gap, header: Option<FrameHeader>) -> Gap {
    Gap { id: header.map(|header| header.id), kind: header.map(|header| header.kind), ..gap }
}

fn seq_of(segment: &mut Segment, offset: u64, header: &FrameHeader) -> Result<Seq, Error> {
    let here = Seq::new(segment.number, offset);
    if !header.has(FLAG_MOVED) {
        return Ok(here);
    }
    Ok(split_moved(segment.payload(offset, header)?).map_or(here, |(seq, _)| seq))
}

/// Turns a frame into a record: its first place, its payload as it was given.
pub(crate) fn entry<'a>(
    segment: &'a mut Segment,
    offset: u64,
    header: FrameHeader,
    decompressed: &'a mut Vec<u8>,
) -> Result<Item<'a>, Error> {
    let here = Seq::new(segment.number, offset);
    let gap = with_header(
        segment.gap(offset, header.frame_len() as u64, GapReason::Undecodable),
        Some(header),
    );
    let stored = segment.payload(offset, &header)?;
    let (seq, stored) = match header.has(FLAG_MOVED) {
        true => split_moved(stored).unwrap_or((here, stored)),
        false => (here, stored),
    };
    let payload = if header.has(FLAG_ZSTD) {
        if decompress(stored, decompressed).is_err() {
            return Ok(Item::Gap(gap));
        }
        decompressed.as_slice()
    } else {
        stored
    };
    let FrameHeader { id, kind, schema, codec, .. } = header;
    let is_tombstone = header.has(FLAG_TOMBSTONE);
    Ok(Item::Record(Entry { seq, id, kind, schema, codec, is_tombstone, payload }))
}

fn decompress(stored: &[u8], out: &mut Vec<u8>) -> std::io::Result<()> {
    let len = zstd::zstd_safe::get_frame_content_size(stored).ok().flatten().unwrap_or(0);
    out.clear();
    // The length is only believed up to what a record may hold.
    out.reserve((len as usize).min(PAYLOAD_BYTES_MAX));
    zstd::bulk::Decompressor::new()?.decompress_to_buffer(stored, out).map(|_| ())
}

/// The ids met lately. A record is written twice only into neighbouring segments (after a failed sync),
/// so three segments are remembered: some 100,000 ids, two or three megabytes.
#[derive(Debug, Default)]
struct Seen {
    segments: [HashSet<u128, BuildHasherDefault<IdHasher>>; 3],
}

impl Seen {
    fn insert(&mut self, id: Id) -> bool {
        let key = u128::from_le_bytes(*id.as_bytes());
        let [current, before, before_that] = &mut self.segments;
        !before.contains(&key) && !before_that.contains(&key) && current.insert(key)
    }

    fn turn(&mut self) {
        self.segments.rotate_right(1);
        self.segments[0].clear();
    }
}

/// Ids are random already; any eight bytes of the random half will do.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8 | u64::from(*byte)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = ((key >> 64) as u64 ^ (key as u64)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}
