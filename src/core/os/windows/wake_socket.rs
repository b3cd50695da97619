//! Wakes a thread of this process. Other processes cannot: the worker checks the log every second.

use std::{
    io,
    path::Path,
    sync::{Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Messages not yet received. A process has at most one wake socket.
static RINGS: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
static RUNG: Condvar = Condvar::new();

/// Maximum number of waiting messages; more of them carry no information.
const RINGS_MAX: usize = 64;

/// Unknown on Windows: see the module.
pub fn send_wakeup(_dir: &Path, _name: &str, _words: &[u8]) -> Option<bool> {
    None
}

/// Sends a message from within the process.
#[derive(Debug)]
pub struct WakeSender;

impl WakeSender {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it takes a socket")]
    pub fn new(_name: &'static str) -> io::Result<Self> {
        Ok(Self)
    }

    /// If the queue is full, enough messages are waiting.
    #[expect(clippy::unused_self, reason = "elsewhere it has a socket")]
    pub fn send_wakeup(&self, words: &[u8]) {
        let mut rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        if rings.len() < RINGS_MAX {
            rings.push(words.to_vec());
        }
        RUNG.notify_one();
    }
}

/// The receiver of wake messages.
#[derive(Debug)]
pub struct WakeListener;

impl WakeListener {
    #[expect(clippy::unnecessary_wraps, reason = "elsewhere it takes a socket")]
    pub fn here(_name: &str) -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for a message, up to the time limit.
    #[expect(clippy::unused_self, reason = "elsewhere it has a socket")]
    pub fn wait(&self, time_max: Duration) {
        let rings = RINGS.lock().unwrap_or_else(PoisonError::into_inner);
        drop(RUNG.wait_timeout_while(rings, time_max, |rings| rings.is_empty()));
    }

    /// The next message, if there is one: its length.
    #[expect(clippy::unused_self, reason = "elsewhere it has a socket")]
    pub fn take(&self, words: &mut [u8]) -> Option<usize> {
        let send_wakeup = RINGS.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
        let len = send_wakeup.len().min(words.len());
        words[..len].copy_from_slice(&send_wakeup[..len]);
        Some(len)
    }
}
