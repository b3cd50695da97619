//! What asking will cost, before it is done.

use claude_mem_log::{Error, Log};

use crate::providers::{Spent, price};
use crate::{asker::Words, plan::Plan, turn_input::Loaded};

/// What a digest of the session so far has, when full.
const DIGEST_TOKENS: u64 = 600;

/// What a plan will take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Events asked about.
    pub events: usize,
    /// Questions put.
    pub questions: usize,
    /// Of those, how many are put to a model.
    pub calls: usize,
    /// Tokens and money; no money if the model's price is not known.
    pub spent: Spent,
}

impl Estimate {
    /// Puts every question into words, and counts those.
    pub fn of(plan: &Plan, words: &Words, log: &Log) -> Result<Self, Error> {
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
                estimate.spent.add(&words.ask(&loaded, None, None).expected());
                estimate.spent.tokens_in += if has_past { DIGEST_TOKENS } else { 0 };
            }
        }
        estimate.spent.cost_micros = price(&words.model, &estimate.spent);
        Ok(estimate)
    }
}
