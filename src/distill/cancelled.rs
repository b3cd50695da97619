//! Cancels requests of sessions.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::providers::Cancel;

/// Maximum number of cancelled sessions; the oldest are dropped.
const MARKS_MAX: usize = 1000;

/// Cancelled sessions, and since when. In memory only: they stop a request that was planned before
/// the cancellation was folded. Then the rows say that the session has failed.
#[derive(Debug, Default)]
pub struct CancelledSessions {
    marks: Mutex<HashMap<String, u64>>,
    /// Sessions with a request in progress.
    requests: Mutex<HashMap<String, Cancel>>,
}

impl CancelledSessions {
    /// Registers a request of this session; the result cancels it.
    pub fn begin(&self, session: &str) -> Cancel {
        let cancel = Cancel::default();
        self.requests().insert(session.into(), cancel.clone());
        // The session may have been cancelled since it was planned.
        if self.has(session) {
            cancel.cancel();
        }
        cancel
    }

    /// Unregisters the request of this session.
    pub fn end(&self, session: &str) {
        self.requests().remove(session);
    }

    /// Cancels a session: events up to `now_us` are not distilled, and a request in progress is
    /// cancelled.
    pub fn add(&self, session: &str, now_us: u64) {
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
    pub fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    /// Whether this session is cancelled, given that its newest pending event is from `newest_us`.
    /// A later event ends the cancellation.
    pub fn keeps(&self, session: &str, newest_us: u64) -> bool {
        let mut marks = self.lock();
        let Some(since) = marks.get(session) else { return false };
        let is_news = newest_us > *since;
        if is_news {
            marks.remove(session);
        }
        !is_news
    }

    /// Number of cancelled sessions.
    pub fn entries(&self) -> usize {
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
    fn a_session_stays_cancelled_until_its_next_event() {
        let cancelled = CancelledSessions::default();
        assert!(!cancelled.keeps("s", 1));
        cancelled.add("s", 5);
        assert!(cancelled.has("s") && cancelled.keeps("s", 5) && !cancelled.keeps("t", 5));
        assert!(!cancelled.keeps("s", 6));
        assert!(!cancelled.has("s") && !cancelled.keeps("s", 5));
    }

    #[test]
    fn running_and_later_requests_of_a_session_are_cancelled() {
        let cancelled = CancelledSessions::default();
        let (first, other) = (cancelled.begin("s"), cancelled.begin("t"));
        cancelled.add("s", 5);
        assert!(first.is_cancelled() && !other.is_cancelled());
        cancelled.end("s");
        assert!(cancelled.begin("s").is_cancelled());
    }

    #[test]
    fn the_number_of_cancelled_sessions_is_limited() {
        let cancelled = CancelledSessions::default();
        for number in 0..=MARKS_MAX as u64 {
            cancelled.add(&number.to_string(), number);
        }
        assert!(!cancelled.has("0") && cancelled.has("1") && cancelled.has(&MARKS_MAX.to_string()));
    }
}
