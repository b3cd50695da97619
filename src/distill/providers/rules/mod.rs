//! The provider `extract`: observations and summaries by rules, without a model and without a
//! network.
//!
//! It reads the turn itself: the prompt, what the tools changed, what failed and passed again, what
//! the assistant said. It replies in the format of the other providers, so that its replies are
//! recorded, folded and replayed like theirs. The same turn always gives the same reply.

mod answer;
mod begun;
mod checks;
mod choices;
mod command_rows;
mod commands;
mod corrections;
mod evidence;
mod files;
#[cfg(test)]
mod hostile_tests;
mod kinds;
mod markdown;
mod names;
mod observations;
mod outcomes;
mod parsed_turn;
mod prompt;
mod purposes;
mod remarks;
mod reply;
mod rule_clause;
mod rule_phrases;
mod runners;
mod shell;
#[cfg(test)]
mod step_count;
mod summary;
#[cfg(test)]
mod tests;
mod text;
mod titles;
mod user_rules;

use std::time::Duration;

use super::{Response, Spent};
use crate::turn_prompt::Turn;
use claude_mem_core::settings::Verbosity;
use claude_mem_memory::modes::Mode;
use parsed_turn::ParsedTurn;

/// Recorded in place of a model's name. The number rises with changes of the rules.
pub const MODEL: &str = "extract-5";

/// Replies to a turn that is over: observations and a summary.
pub fn extract(turn: &Turn<'_>, mode: &Mode, verbosity: Verbosity) -> String {
    if !turn.is_over {
        return reply::render(&[], &[], None, false); // a piece of a turn misleads: the rest undoes it
    }
    let parsed = ParsedTurn::of(turn);
    let mut observations = observations::of(&parsed, mode, verbosity);
    // Do not repeat what the session remembers already.
    let digest = turn.digest.unwrap_or_default();
    observations.retain(|observation| !digest.contains(&observation.title));
    let summary = summary::of(&parsed);
    let mut withdrawn = command_rows::withdrawn(&parsed);
    let corrected = corrections::corrected_titles(&parsed);
    if observations.is_empty() && !corrected.is_empty() {
        observations.extend(observations::objection(&parsed, mode));
    }
    let corrected = corrected.into_iter().map(str::to_owned);
    match observations.first_mut() {
        Some(first) => first.corrects.extend(corrected),
        None => withdrawn.extend(corrected),
    }
    reply::render(&observations, &withdrawn, summary.as_ref(), true)
}

/// The summary of a turn in which something was done, for a model that forgot it.
pub fn summary_of_work(turn: &Turn<'_>) -> Option<String> {
    let parsed = ParsedTurn::of(turn);
    let summary = summary::of(&parsed).filter(|_| parsed.evidence.has_work())?;
    Some(reply::render(&[], &[], Some(&summary), true))
}

/// The reply as a response of a provider, free of charge.
pub fn respond(turn: &Turn<'_>, mode: &Mode, verbosity: Verbosity) -> Response {
    Response {
        text: extract(turn, mode, verbosity),
        is_cut: false,
        memory_session_id: None,
        model: MODEL.to_owned(),
        spent: Spent { cost_micros: Some(0), ..Spent::default() },
        duration: Duration::ZERO,
    }
}
