//! Following a growing log.

use crate::{Error, Item, Reader, Seq};
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Reads existing records, then waits for more.
#[derive(Debug)]
pub struct Tail {
    reader: Reader,
    waker: Waker,
}

/// Wakes a [`Tail`] when the log has grown. May be cloned and sent.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<(Mutex<bool>, Condvar)>);

impl Waker {
    /// Ends the current wait, or the next one.
    pub fn wake(&self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }

    fn wait(&self, time_max: Duration) -> bool {
        let awake = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.0.1.wait_timeout_while(awake, time_max, |awake| !*awake);
        let (mut awake, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
        *awake = false;
        !timeout.timed_out()
    }
}

impl Tail {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, waker: Waker::default() }
    }

    /// A handle that wakes this tail.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The next record or gap; `None` at the current end.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        self.reader.next()
    }

    /// Waits until woken, at most `time_max`. Without a waker that is the polling interval, and
    /// with one it bounds the cost of a lost wake-up. Returns whether it was woken.
    pub fn wait(&mut self, time_max: Duration) -> bool {
        self.waker.wait(time_max)
    }

    /// Where reading continues.
    pub fn position(&self) -> Seq {
        self.reader.position()
    }
}
