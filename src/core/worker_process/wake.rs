//! Wakes the worker after an append, without waiting.
//!
//! The result also shows whether a worker runs, so that a hook needs no other check. The datagram
//! contains the sender's version: an older worker exits, so that a newer one can start.

use std::{io, path::Path};

use crate::{
    os::{WakeListener, WakeSender, send_wakeup},
    worker_process::is_worker_running,
};

/// The wake socket in the data directory. The socket for messages is `worker.sock`.
pub const WAKE_SOCKET: &str = "worker.wake";

const VERSION: &[u8] = env!("CARGO_PKG_VERSION").as_bytes();

/// Notifies the worker through its wake socket that the log has grown, and returns whether there is
/// a worker. Without wake sockets the worker polls every second, and its lock shows that it runs.
pub fn wake(data: &Path) -> bool {
    send_wakeup(data, WAKE_SOCKET, VERSION).unwrap_or_else(|| is_worker_running(data))
}

/// Wakes the main loop from within the worker, whose working directory is the data directory.
#[derive(Debug)]
pub struct Waker(WakeSender);

impl Waker {
    pub fn new() -> io::Result<Self> {
        WakeSender::new(WAKE_SOCKET).map(Self)
    }

    /// Wakes the main loop.
    pub fn wake(&self) {
        self.0.send_wakeup(&[]);
    }

    /// Reports an append.
    pub fn grown(&self) {
        self.0.send_wakeup(VERSION);
    }
}

/// Creates the wake socket in the working directory.
pub fn listen_here() -> io::Result<WakeListener> {
    WakeListener::here(WAKE_SOCKET)
}
