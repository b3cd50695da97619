//! Lines from a client: limited in length, and only while the client is running.

use std::{
    io::{self, BufRead, Read, Stdin},
    time::Duration,
};

use claude_mem_core::os::{self, Parent};

/// Maximum length of a line. The longest memory fits many times.
pub(super) const LINE_BYTES_MAX: usize = 4 << 20;
/// How often to check whether the client is still running.
const PARENT_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum LineRead {
    /// A line is in the buffer, without its end.
    Line,
    /// A line was too long, and was skipped.
    TooLong,
    /// End of input.
    End,
}

/// Reads the next line into `buffer`. Never buffers more than the limit.
pub(super) fn next(
    stream: &mut impl BufRead,
    buffer: &mut Vec<u8>,
    bytes_max: usize,
) -> io::Result<LineRead> {
    buffer.clear();
    stream.by_ref().take(bytes_max as u64 + 1).read_until(b'\n', buffer)?;
    if buffer.pop_if(|last| *last == b'\n').is_some() {
        return Ok(LineRead::Line);
    }
    if buffer.len() > bytes_max {
        stream.skip_until(b'\n')?;
        return Ok(LineRead::TooLong);
    }
    Ok(if buffer.is_empty() { LineRead::End } else { LineRead::Line })
}

/// Stdin, until the client exits.
#[derive(Debug)]
pub(super) struct Client {
    stdin: Stdin,
    parent: Parent,
}

impl Client {
    pub(super) fn new() -> Self {
        Self { stdin: io::stdin(), parent: Parent::new() }
    }
}

impl Read for Client {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.parent.wait(&self.stdin, PARENT_POLL_INTERVAL)? {
            true => os::read(&self.stdin, buffer),
            false => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn read_all(text: &str) -> Vec<String> {
        // A small window, so that every line crosses its end.
        let mut stream = BufReader::with_capacity(3, text.as_bytes());
        let mut buffer = Vec::new();
        let mut lines = Vec::new();
        loop {
            match next(&mut stream, &mut buffer, 8).unwrap() {
                LineRead::Line => lines.push(String::from_utf8(buffer.clone()).unwrap()),
                LineRead::TooLong => lines.push(format!("too long, {} kept", buffer.len())),
                LineRead::End => return lines,
            }
        }
    }

    #[test]
    fn lines_up_to_the_limit_are_complete_and_longer_ones_are_skipped() {
        let text = "12345678\n123456789\n\nnext\n1234567890123456789\nlast";
        let expected = ["12345678", "too long, 9 kept", "", "next", "too long, 9 kept", "last"];
        assert_eq!(read_all(text), expected);
        assert_eq!(read_all("123456789"), ["too long, 9 kept"]);
        assert_eq!(read_all(""), [""; 0]);
    }
}
