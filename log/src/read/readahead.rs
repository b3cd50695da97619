//! Read-ahead: verifies the second half of a segment in another thread while the first half is
//! read.
//!
//! Reading is mostly checksums, and both halves of a segment can be verified at once. The thread
//! starts at a frame named by the segment's index, stops at the end or at the first damaged frame,
//! and sends the headers of intact frames.

use crate::{
    disk::File,
    format::{FrameHeader, Seal},
    read::segment::Buffered,
    recovery::{ScanResult, scan},
};
use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender, SyncSender},
    },
    thread, vec,
};

/// A smaller segment is read before another thread has started.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// Headers sent at once.
const BATCH: usize = 512;
/// Maximum number of queued batches: half a segment of 1 KB records.
const BATCHES_MAX: usize = 32;

/// The verifying thread; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Checker(Sender<Job>);

/// Verified frame headers of the second half of a segment, in order.
#[derive(Debug)]
pub(crate) struct VerifiedAhead {
    /// The offset of the next one.
    offset: u64,
    batch: vec::IntoIter<FrameHeader>,
    batches: Receiver<Vec<FrameHeader>>,
}

#[derive(Debug)]
struct Job {
    file: Arc<dyn File>,
    start: u64,
    salt: u32,
    batches: SyncSender<Vec<FrameHeader>>,
}

impl Checker {
    /// Starts the thread; `None` if that fails.
    pub(crate) fn start() -> Option<Self> {
        let (jobs, waiting) = mpsc::channel();
        let work = move || waiting.iter().for_each(|job: Job| check(&job));
        thread::Builder::new().spawn(work).ok()?;
        Some(Self(jobs))
    }

    /// Starts verifying the second half of a segment; `None` if it is too small.
    pub(crate) fn begin(
        &self,
        file: &Arc<dyn File>,
        seal: &Seal,
        salt: u32,
    ) -> Option<VerifiedAhead> {
        if seal.bytes < SEGMENT_BYTES_MIN {
            return None;
        }
        let start = seal.index.iter().find(|entry| entry.offset >= seal.bytes / 2)?.offset;
        let (send, batches) = mpsc::sync_channel(BATCHES_MAX);
        let job = Job { file: Arc::clone(file), start, salt, batches: send };
        self.0.send(job).ok()?;
        Some(VerifiedAhead { offset: start, batch: Vec::new().into_iter(), batches })
    }
}

impl VerifiedAhead {
    /// The header of the frame at `offset`, if the other thread reached and verified it. Waits for
    /// it if necessary.
    #[inline]
    pub(crate) fn next(&mut self, offset: u64) -> Option<FrameHeader> {
        if offset != self.offset {
            return None;
        }
        let header = match self.batch.next() {
            Some(header) => header,
            None => self.next_batch()?,
        };
        self.offset += header.frame_len() as u64;
        Some(header)
    }

    fn next_batch(&mut self) -> Option<FrameHeader> {
        self.batch = self.batches.recv().ok()?.into_iter();
        self.batch.next()
    }
}

/// Also ends when the receiver is gone.
fn check(job: &Job) {
    let mut bytes = Buffered::new(Arc::clone(&job.file));
    let mut offset = job.start;
    loop {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH
            && let Ok(ScanResult::Frame(header)) = scan(&mut bytes, offset, job.salt)
        {
            offset += header.frame_len() as u64;
            batch.push(header);
        }
        let is_last = batch.len() < BATCH;
        if job.batches.send(batch).is_err() || is_last {
            return;
        }
    }
}
