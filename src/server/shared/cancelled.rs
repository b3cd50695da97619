//! Sessions that somebody does not want worked on, until something new happens in them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use claude_mem_distill::providers::Cancel;

/// Sessions that are remembered; the oldest marks give way.
const MARKS_MAX: usize = 1000;

/// Which sessions are left alone, and since when. It is gone with the process: what waits is in the log, and
/// the next worker takes it up.
#[derive(Debug, Default)]
pub(crate) struct Left {
    marks: Mutex<HashMap<String, u64>>,
    /// Sessions with a request to the agent under way.
    requests: Mutex<HashMap<String, Cancel>>,
}

impl Left {
    /// A request about this session begins; what this returns cancels it.
    pub(crate) fn begin(&self, session: &str) -> Cancel {
        let cancel = Cancel::default();
        self.requests().insert(session.into(), cancel.clone());
        // The session may have been deleted since it was planned.
        if self.has(session) {
            cancel.cancel();
        }
        cancel
    }

    /// The request about this session is over.
    pub(crate) fn end(&self, session: &str) {
        self.requests().remove(session);
    }

    /// From now on nothing that happened in this session up to `now_us` is asked about. A request under way is
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

    /// Whether this session is left alone.
    pub(crate) fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    /// Whether this session is left alone, with something in it that waits since `newest_us`. If that is news,
    /// it is not left alone any longer.
    pub(crate) fn keeps(&self, session: &str, newest_us: u64) -> bool {
        let mut marks = self.lock();
        let Some(since) = marks.get(session) else { return false };
        let is_news = newest_us > *since;
        if is_news {
            marks.remove(session);
        }
        !is_news
    }

    /// How many sessions are marked.
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
        let left = Left::default();
        assert!(!left.keeps("s", 1));
        left.add("s", 5);
        assert!(left.has("s") && left.keeps("s", 5) && !left.keeps("t", 5));
        assert!(!left.keeps("s", 6));
        assert!(!left.has("s") && !left.keeps("s", 5));
    }

    #[test]
    fn a_request_under_way_is_cancelled_and_so_is_one_that_comes_too_late() {
        let left = Left::default();
        let (first, other) = (left.begin("s"), left.begin("t"));
        left.add("s", 5);
        assert!(first.is_cancelled() && !other.is_cancelled());
        left.end("s");
        assert!(left.begin("s").is_cancelled());
    }

    #[test]
    fn marks_do_not_pile_up() {
        let left = Left::default();
        for number in 0..=MARKS_MAX as u64 {
            left.add(&number.to_string(), number);
        }
        assert!(!left.has("0") && left.has("1") && left.has(&MARKS_MAX.to_string()));
    }
}
