//! What happens before the program's own first line.
//!
//! The standard library prepares for things that no hook needs: it looks up its own stack in
//! `/proc/self/maps`, sets up another one for overflows and watches for two signals. That takes a tenth of
//! the time of a program that does nothing, on every tool call. So the C library calls us directly, and
//! what matters of the rest is done here: nobody's first file becomes stdout, and a pipe that was closed is
//! an error to be handled. An overflow of the stack ends the program as before, without a word of its own.

use std::{
    ffi::{c_char, c_int},
    process,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{Mode, OFlags, open},
    stdio::{stderr, stdin, stdout},
};

/// Called by the C library, which hands the arguments to the standard library by itself.
#[unsafe(no_mangle)]
#[expect(unsafe_code, reason = "there is one `main`, and it is this one")]
extern "C" fn main(_: c_int, _: *const *const c_char) -> c_int {
    if !are_streams_open() {
        fill_streams();
    }
    ignore_closed_pipes();
    // Also writes what is left in the buffer of stdout.
    process::exit(crate::run().into())
}

/// Whether stdin, stdout and stderr are there: one call asks for all three.
fn are_streams_open() -> bool {
    let (stdin, stdout, stderr) = (stdin(), stdout(), stderr());
    let mut streams =
        [&stdin, &stdout, &stderr].map(|stream| PollFd::new(stream, PollFlags::empty()));
    let polled = poll(&mut streams, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    let is_open = |stream: &PollFd<'_>| !stream.revents().contains(PollFlags::NVAL);
    polled.is_ok() && streams.iter().all(is_open)
}

/// Takes the places of streams that are closed, lest the log be opened there and answered into. The
/// lowest free one is always given first, so three are enough and what is too much is closed again.
fn fill_streams() {
    while let Ok(filler) = open("/dev/null", OFlags::RDWR, Mode::empty()) {
        if std::os::fd::AsRawFd::as_raw_fd(&filler) > 2 {
            return;
        }
        std::mem::forget(filler);
    }
}

#[expect(unsafe_code, reason = "no other thread is there, and no handler is given")]
fn ignore_closed_pipes() {
    // SAFETY: ignoring a signal runs no code of ours. Programs that are started from here get it back.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}
