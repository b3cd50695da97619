//! Reads a hook's stdin to its end, within limits of time and size.

use std::{
    io,
    time::{Duration, Instant},
};

use claude_mem_core::os::{self, Source};

/// The largest payload seen from a client is about 2 MB, for a file of 1 MB. Bytes beyond this
/// limit are read and discarded, so that the writer does not get a broken pipe.
const BYTES_MAX: usize = 64 << 20;
/// The longest pause within a payload.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// The limit for a slow writer: Claude Code gives a hook five seconds.
const TIME_MAX: Duration = Duration::from_secs(4);
/// The default size of a pipe's buffer.
const PIPE_BYTES: usize = 64 << 10;

/// A payload as read from stdin.
#[derive(Debug)]
pub struct Input {
    /// The part that is kept.
    pub(super) bytes: Vec<u8>,
    /// The total length.
    pub(super) len: u64,
    /// Why `bytes` is not complete.
    pub(super) cut: Option<&'static str>,
}

/// Reads once and appends, without clearing the buffer first.
fn read_more(source: &impl Source, bytes: &mut Vec<u8>) -> io::Result<usize> {
    if bytes.len() == bytes.capacity() {
        // More data follows. With a larger pipe the writer does not wait after every 64 KB.
        os::widen(source);
        // 64 KB times a power of four is exactly the maximum.
        bytes.reserve_exact(3 * bytes.len());
    }
    os::read_behind(source, bytes)
}

/// Reads stdin until its end, a pause, or a limit.
pub fn read() -> Input {
    read_from(&os::stdin())
}

fn read_from(source: &impl Source) -> Input {
    let mut input = Input { bytes: Vec::with_capacity(PIPE_BYTES), len: 0, cut: None };
    let begun = Instant::now();
    loop {
        if begun.elapsed() > TIME_MAX || !os::is_ready(source, SILENCE_MAX) {
            input.cut = Some("its end did not arrive in time");
            return input;
        }
        match input.read_some(source) {
            Ok(0) => return input,
            Ok(_) => {}
            Err(error) if is_passing(&error) => {}
            Err(_) => {
                input.cut = Some("it could not be read to its end");
                return input;
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock)
}

impl Input {
    /// The part that is kept.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    #[cfg(test)]
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.to_vec(), len: bytes.len() as u64, cut: None }
    }

    fn read_some(&mut self, source: &impl Source) -> io::Result<usize> {
        if self.bytes.len() >= BYTES_MAX {
            let count = discard_some(source)?;
            self.len += count as u64;
            if count > 0 {
                self.cut = Some("it is too long");
            }
            return Ok(count);
        }
        let count = read_more(source, &mut self.bytes)?;
        self.len += count as u64;
        Ok(count)
    }
}

/// Reads once and discards. A separate function, so that its buffer is not on the stack of every
/// hook.
#[cold]
#[inline(never)]
fn discard_some(source: &impl Source) -> io::Result<usize> {
    os::read(source, &mut [0; 16 << 10][..])
}

#[cfg(test)]
mod tests {
    use std::{io::Write, thread};

    use super::*;

    fn piped(write: impl FnOnce(&mut io::PipeWriter) + Send + 'static) -> Input {
        let (reader, mut writer) = io::pipe().unwrap();
        let writing = thread::spawn(move || write(&mut writer));
        let input = read_from(&reader);
        writing.join().unwrap();
        input
    }

    #[test]
    fn payloads_of_any_length_are_read_in_order() {
        for len in [0, 1, PIPE_BYTES - 1, PIPE_BYTES, 3 * PIPE_BYTES + 7, 5 << 20] {
            let text: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let copy = text.clone();
            let input = piped(move |writer| writer.write_all(&copy).unwrap());
            assert!(
                *input.bytes == *text && input.len == len as u64 && input.cut.is_none(),
                "{len}"
            );
        }
    }

    #[test]
    fn an_oversized_payload_is_read_to_its_end_and_truncated() {
        let input = piped(|writer| {
            for _ in 0..70 {
                writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
            }
        });
        assert_eq!((input.bytes.len(), input.len), (BYTES_MAX, 70 << 20));
        assert_eq!(input.cut, Some("it is too long"));
    }

    #[test]
    fn an_endless_writer_does_not_block_the_hook() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"{}").unwrap();
        let input = read_from(&reader);
        assert_eq!(
            (&*input.bytes, input.cut),
            (&b"{}"[..], Some("its end did not arrive in time"))
        );
        drop(writer);
    }
}
