//! `okaywal`: a write-ahead log that is read once, when it is opened.

use crate::{Outcome, Peer, Sum};
use okaywal::{
    Configuration, Entry, EntryId, LogManager, ReadChunkResult, SegmentReader, WriteAheadLog,
};
use std::{
    io::{self, Read as _},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

pub(crate) struct Okaywal;

/// Each entry is synced, so one entry has many records.
const BATCH: usize = 4096;

impl Peer for Okaywal {
    fn fill(&self, dir: &Path, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<()> {
        let log = open(dir, Adding::default())?;
        let mut payloads = payloads.peekable();
        while payloads.peek().is_some() {
            let mut entry = log.begin_entry()?;
            for payload in payloads.by_ref().take(BATCH) {
                entry.write_chunk(&payload)?;
            }
            entry.commit()?;
        }
        Ok(log.shutdown()?)
    }

    fn read(&self, dir: &Path) -> Outcome<Sum> {
        let adding = Adding::default();
        let sum = Arc::clone(&adding.sum);
        let log = open(dir, adding)?;
        let sum = *sum.lock().unwrap_or_else(PoisonError::into_inner);
        // Closing is not part of reading, and would release the log's space.
        std::mem::forget(log);
        Ok(sum)
    }
}

fn open(dir: &Path, adding: Adding) -> io::Result<WriteAheadLog> {
    // One file that is never released, and a buffer as large as ours.
    let never = u64::MAX;
    Configuration::default_for(dir)
        .checkpoint_after_bytes(never)
        .buffer_bytes(256 << 10)
        .open(adding)
}

/// Adds up the recovered entries, with one buffer.
#[derive(Debug, Default)]
struct Adding {
    sum: Arc<Mutex<Sum>>,
    payload: Vec<u8>,
}

impl LogManager for Adding {
    fn recover(&mut self, entry: &mut Entry<'_>) -> io::Result<()> {
        while let ReadChunkResult::Chunk(mut chunk) = entry.read_chunk()? {
            self.payload.resize(chunk.bytes_remaining() as usize, 0);
            chunk.read_exact(&mut self.payload)?;
            if !chunk.check_crc()? {
                return Err(io::ErrorKind::InvalidData.into());
            }
            self.sum.lock().unwrap_or_else(PoisonError::into_inner).add(&self.payload);
        }
        Ok(())
    }

    fn checkpoint_to(
        &mut self,
        _: EntryId,
        _: &mut SegmentReader,
        _: &WriteAheadLog,
    ) -> io::Result<()> {
        Err(io::Error::other("nothing is ever given back here"))
    }
}
