//! Cost estimate of a plan.

use claude_mem_core::progress::Progress;
use claude_mem_log::{Error, Log};

use crate::providers::{Spent, price};
use crate::{asker::PromptSet, plan::Plan, turn_input::TurnInput};

/// Tokens of a full recap.
const DIGEST_TOKENS: u64 = 600;

/// Estimated size and cost of a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Estimate {
    pub events: usize,
    pub requests: usize,
    /// Requests sent to a model.
    pub calls: usize,
    /// Tokens and cost; no cost if the price of the model is unknown.
    pub spent: Spent,
}

impl Estimate {
    /// Renders every request and counts its tokens.
    pub fn of(plan: &Plan, prompt_set: &PromptSet, log: &Log) -> Result<Self, Error> {
        let (events, requests) = (plan.events(), plan.requests());
        let mut estimate = Self { events, requests, ..Self::default() };
        if prompt_set.is_free() {
            estimate.spent.cost_micros = Some(0);
            return Ok(estimate);
        }
        let progress = Progress::items("estimating", requests);
        for session in &plan.sessions {
            for (index, planned) in session.requests.iter().enumerate() {
                progress.advance(1);
                let Some(input) = TurnInput::read(log, planned)? else { continue };
                let has_past = index > 0 || !session.recap.is_empty();
                estimate.calls += 1;
                estimate.spent.add(&prompt_set.request(&input, None, None).expected());
                estimate.spent.tokens_in += if has_past { DIGEST_TOKENS } else { 0 };
            }
        }
        estimate.spent.cost_micros = price(&prompt_set.model, &estimate.spent);
        Ok(estimate)
    }
}
