//! A gate that delays a response until a test opens it, so that no test has to sleep.

use std::sync::{Arc, Condvar, Mutex, PoisonError};

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

    /// Waits until it is open.
    pub fn wait(&self) {
        let (open, opened) = &*self.0;
        let open = open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(opened.wait_while(open, |open| !*open));
    }
}
