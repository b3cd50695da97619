//! Reads records of an open file.
//!
//! They are read, not mapped: a truncated file is then an error instead of a crash.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    ops::Range,
    path::Path,
};

use claude_mem_log::system::FileExt as _;

use crate::{
    ModelId,
    format::{HEADER_BYTES, Header, Record},
};

/// Bytes read at once. They fit into the cache of one processor.
const PIECE_BYTES: usize = 256 * 1024;

/// The records of an opened file.
#[derive(Debug)]
pub(crate) struct Records {
    file: File,
    pub(crate) header: Header,
    /// Number of whole records when the file was opened.
    pub(crate) count: usize,
}

impl Records {
    /// Opens a file if it contains vectors of this model. 0 accepts any number of dimensions.
    pub(crate) fn open(
        path: &Path,
        model: &ModelId,
        dimensions: usize,
    ) -> io::Result<Option<Self>> {
        // Opening a FIFO would wait for a writer.
        let mut file = match fs::metadata(path) {
            Ok(found) if !found.is_file() => return Ok(None),
            Ok(_) => File::open(path)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let mut bytes = [0; HEADER_BYTES];
        match file.read_exact(&mut bytes) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let Some(header) = Header::decode(&bytes) else { return Ok(None) };
        if header.model != *model || (dimensions != 0 && header.dimensions != dimensions) {
            return Ok(None);
        }
        let length = (file.metadata()?.len() as usize).saturating_sub(HEADER_BYTES);
        Ok(Some(Self { file, header, count: length / header.record_bytes() }))
    }

    /// Reads single records, which were checked before.
    pub(crate) fn each(&self, numbers: &[u32], mut each: impl FnMut(Record<'_>)) -> io::Result<()> {
        let mut bytes = vec![0; self.header.record_bytes()];
        for number in numbers {
            self.read(*number as usize, &mut bytes)?;
            each(Record::unchecked(&bytes));
        }
        Ok(())
    }

    /// Reads consecutive records. `piece` gets the number of the first record in a piece, and the
    /// bytes of all records in it.
    pub(crate) fn each_piece(
        &self,
        records: Range<usize>,
        mut piece: impl FnMut(usize, &[u8]) -> io::Result<()>,
    ) -> io::Result<()> {
        let length = self.header.record_bytes();
        let count = (PIECE_BYTES / length).min(records.len());
        let mut buffer = vec![0; count * length];
        for first in records.clone().step_by(count.max(1)) {
            let bytes = &mut buffer[..count.min(records.end - first) * length];
            self.read(first, bytes)?;
            piece(first, bytes)?;
        }
        Ok(())
    }

    /// Fills a buffer with records from `first` on.
    fn read(&self, first: usize, buffer: &mut [u8]) -> io::Result<()> {
        let at = HEADER_BYTES + first * self.header.record_bytes();
        self.file.read_exact_at(buffer, at as u64)
    }
}
