//! An append-only log of checksummed records. Any number of processes write to it at the same time,
//! without a daemon.
//!
//! The log deals with bytes, ids and disks. It does not interpret payloads, reads no clock, and
//! needs no async runtime. [`mod@format`] is the disk format, byte by byte.
//!
//! - [`Appender`] appends each record with one `write` under a shared lock. Once the call returns,
//!   the record survives the end of any process.
//! - [`Log`] reads forwards, backwards, from a position or a time, and follows the end. Damage is
//!   reported as a [`Gap`], and reading continues after it.
//! - [`maintain()`] does the slow work that hooks skip: it seals full segments, merges spilled
//!   records, and restores the reserve. [`verify()`] reads and checks everything.
//! - [`Compactor`] rewrites complete segments without records that are no longer needed. The others
//!   keep their positions.
//!
//! # What survives what
//!
//! | event | what survives |
//! |---|---|
//! | [`append`](Appender::append) returned | the end of every process, at any moment |
//! | [`sync`](Appender::sync) returned | also a power loss, even if an earlier sync failed and the disk lost the data |
//! | [`append`](Appender::append) failed | the record may or may not exist: bytes written before the failure are not removed. The same [`Id`] appended again may be returned twice |
//! | a process is killed within a call | all acknowledged records; the one in progress is intact or a [`Gap`] |
//! | a bit flips | all but at most one, and that one is reported |
//! | a sector is lost, or written elsewhere | all that have no byte in it |
//! | a segment's header, seal, `log.id` or `synced` is damaged | all |
//! | a segment is cut short | all before the cut; the loss is reported if the segment was rolled or synced |
//! | a segment file is missing | all others; the loss is reported if a later one exists or was synced |
//! | the disk is full | all acknowledged records; the reserve has space for the last ones |
//! | a process that holds the lock is stopped | all: appends go to `spill/` after [`lock_wait_max`](Options::lock_wait_max) |
//! | a compactor is killed at any point, or fails | all, each once and at its position |
//! | the directory is removed | none of the old ones; the next append begins a new log |
//!
//! Not covered: damage to both `log.id` and every segment header, which together contain the salt.
//!
//! `tests/campaigns` proves this table: every bit, length and sector of a golden log damaged, power
//! loss and failure at every call on a simulated disk, and hundreds of killed processes.
//!
//! ```
//! use claude_mem_log::{Appender, Id, Item, Log, Options, Record};
//! # let dir = tempfile::tempdir().unwrap();
//! let mut appender = Appender::open(dir.path(), Options::default())?;
//! let record = Record { id: Id::random(1), kind: 7, schema: 1, codec: 0, payload: b"hello" };
//! appender.append(&record)?;
//! appender.sync()?;
//!
//! let mut reader = Log::open(dir.path(), Options::default())?.read_from_start();
//! while let Some(item) = reader.next()? {
//!     match item {
//!         Item::Record(entry) => assert_eq!(entry.payload, b"hello"),
//!         Item::Gap(gap) => panic!("{gap}"),
//!     }
//! }
//! # Ok::<(), claude_mem_log::Error>(())
//! ```
#![warn(missing_docs)]

mod compaction;
mod directory;
pub mod disk;
mod error;
pub mod format;
mod id;
mod read;
pub mod scan;
pub mod system;
mod verify;
mod write;

pub use compaction::{
    CompactionPolicy, Compactor, Damage, Head, KeepAll, Packing, RecordAction, Rewritten, roll,
};
pub use error::Error;
pub use format::GapReason;
pub use id::Id;
pub use read::{
    backwards::Backwards,
    item::{Entry, Gap, Item},
    log::Log,
    reader::Reader,
    segment::{SegmentInfo, SegmentState},
    tail::{Tail, Waker},
};
pub use verify::{Report, SegmentReport, quarantine, verify, verify_with};
pub use write::{
    maintain::{Maintained, maintain},
    sync::sync_is_due,
    writer::{Appended, Appender, Record},
};

use std::{fmt, sync::Arc, time::Duration};

/// The position of a record, which orders the log.
///
/// The upper 32 bits are the number of the segment, the lower 32 bits the offset in it. So it fits
/// an integer column and sorts correctly. Compaction preserves it. The identity is the [`Id`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(u64);

impl Seq {
    /// Before every record.
    pub const START: Self = Self(0);

    /// The place `offset` bytes into segment `segment`.
    pub fn new(segment: u64, offset: u64) -> Self {
        debug_assert!(segment < 1 << 31 && offset < 1 << 32, "segments are rolled long before");
        Self(segment << 32 | offset & 0xFFFF_FFFF)
    }

    /// The number of the segment.
    pub fn segment(self) -> u64 {
        self.0 >> 32
    }

    /// The offset in it.
    pub fn offset(self) -> u64 {
        self.0 & 0xFFFF_FFFF
    }

    /// As one integer, below 2^63.
    pub fn raw(self) -> u64 {
        self.0
    }

    /// From [`raw`](Self::raw).
    pub fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The next position.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.segment(), self.offset())
    }
}

/// When appends go to a separate file instead of `active.log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spill {
    /// On network file systems, where appending is a race, and when the lock is not free in time.
    Auto,
    /// Always.
    Always,
    /// Never; what would spill is an error instead.
    Never,
}

/// Limits and options. Tests use segments of a few hundred bytes.
#[derive(Debug, Clone)]
pub struct Options {
    /// A segment above this size is rolled by the next append.
    pub segment_bytes_max: u64,
    /// Payloads from this size on are compressed if that makes them at least an eighth smaller.
    ///
    /// A hook is a new process and pays for zstd's first call, page faults included. Measured on
    /// hook input (JSON with source code in it) on a busy machine: 44 µs for 2 KB, 60 µs for 4 KB,
    /// 76 µs for 8 KB and 114 µs for 16 KB, where the append itself takes 12 µs. Each saved
    /// kilobyte costs 50 µs at 2 KB, 31 µs at 4 KB, 17 µs at 8 KB and 12 µs at 16 KB. So the many
    /// small records stay fast, and the few large ones shrink by more than half.
    pub compress_bytes_min: usize,
    /// How long an append waits for the lock before it spills. Only a stopped roller can cause a
    /// wait.
    pub lock_wait_max: Duration,
    /// Space reserved for the last records before the disk is full.
    pub reserve_bytes: u64,
    /// Bytes of a segment per entry of its index.
    pub index_interval_bytes: u64,
    /// When to write to a spill file of this process.
    pub spill: Spill,
    /// The disk; tests pass in one that fails.
    pub disk: Arc<dyn disk::Disk>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes_max: 32 << 20,
            compress_bytes_min: 8 << 10,
            lock_wait_max: Duration::from_millis(20),
            reserve_bytes: 1 << 20,
            index_interval_bytes: 64 << 10,
            spill: Spill::Auto,
            disk: Arc::new(disk::RealDisk),
        }
    }
}
