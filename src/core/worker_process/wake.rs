//! Waking the worker: one ring after something was appended, not waited for.
//!
//! It also tells whether a worker is there, so that a hook needs no other check. What is sent is the sender's
//! version: a worker that hears of a newer program than its own makes room for it.

use std::{io, path::Path};

use crate::{
    os::{Bell, Ringer, ring},
    worker_process::is_worker_running,
};

/// The bell in the data directory. The socket for lines is `worker.sock`.
pub const BELL: &str = "worker.wake";

const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// Tells the worker that the log has grown. Says whether there is one. Where it cannot hear, it looks by itself
/// within a second, and its lock says that it is there.
pub fn wake(data: &Path) -> bool {
    ring(data, BELL, VERSION).unwrap_or_else(|| is_worker_running(data))
}

/// Wakes the projecting thread from within this process, which stands in the data directory.
#[derive(Debug)]
pub struct Waker(Ringer);

impl Waker {
    pub fn new() -> io::Result<Self> {
        Ringer::new(BELL).map(Self)
    }

    /// One of our own has something to say.
    pub fn wake(&self) {
        self.0.ring(&[]);
    }

    /// Something was appended for somebody else.
    pub fn grown(&self) {
        self.0.ring(VERSION);
    }
}

/// Listens for wake-ups in the directory that this process stands in.
pub fn listen_here() -> io::Result<Bell> {
    Bell::here(BELL)
}
