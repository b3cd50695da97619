//! The provider `extract`: writes observations and summaries with rules, without a model or network
//! access.
//!
//! It reads the prompt, the changes made by tools, failures and later passes, and the assistant's
//! messages. Its replies have the format of the other providers, so they are recorded, folded and
//! replayed in the same way. The same turn always gives the same reply.

mod answer;
mod checks;
mod choices;
mod command_rows;
mod commands;
mod commits;
mod corrections;
mod evidence;
mod files;
mod forms;
#[cfg(test)]
mod hostile_tests;
mod interrupted;
mod kinds;
mod markdown;
mod names;
mod observations;
mod outcomes;
mod parsed_turn;
mod picks;
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

/// Recorded as the model name. Increase the number when the rules change.
pub const MODEL: &str = "extract-7";

/// Writes the observations and the summary of a completed turn.
pub fn extract(turn: &Turn<'_>, mode: &Mode, verbosity: Verbosity) -> String {
    if !turn.is_over {
        return reply::render(&[], &[], None, false); // a later part may contradict this one
    }
    let parsed = ParsedTurn::of(turn);
    let mut observations = observations::of(&parsed, mode, verbosity);
    // Skip observations that the session already has.
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

/// The words of a turn that the user certainly typed: in prompts, as reasons for rejections, and in
/// forms.
pub fn own_words(turn: &Turn<'_>) -> String {
    let parsed = ParsedTurn::of(turn);
    let typed = parsed.evidence.choices.into_iter().filter(|choice| choice.is_typed);
    let answers = typed.map(|choice| choice.answer);
    let words = parsed.remarks.own_words.into_iter().chain(answers).chain([turn.own_words()]);
    words.collect::<Vec<_>>().join("\n")
}

/// The summary of a turn that changed something, for a model reply without one.
pub fn summary_of_work(turn: &Turn<'_>) -> Option<String> {
    let parsed = ParsedTurn::of(turn);
    let summary = summary::of(&parsed).filter(|_| parsed.evidence.has_work())?;
    Some(reply::render(&[], &[], Some(&summary), true))
}

/// Wraps the reply in a provider response without cost.
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
