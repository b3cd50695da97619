//! Cancelled sessions: not distilled until something new happens in them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use claude_mem_distill::providers::Cancel;

/// Maximum number of cancelled sessions; the oldest are dropped.
const MARKS_MAX: usize = 1000;

/// Cancelled sessions, and since when. Kept in memory only: pending events are in the log, and the next
/// worker distills them.
#[derive(Debug, Default)]
pub(crate) struct CancelledSessions {
    marks: Mutex<HashMap<String, u64>>,
    /// Sessions with a request in progress.
    requests: Mutex<HashMap<String, Cancel>>,
}

impl CancelledSessions {
    /// Registers a request of this session; the result cancels it.
    pub(crate) fn begin(&self, session: &str) -> Cancel {
        let cancel = Cancel::default();
        self.requests().insert(session.into(), cancel.clone());
        // The session may have been cancelled since it was planned.
        if self.has(session) {
            cancel.cancel();
        }
        cancel
    }

    /// Unregisters the request of this session.
    pub(crate) fn end(&self, session: &str) {
        self.requests().remove(session);
    }

    /// Cancels a session: events up to `now_us` are not distilled, and a request in progress is
    /// cancelled.
    pub(crate) fn add(&self, session: &str, now_us: u64) {
        let mut marks = self.lock();
        if marks.len() >= MARKS_MAX {
            let oldest =
                marks.iter().min_by_key(|(_, since)| **since).map(|(name, _)| name.clone());
            oldest.map(|oldest| marks.remove(&oldest));
        }
        marks.insert(session.into(), now_us);
        drop(marks);
        if let Some(cancel) = self.requests().get(session) {
            cancel.cancel();
        }
    }

    /// Whether this session is cancelled.
    pub(crate) fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    /// Whether this session is cancelled, given that its newest pending event is from `newest_us`. A later
    /// event ends the cancellation.
    pub(crate) fn keeps(&self, session: &str, newest_us: u64) -> bool {
        let mut marks = self.lock();
        let Some(since) = marks.get(session) else { return false };
        let is_news = newest_us > *since;
        if is_news {
            marks.remove(session);
        }
        !is_news
    }

    /// Number of cancelled sessions.
    pub(crate) fn entries(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, Cancel>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_left_alone_until_something_new_happens_in_it() {
        let left = CancelledSessions::default();
        assert!(!left.keeps("s", 1));
        left.add("s", 5);
        assert!(left.has("s") && left.keeps("s", 5) && !left.keeps("t", 5));
        assert!(!left.keeps("s", 6));
        assert!(!left.has("s") && !left.keeps("s", 5));
    }

    #[test]
    fn a_request_under_way_is_cancelled_and_so_is_one_that_comes_too_late() {
        let left = CancelledSessions::default();
        let (first, other) = (left.begin("s"), left.begin("t"));
        left.add("s", 5);
        assert!(first.is_cancelled() && !other.is_cancelled());
        left.end("s");
        assert!(left.begin("s").is_cancelled());
    }

    #[test]
    fn marks_do_not_pile_up() {
        let left = CancelledSessions::default();
        for number in 0..=MARKS_MAX as u64 {
            left.add(&number.to_string(), number);
        }
        assert!(!left.has("0") && left.has("1") && left.has(&MARKS_MAX.to_string()));
    }
}
