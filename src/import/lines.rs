//! Reads the lines of a file of any size, in bounded memory.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

use claude_mem_core::os::OpenOptionsExt as _;

use memchr::memchr;

/// Longer lines are skipped. An event is below 16 MB, and escapes make it at most six times as
/// long.
const LINE_BYTES_MAX: usize = 96 << 20;
const BLOCK_BYTES: usize = 1 << 20;

/// One line, without its terminator.
#[derive(Debug, PartialEq)]
pub(super) struct Line<'a> {
    /// `None` if it is too long.
    pub(super) bytes: Option<&'a [u8]>,
    /// Whether it is terminated. The last one may still be written.
    pub(super) is_ended: bool,
}

/// The lines of a file, in order.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    bytes: Vec<u8>,
    /// Buffered bytes not yet returned: `bytes[start..end]`.
    start: usize,
    end: usize,
    line_bytes_max: usize,
    pub(super) read: u64,
}

impl Lines<File> {
    /// Does not block on a pipe or a device.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).no_wait().open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
        }
        Ok(Self::new(file, LINE_BYTES_MAX))
    }
}

impl<R: Read> Lines<R> {
    fn new(from: R, line_bytes_max: usize) -> Self {
        Self { from, bytes: Vec::new(), start: 0, end: 0, line_bytes_max, read: 0 }
    }

    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let (mut searched, mut is_too_long) = (0, false);
        loop {
            let unseen = &self.bytes[self.start + searched..self.end];
            if let Some(found) = memchr(b'\n', unseen) {
                let line = self.start..self.start + searched + found;
                self.start = line.end + 1;
                let bytes = (!is_too_long).then(|| &self.bytes[line]);
                return Ok(Some(Line { bytes, is_ended: true }));
            }
            searched = self.end - self.start;
            if searched > self.line_bytes_max {
                is_too_long = true;
                (self.start, self.end, searched) = (0, 0, 0);
            }
            if self.fill()? == 0 {
                let line = self.start..self.end;
                if line.is_empty() && !is_too_long {
                    return Ok(None);
                }
                (self.start, self.end) = (0, 0);
                let bytes = (!is_too_long).then(|| &self.bytes[line]);
                return Ok(Some(Line { bytes, is_ended: false }));
            }
        }
    }

    /// Appends to the buffer.
    fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        // A long line is read in growing blocks, so that each byte is scanned once.
        let wanted = self.end + BLOCK_BYTES;
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        loop {
            match self.from.read(&mut self.bytes[self.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => {
                    let count = read?;
                    self.end += count;
                    self.read += count as u64;
                    return Ok(count);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8], line_bytes_max: usize) -> Vec<(Option<Vec<u8>>, bool)> {
        let mut lines = Lines::new(text, line_bytes_max);
        let mut found = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            found.push((line.bytes.map(<[u8]>::to_vec), line.is_ended));
        }
        assert_eq!(lines.read, text.len() as u64);
        found
    }

    #[test]
    fn every_line_is_read_once_even_without_a_final_line_break() {
        assert_eq!(read(b"", 9), []);
        let whole = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(
            read(b"a\n\nb", 9),
            [(whole("a"), true), (whole(""), true), (whole("b"), false)]
        );
        let long = "x".repeat(3 * BLOCK_BYTES);
        let text = format!("{long}\ny\n");
        assert_eq!(
            read(text.as_bytes(), 4 * BLOCK_BYTES),
            [(whole(&long), true), (whole("y"), true)]
        );
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_in_bounded_memory() {
        let text = format!("{}\nnext\n", "x".repeat(10 * BLOCK_BYTES));
        let mut lines = Lines::new(text.as_bytes(), BLOCK_BYTES);
        assert_eq!(lines.next().unwrap(), Some(Line { bytes: None, is_ended: true }));
        assert_eq!(lines.next().unwrap().unwrap().bytes, Some(&b"next"[..]));
        assert_eq!(lines.next().unwrap(), None);
        assert!(lines.bytes.len() <= 3 * BLOCK_BYTES, "{}", lines.bytes.len());
        assert_eq!(read(&vec![b'x'; 5 * BLOCK_BYTES], BLOCK_BYTES), [(None, false)]);
    }
}
