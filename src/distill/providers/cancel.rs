//! Cancels a request to a provider from another thread.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use claude_mem_events::FailureClass;

use super::{Concern, Refusal};

/// Cancels every request that carries a clone of it.
#[derive(Clone, Default)]
pub struct Cancel(Arc<State>);

#[derive(Default)]
struct State {
    is_cancelled: AtomicBool,
    /// Interrupts the blocking call in progress.
    interrupt: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Cancel {
    /// Ends the request in flight and prevents further ones.
    pub fn cancel(&self) {
        self.0.is_cancelled.store(true, Ordering::SeqCst);
        let interrupt = self.interrupt().take();
        if let Some(interrupt) = interrupt {
            interrupt();
        }
    }

    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::SeqCst)
    }

    /// Runs a blocking call. A cancellation calls `interrupt`, which must make `work` return soon.
    pub(super) fn during<T>(
        &self,
        interrupt: impl FnOnce() + Send + 'static,
        work: impl FnOnce() -> T,
    ) -> T {
        *self.interrupt() = Some(Box::new(interrupt));
        // The cancellation may have come before `interrupt` was stored.
        if self.is_cancelled() {
            self.cancel();
        }
        let done = work();
        *self.interrupt() = None;
        done
    }

    /// The error of a cancelled request.
    pub fn refusal() -> Refusal {
        let why = "cancelled: the session was deleted";
        Refusal { concern: Concern::Request, ..Refusal::new(FailureClass::Transient, why) }
    }

    fn interrupt(&self) -> MutexGuard<'_, Option<Box<dyn FnOnce() + Send>>> {
        self.0.interrupt.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn a_blocking_call_is_interrupted_even_if_cancelled_before() {
        for is_before in [true, false] {
            let cancel = Cancel::default();
            let (sender, receiver) = mpsc::channel();
            if is_before {
                cancel.cancel();
            }
            let other = cancel.clone();
            let work = || {
                if !is_before {
                    std::thread::spawn(move || other.cancel());
                }
                receiver.recv()
            };
            assert_eq!(cancel.during(move || sender.send(()).unwrap(), work), Ok(()));
            assert!(cancel.is_cancelled());
        }
    }
}
