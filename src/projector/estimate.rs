//! What asking will cost, before it is done.

use claude_mem_log::{Error, Log};

use super::{agent::Words, loaded::Loaded, plan::Plan};
use crate::agent::{Spent, price};

/// Of English and code a token is about four bytes.
pub(crate) const TOKEN_BYTES: u64 = 4;

/// What an answer to a question of usual size has.
const ANSWER_TOKENS: u64 = 600;

/// What a digest of the session so far has, when full.
const DIGEST_TOKENS: u64 = 600;

/// What a plan will take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    /// Events asked about.
    pub(crate) events: usize,
    /// Questions put.
    pub(crate) questions: usize,
    /// Of those, how many are put to a model.
    pub(crate) calls: usize,
    /// Tokens and money; no money if the model's price is not known.
    pub(crate) spent: Spent,
}

impl Estimate {
    /// Puts every question into words, and counts those.
    pub(crate) fn of(plan: &Plan, words: &Words, log: &Log) -> Result<Self, Error> {
        let (events, questions) = (plan.events(), plan.questions());
        let mut estimate = Self { events, questions, ..Self::default() };
        if words.are_free() {
            estimate.spent.cost_micros = Some(0);
            return Ok(estimate);
        }
        for session in &plan.sessions {
            for (index, planned) in session.questions.iter().enumerate() {
                let Some(loaded) = Loaded::read(log, planned)? else { continue };
                let has_past = index > 0 || !session.lines.is_empty();
                estimate.calls += 1;
                estimate.spent.tokens_in += tokens(words, &loaded);
                estimate.spent.tokens_in += if has_past { DIGEST_TOKENS } else { 0 };
                estimate.spent.tokens_out += ANSWER_TOKENS;
            }
        }
        estimate.spent.cost_micros = price(&words.model, &estimate.spent);
        Ok(estimate)
    }
}

fn tokens(words: &Words, loaded: &Loaded) -> u64 {
    let ask = words.ask(loaded, None, None);
    let bytes = ask.system.len() + ask.text.len() + ask.closing.len();
    (bytes as u64).div_ceil(TOKEN_BYTES)
}
