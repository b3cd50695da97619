//! A turn, parsed: the prompt, the tools, the remarks and the last message.

use super::answer::Answer;
use super::evidence::Evidence;
use super::prompt::Prompt;
use super::remarks::Remarks;
use super::text::{code, listing};
use crate::{recap::EarlierRow, turn_prompt::Turn};

/// Everything that observations and summary are made from.
pub(super) struct ParsedTurn<'t> {
    /// Working directory of the session.
    pub(super) cwd: &'t str,
    pub(super) prompt: Prompt,
    /// The last message; empty while the turn goes on.
    pub(super) answer: Answer,
    pub(super) evidence: Evidence,
    /// What the session remembers already.
    pub(super) digest: &'t str,
    pub(super) remarks: Remarks,
    /// The turn is over, and was not finished.
    pub(super) is_interrupted: bool,
    /// What the session remembers already.
    pub(super) earlier: Vec<EarlierRow<'t>>,
}

impl<'t> ParsedTurn<'t> {
    pub(super) fn of(turn: &Turn<'t>) -> Self {
        Self {
            cwd: turn.cwd,
            prompt: Prompt::of(turn.prompt, turn.previous_message),
            answer: Answer::of(turn.last_assistant_message.unwrap_or_default()),
            evidence: Evidence::of(turn),
            digest: turn.digest.unwrap_or_default(),
            remarks: Remarks::of(turn),
            is_interrupted: turn.is_interrupted,
            earlier: turn.earlier.clone(),
        }
    }

    /// What was done, as sentences.
    pub(super) fn actions(&self) -> Vec<String> {
        let evidence = &self.evidence;
        let named = |is_new: bool| -> Vec<String> {
            let files = evidence.files.iter().filter(|file| file.is_new == is_new);
            files.map(|file| code(&file.shown)).collect()
        };
        let mut actions = Vec::new();
        for (verb, files) in [("Created", named(true)), ("Changed", named(false))] {
            if !files.is_empty() {
                actions.push(format!("{verb} {}.", listing(&files, 6)));
            }
        }
        actions.extend(evidence.effects().iter().take(6).map(|effect| format!("{effect}.")));
        actions.extend(evidence.made_commits().map(|commit| format!("Committed {commit}.")));
        actions.extend(evidence.passed().iter().map(|run| format!("{}.", run.result())));
        actions
    }
}
