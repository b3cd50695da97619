//! Sends requests to the provider and keeps the agent's conversation about each session, so that
//! the next request of the session continues it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    prompt_set::{PromptSet, setup},
    providers::{self, Provider, Refusal, Request, Response, rules},
    recap::EarlierRow,
    turn_input::TurnInput,
    turn_prompt::Turn,
};
use claude_mem_core::app::App;

/// The memories of a session before the turn that is distilled.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EarlierMemories<'a> {
    /// As text, for a model.
    pub digest: Option<&'a str>,
    /// As data, for the rules.
    pub rows: &'a [EarlierRow<'a>],
}

/// The source of responses.
pub(crate) enum Responder {
    /// A model, and its conversation about each session.
    Provider(Box<dyn Provider>, Conversations),
    /// The built-in rules.
    Rules,
}

impl Responder {
    /// Opens the provider. Fails with one line about the wrong setting.
    pub(crate) fn open(app: &App, prompt_set: &PromptSet) -> Result<Self, Refusal> {
        if prompt_set.is_free() {
            return Ok(Self::Rules);
        }
        let provider = providers::open(&prompt_set.provider, &setup(app))?;
        Ok(Self::Provider(provider, Conversations::default()))
    }

    /// Sends the request for a turn and waits for the response. For the rules there is no request.
    pub(crate) fn distill(
        &self,
        prompt_set: &PromptSet,
        input: &TurnInput,
        earlier: &EarlierMemories<'_>,
        request: Option<&mut Request>,
    ) -> Result<Response, Refusal> {
        let (Self::Provider(provider, conversations), Some(request)) = (self, request) else {
            let turn = Turn { earlier: earlier.rows.to_vec(), ..input.turn(earlier.digest) };
            let (mode, verbosity) = prompt_set.rule_options();
            return Ok(rules::respond(&turn, mode, verbosity));
        };
        let session = &input.envelope.session;
        // A failed request ends the conversation. It is stored again only after a response.
        request.resume = conversations.take(session, input.number);
        let response =
            provider.send(request).map_err(|refusal| refusal.with_expected_cost(request))?;
        if let Some(id) = &response.memory_session_id {
            conversations.keep(session, id);
        }
        Ok(response)
    }
}

/// Limits memory, because the worker can run for months. A request without a conversation only
/// starts a new one.
const CONVERSATIONS_MAX: usize = 256;

/// Agent session ids by content session id. Conversations of an earlier process are never resumed.
#[derive(Debug, Default)]
pub(crate) struct Conversations(Mutex<HashMap<String, String>>);

impl Conversations {
    /// Removes the conversation about a session. Returns it if the request of this prompt continues
    /// it; the first prompt of a session continues nothing.
    fn take(&self, session: &str, prompt_number: u32) -> Option<String> {
        self.lock().remove(session).filter(|id| !id.is_empty() && prompt_number > 1)
    }

    /// Keeps the conversation about a session.
    fn keep(&self, session: &str, id: &str) {
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
    fn a_conversation_can_be_taken_once() {
        let all = Conversations::default();
        all.keep("session", "agent");
        assert_eq!(all.take("session", 2).as_deref(), Some("agent"));
        assert_eq!(all.take("session", 3), None);
    }

    #[test]
    fn a_conversation_continues_only_after_the_first_prompt() {
        let cases = [("agent", 0, None), ("agent", 1, None), ("agent", 2, Some("agent"))];
        for (id, prompt, expected) in cases.into_iter().chain([("", 2, None)]) {
            let all = Conversations::default();
            all.keep("session", id);
            assert_eq!(all.take("session", prompt).as_deref(), expected, "{id:?} {prompt}");
        }
    }

    #[test]
    fn the_number_of_conversations_is_limited() {
        let all = Conversations::default();
        for number in 0..10 * CONVERSATIONS_MAX {
            all.keep(&number.to_string(), "agent");
            assert!(all.lock().len() <= CONVERSATIONS_MAX);
            assert!(all.lock().contains_key(&number.to_string()));
        }
    }
}
