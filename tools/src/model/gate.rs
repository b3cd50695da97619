//! A gate that delays a response until a test opens it, so that no test has to sleep.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Closed until [`open`](Self::open) is called; clones are the same gate.
#[derive(Debug, Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets all current and future waiters through.
    pub fn open(&self) {
        let (open, opened) = &*self.0;
        *open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        opened.notify_all();
    }

    /// Whether it has been opened.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gate is open, up to the limit; returns whether it is.
    pub fn wait(&self, limit: Duration) -> bool {
        let (open, opened) = &*self.0;
        let deadline = Instant::now() + limit;
        let mut guard = open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*guard {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            guard = opened.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}
