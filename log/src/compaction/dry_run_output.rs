//! A file that discards its content, to measure its size.

use crate::disk::{AppendResult, File, Lock};
use std::{
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

/// Counts the bytes written.
#[derive(Debug, Default)]
pub(super) struct DryRunOutput(AtomicU64);

impl File for DryRunOutput {
    fn append(&self, bytes: &[u8]) -> io::Result<AppendResult> {
        let end = self.0.fetch_add(bytes.len() as u64, Relaxed) + bytes.len() as u64;
        Ok(AppendResult { bytes: bytes.len(), end })
    }

    fn write_at(&self, _bytes: &[u8], _offset: u64) -> io::Result<()> {
        Ok(())
    }

    fn read_at(&self, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
        Ok(0)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.load(Relaxed))
    }

    fn inode(&self) -> io::Result<u64> {
        Ok(0)
    }

    fn sync(&self) -> io::Result<()> {
        Ok(())
    }

    fn try_lock(&self, _lock: Lock) -> io::Result<bool> {
        Ok(true)
    }

    fn unlock(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, _len: u64) -> io::Result<()> {
        Ok(())
    }

    fn is_shared_over_network(&self) -> bool {
        false
    }
}
