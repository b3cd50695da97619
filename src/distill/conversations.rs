//! The agent's conversation about each session, so that the next request of the session continues
//! it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The worker may run for months. A request without a conversation only starts a new one.
const CONVERSATIONS_MAX: usize = 256;

/// Agent session ids by content session id. Conversations of an earlier process are never resumed.
#[derive(Debug, Default)]
pub(crate) struct Conversations(Mutex<HashMap<String, String>>);

impl Conversations {
    /// Removes and returns the conversation about a session.
    pub(crate) fn take(&self, session: &str) -> Option<String> {
        self.lock().remove(session)
    }

    /// Keeps the conversation about a session.
    pub(crate) fn keep(&self, session: &str, id: &str) {
        let mut all = self.lock();
        if all.len() >= CONVERSATIONS_MAX {
            all.clear();
        }
        all.insert(session.to_owned(), id.to_owned());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_given_out_once() {
        let all = Conversations::default();
        all.keep("session", "agent");
        assert_eq!(all.take("session").as_deref(), Some("agent"));
        assert_eq!(all.take("session"), None);
    }

    #[test]
    fn their_number_is_bounded_and_the_latest_is_kept() {
        let all = Conversations::default();
        for number in 0..10 * CONVERSATIONS_MAX {
            all.keep(&number.to_string(), "agent");
            assert!(all.lock().len() <= CONVERSATIONS_MAX);
            assert!(all.lock().contains_key(&number.to_string()));
        }
    }
}
