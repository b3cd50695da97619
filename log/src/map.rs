//! Files as memory. The only `unsafe` in the project, and why it is sound.

use std::{fs, io, ops::Deref};

/// A file mapped for reading.
///
/// Made only for segments that nobody appends to any more. Such files are never truncated and never
/// rewritten in place: compaction writes a new file and takes the old name away, which leaves the
/// mapping as it was. So the bytes under a `Map` do not change, and touching them does not fault.
#[derive(Debug)]
pub struct Map(memmap2::Mmap);

impl Map {
    #[expect(unsafe_code, reason = "see the type: the file is complete and stays as it is")]
    pub(crate) fn of(file: &fs::File) -> io::Result<Self> {
        // SAFETY: the invariant of the type.
        let map = unsafe { memmap2::Mmap::map(file) }?;
        crate::system::advise_sequential(&map);
        Ok(Self(map))
    }
}

impl Deref for Map {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}
