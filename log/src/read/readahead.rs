//! Checking the rear of a segment on another thread while its front is being read.
//!
//! Reading is mostly checksums, and both halves of a segment can have theirs at the same time. The thread begins at a frame that the segment's index names, goes on to the end or to the
//! first bytes that are not a whole frame, and hands over the headers of the frames that are.

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

/// A smaller segment is read sooner than another thread wakes up.
const SEGMENT_BYTES_MIN: u64 = 4 << 20;
/// How many headers are handed over at a time.
const BATCH: usize = 512;
/// How many batches may wait: enough for half a segment of 1 KB records. The thread rests while they do.
const BATCHES_MAX: usize = 32;

/// A thread that checks, for as long as this is kept.
#[derive(Debug)]
pub(crate) struct Checker(Sender<Job>);

/// The headers of the frames in the rear of a segment, in order, each checked.
#[derive(Debug)]
pub(crate) struct Ahead {
    /// Where the next of them was found.
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
    /// Starts the thread; `None` if there cannot be one.
    pub(crate) fn start() -> Option<Self> {
        let (jobs, waiting) = mpsc::channel();
        let work = move || waiting.iter().for_each(|job: Job| check(&job));
        thread::Builder::new().spawn(work).ok()?;
        Some(Self(jobs))
    }

    /// Begins to check the rear of a segment; `None` if that does not pay.
    pub(crate) fn begin(&self, file: &Arc<dyn File>, seal: &Seal, salt: u32) -> Option<Ahead> {
        if seal.bytes < SEGMENT_BYTES_MIN {
            return None;
        }
        let start = seal.index.iter().find(|entry| entry.offset >= seal.bytes / 2)?.offset;
        let (send, batches) = mpsc::sync_channel(BATCHES_MAX);
        let job = Job { file: Arc::clone(file), start, salt, batches: send };
        self.0.send(job).ok()?;
        Some(Ahead { offset: start, batch: Vec::new().into_iter(), batches })
    }
}

impl Ahead {
    /// The header of the frame at `offset`, if the other thread went from frame to frame through there and
    /// found it whole. Waits for it if need be.
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

/// Ends as well when nobody wants the headers any more.
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
