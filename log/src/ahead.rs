//! Checking the rear of a segment on another thread while its front is being read.
//!
//! Reading is mostly checksums and page faults, and both parts of a mapped segment can have theirs at the
//! same time. The thread begins at a frame that the segment's index names and goes on to the end, or to
//! the first bytes that are not a whole frame. The reader does not wait for it: where it has been, the
//! reader only looks at frame headers; where it has not, the reader checks for itself.

use crate::{
    format::Seal,
    map::Map,
    recovery::{Found, scan},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
};

/// A smaller segment is read sooner than a thread is started.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// How often progress is told: often enough that the reader rarely checks what was checked already.
const STEP_BYTES: u64 = 64 << 10;

/// What another thread has checked of a segment.
#[derive(Debug)]
pub(crate) struct Ahead {
    progress: Arc<Progress>,
    start: u64,
    is_reached: bool,
}

#[derive(Debug)]
struct Progress {
    /// Every frame from the start up to here is whole.
    checked_to: AtomicU64,
    is_abandoned: AtomicBool,
}

impl Ahead {
    /// Begins to check the rear of a segment; `None` if that does not pay.
    pub(crate) fn begin(map: &Arc<Map>, seal: &Seal, salt: u32) -> Option<Self> {
        if seal.bytes < SEGMENT_BYTES_MIN {
            return None;
        }
        // The reader has to go over the rear as well, if lightly, so its own part is the smaller one.
        let middle = seal.bytes / 5 * 2;
        let start = seal.index.iter().find(|entry| entry.offset >= middle)?.offset;
        let checked_to = AtomicU64::new(start);
        let progress = Arc::new(Progress { checked_to, is_abandoned: AtomicBool::new(false) });
        let (map, told) = (Arc::clone(map), Arc::clone(&progress));
        thread::Builder::new().spawn(move || check(&map, start, salt, &told)).ok()?;
        Some(Self { progress, start, is_reached: false })
    }

    /// Whether the reader, now at `offset`, goes from frame to frame where the other thread did. Only then
    /// what one finds whole is what the other meets.
    #[inline]
    pub(crate) fn is_followed(&mut self, offset: u64) -> bool {
        self.is_reached |= offset == self.start;
        self.is_reached
    }

    /// Whether a frame that ends at `end` was checked, and is whole.
    #[inline]
    pub(crate) fn has_checked(&self, end: u64) -> bool {
        end <= self.progress.checked_to.load(Ordering::Acquire)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.progress.is_abandoned.store(true, Ordering::Relaxed);
    }
}

fn check(map: &Map, start: u64, salt: u32, progress: &Progress) {
    let mut bytes: &[u8] = map;
    let mut offset = start;
    let mut told = start;
    while let Ok(Found::Frame(header)) = scan(&mut bytes, offset, salt) {
        offset += header.frame_len() as u64;
        if offset - told >= STEP_BYTES {
            told = offset;
            progress.checked_to.store(offset, Ordering::Release);
            if progress.is_abandoned.load(Ordering::Relaxed) {
                return;
            }
        }
    }
    progress.checked_to.store(offset, Ordering::Release);
}
