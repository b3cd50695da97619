//! `commitlog`: a file of checksummed messages and a memory-mapped index. Reading checks every
//! message.

use crate::{Outcome, Peer, Sum};
use commitlog::{CommitLog, LogOptions, ReadLimit, message::MessageBuf, message::MessageSet as _};
use std::path::Path;

pub(crate) struct Commitlog;

/// Far above its own default of 8 KB, which is slower.
const READ_BYTES: usize = 256 << 10;
const BATCH: usize = 256;

impl Peer for Commitlog {
    fn fill(&self, dir: &Path, payloads: &mut dyn Iterator<Item = Vec<u8>>) -> Outcome<()> {
        let mut log = open(dir)?;
        loop {
            let mut batch = MessageBuf::default();
            for payload in payloads.take(BATCH) {
                batch.push(payload).map_err(|error| format!("{error:?}"))?;
            }
            if batch.is_empty() {
                break;
            }
            log.append(&mut batch)?;
        }
        Ok(log.flush()?)
    }

    fn read(&self, dir: &Path) -> Outcome<Sum> {
        let log = open(dir)?;
        let mut sum = Sum::default();
        let mut offset = 0;
        loop {
            let messages = log.read(offset, ReadLimit::max_bytes(READ_BYTES))?;
            let mut count = 0;
            for message in messages.iter() {
                sum.add(message.payload());
                offset = message.offset() + 1;
                count += 1;
            }
            if count == 0 {
                return Ok(sum);
            }
        }
    }
}

fn open(dir: &Path) -> Outcome<CommitLog> {
    let mut options = LogOptions::new(dir);
    options.segment_max_bytes(64 << 20);
    options.index_max_items(100_000);
    Ok(CommitLog::new(options)?)
}
