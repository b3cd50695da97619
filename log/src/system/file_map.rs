//! Files mapped for reading.

#[cfg(target_os = "linux")]
use std::io;
use std::{fs::File, ops::Range};

use memmap2::Mmap;

/// A file mapped for reading. Only for files that nobody changes any more.
#[derive(Debug)]
pub struct FileMap(Mmap);

impl FileMap {
    /// Maps a file; `None` if it is empty, or if it has to be read. On Windows a mapped file cannot
    /// be deleted, and compaction deletes segments that others read.
    #[expect(unsafe_code, reason = "no system has a safe way to map a file")]
    pub(crate) fn new(file: &File) -> Option<Self> {
        if cfg!(windows) {
            return None;
        }
        // SAFETY: nothing writes to a sealed segment. Another program could; its bytes are checked
        // before use, and `is_readable` precedes every access.
        let map = unsafe { Mmap::map(file) }.ok()?;
        (!map.is_empty()).then_some(Self(map))
    }

    /// The length when it was mapped.
    pub(crate) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// The bytes of a range, as far as they exist.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<u64>) -> &[u8] {
        let end = range.end.min(self.len());
        &self.0[range.start.min(end) as usize..end as usize]
    }

    /// Reads a range from the disk. False if that fails: access to it would end the process
    /// (SIGBUS), where a read only fails. Kernels before Linux 5.14 and other systems cannot tell.
    pub(crate) fn is_readable(&self, range: &Range<u64>) -> bool {
        #[cfg(target_os = "linux")]
        {
            let (start, len) = (range.start as usize, (range.end - range.start) as usize);
            let read = self.0.advise_range(memmap2::Advice::PopulateRead, start, len);
            read.map_or_else(|error| error.kind() == io::ErrorKind::InvalidInput, |()| true)
        }
        #[cfg(not(target_os = "linux"))]
        {
            let _ = range;
            true
        }
    }
}
