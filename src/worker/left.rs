//! Sessions that somebody does not want worked on, until something new happens in them.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Sessions that are remembered; the oldest marks give way.
const MARKS_MAX: usize = 1000;

/// Which sessions are left alone, and since when. It is gone with the process: what waits is in the log, and
/// the next worker takes it up.
#[derive(Debug, Default)]
pub(super) struct Left(Mutex<HashMap<String, u64>>);

impl Left {
    /// From now on nothing that happened in this session up to `now_us` is asked about.
    pub(super) fn add(&self, session: &str, now_us: u64) {
        let mut marks = self.lock();
        if marks.len() >= MARKS_MAX {
            let oldest =
                marks.iter().min_by_key(|(_, since)| **since).map(|(name, _)| name.clone());
            oldest.map(|oldest| marks.remove(&oldest));
        }
        marks.insert(session.into(), now_us);
    }

    /// Whether this session is left alone.
    pub(super) fn has(&self, session: &str) -> bool {
        self.lock().contains_key(session)
    }

    /// Whether this session is left alone, with something in it that waits since `newest_us`. If that is news,
    /// it is not left alone any longer.
    pub(super) fn keeps(&self, session: &str, newest_us: u64) -> bool {
        let mut marks = self.lock();
        let Some(since) = marks.get(session) else { return false };
        let is_news = newest_us > *since;
        if is_news {
            marks.remove(session);
        }
        !is_news
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn marks_do_not_pile_up() {
        let left = Left::default();
        for number in 0..=MARKS_MAX as u64 {
            left.add(&number.to_string(), number);
        }
        assert!(!left.has("0") && left.has("1") && left.has(&MARKS_MAX.to_string()));
    }
}
