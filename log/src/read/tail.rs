//! Following a growing log.

use crate::{Error, Item, Reader, Seq};
use std::{
    sync::{Arc, Condvar, Mutex, PoisonError},
    time::Duration,
};

/// Reads what is there, then waits for more.
#[derive(Debug)]
pub struct Tail {
    reader: Reader,
    waker: Waker,
}

/// Tells a [`Tail`] that the log has grown, so that it need not poll. May be cloned and sent.
#[derive(Debug, Clone, Default)]
pub struct Waker(Arc<(Mutex<bool>, Condvar)>);

impl Waker {
    /// Ends the current wait, or the next one if nobody waits now.
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

    /// A handle that ends this tail's waiting.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The next record or gap; `None` at the end of what there is now.
    #[expect(clippy::should_implement_trait, reason = "the item borrows from the reader")]
    pub fn next(&mut self) -> Result<Option<Item<'_>>, Error> {
        self.reader.next()
    }

    /// Waits until woken, but no longer than `time_max`. Where nobody wakes us this is the polling
    /// interval, and where somebody does it bounds what a lost wake-up costs. Says whether it was woken.
    pub fn wait(&mut self, time_max: Duration) -> bool {
        self.waker.wait(time_max)
    }

    /// Where reading goes on.
    pub fn position(&self) -> Seq {
        self.reader.position()
    }
}
