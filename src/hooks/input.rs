//! Reading stdin to its end, but not for ever and not without bound.

use std::{
    io,
    time::{Duration, Instant},
};

use rustix::{
    buffer::spare_capacity,
    event::{PollFd, PollFlags, Timespec, poll},
};

/// The largest input ever seen from a client is some 2 MB for a file of 1 MB. Above this, what follows
/// is read and thrown away, so that whoever writes it is not left with a broken pipe.
const BYTES_MAX: usize = 64 << 20;
/// Nobody who has something to say pauses for so long.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// A writer that dribbles is not waited for beyond this: Claude Code gives a hook five seconds.
const TIME_MAX: Duration = Duration::from_secs(4);
/// What a pipe holds unless somebody made it larger.
const PIPE_BYTES: usize = 64 << 10;

/// What was on stdin.
#[derive(Debug, Default)]
pub(super) struct Input {
    /// As much of it as is kept.
    pub(super) bytes: Vec<u8>,
    /// How much there was.
    pub(super) len: u64,
    /// Why `bytes` is not all of it, if so.
    pub(super) cut: Option<&'static str>,
}

/// Reads stdin until its end, a silence, or a bound.
pub(super) fn read() -> Input {
    read_from(&io::stdin())
}

fn read_from(source: &impl rustix::fd::AsFd) -> Input {
    let mut input = Input { bytes: Vec::with_capacity(PIPE_BYTES), len: 0, cut: None };
    let begun = Instant::now();
    loop {
        if begun.elapsed() > TIME_MAX || !is_ready(source) {
            input.cut = Some("its end did not come in time");
            return input;
        }
        match input.read_some(source) {
            Ok(0) => return input,
            Ok(_) | Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => {}
            Err(_) => {
                input.cut = Some("it could not be read to its end");
                return input;
            }
        }
    }
}

/// Waits until there is something to read, or the end.
fn is_ready(source: &impl rustix::fd::AsFd) -> bool {
    let mut watched = [PollFd::new(source, PollFlags::IN)];
    let time_max = Timespec { tv_sec: SILENCE_MAX.as_secs() as i64, tv_nsec: 0 };
    match poll(&mut watched, Some(&time_max)) {
        Ok(count) => count > 0,
        // Interrupted, or not a thing that can be polled: reading will tell.
        Err(_) => true,
    }
}

impl Input {
    fn read_some(&mut self, source: &impl rustix::fd::AsFd) -> rustix::io::Result<usize> {
        if self.bytes.len() >= BYTES_MAX {
            let count = rustix::io::read(source, &mut [0; 16 << 10][..])?;
            self.len += count as u64;
            if count > 0 {
                self.cut = Some("it is too long");
            }
            return Ok(count);
        }
        if self.bytes.len() == self.bytes.capacity() {
            // Fourfold, because each time all of it may have to be moved. From 64 KB on this comes to
            // exactly the most there may be.
            self.bytes.reserve_exact(3 * self.bytes.len());
        }
        // Into room that nobody has written to: clearing it first would cost more than reading does.
        let read = rustix::io::read(source, spare_capacity(&mut self.bytes));
        let count = *read.as_ref().unwrap_or(&0);
        self.len += count as u64;
        read
    }
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
    fn everything_is_read_in_order_whatever_its_length() {
        for len in [0, 1, PIPE_BYTES - 1, PIPE_BYTES, 3 * PIPE_BYTES + 7, 5 << 20] {
            let text: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let copy = text.clone();
            let input = piped(move |writer| writer.write_all(&copy).unwrap());
            assert!(input.bytes == text && input.len == len as u64 && input.cut.is_none(), "{len}");
        }
    }

    #[test]
    fn what_is_too_long_is_read_to_the_end_and_kept_up_to_the_bound() {
        let input = piped(|writer| {
            for _ in 0..70 {
                writer.write_all(&vec![b'x'; 1 << 20]).unwrap();
            }
        });
        assert_eq!((input.bytes.len(), input.len), (BYTES_MAX, 70 << 20));
        assert_eq!(input.cut, Some("it is too long"));
    }

    #[test]
    fn a_writer_that_never_ends_is_not_waited_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"{}").unwrap();
        let input = read_from(&reader);
        assert_eq!((input.bytes, input.cut), (b"{}".into(), Some("its end did not come in time")));
        drop(writer);
    }
}
