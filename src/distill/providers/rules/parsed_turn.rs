//! A parsed turn: the prompt, the tools, the remarks and the last message.

use std::borrow::Cow;

use claude_mem_events::RemarkKind;

use super::answer::Answer;
use super::evidence::Evidence;
use super::prompt::Prompt;
use super::remarks::Remarks;
use super::text::{code, listing};
use crate::{recap::EarlierRow, turn_prompt::Turn};

/// The input for observations and the summary.
pub(super) struct ParsedTurn<'t> {
    /// Working directory of the session.
    pub(super) cwd: &'t str,
    pub(super) prompt: Prompt,
    /// The last message; empty until the turn ends.
    pub(super) answer: Answer,
    pub(super) evidence: Evidence,
    /// Earlier observations of the session, as text.
    pub(super) digest: &'t str,
    pub(super) remarks: Remarks,
    /// The turn ended without a final message.
    pub(super) is_interrupted: bool,
    /// Earlier observations of the session.
    pub(super) earlier: Vec<EarlierRow<'t>>,
}

impl<'t> ParsedTurn<'t> {
    pub(super) fn of(turn: &Turn<'t>) -> Self {
        Self {
            cwd: turn.cwd,
            prompt: Prompt::of(turn),
            answer: Answer::of(&message(turn)),
            evidence: Evidence::of(turn),
            digest: turn.digest.unwrap_or_default(),
            remarks: Remarks::of(turn),
            is_interrupted: turn.is_interrupted,
            earlier: turn.earlier.clone(),
        }
    }

    /// The actions of the turn, as sentences.
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

/// A shorter last message may only conclude an earlier one.
const CLOSING_CHARS_MAX: usize = 80;

/// Text before the last tool of at least this length counts as the answer.
const REPORT_CHARS_MIN: usize = 400;

/// The last message. If it is empty, short or only data, the report before the last tool is put
/// first.
fn message<'t>(turn: &Turn<'t>) -> Cow<'t, str> {
    let last = turn.last_assistant_message.unwrap_or_default();
    let is_data = last.trim_start().starts_with(['{', '[']);
    if !turn.is_over || !is_data && last.chars().count() > CLOSING_CHARS_MAX {
        return Cow::Borrowed(last);
    }
    let narration = turn.remarks.iter().rev().find(|remark| remark.kind == RemarkKind::Narration);
    match narration.filter(|remark| remark.text.chars().count() >= REPORT_CHARS_MIN) {
        Some(report) if is_data => Cow::Borrowed(report.text),
        Some(report) => Cow::Owned(format!("{}\n\n{last}", report.text)),
        None => Cow::Borrowed(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_prompt::RemarkView;

    #[test]
    fn the_report_before_the_last_tool_is_the_answer_if_the_last_message_is_data() {
        let report = format!("The cart rounds twice. {}", "It does so for every line. ".repeat(20));
        let answer = |last: &str, narration: &str| {
            let remark =
                RemarkView { kind: RemarkKind::Narration, tool_use_id: "", text: narration };
            let turn = Turn {
                last_assistant_message: Some(last),
                remarks: vec![remark],
                is_over: true,
                ..Turn::default()
            };
            ParsedTurn::of(&turn).answer.headline.unwrap_or_default()
        };
        for last in ["{\"findings\": []}", "", "Done."] {
            assert_eq!(answer(last, &report), "The cart rounds twice.", "{last}");
            assert_eq!(answer(last, "Looking at the cart now."), "", "{last}");
        }
        let long =
            "The totals are right again, because each line is rounded once and at the end only.";
        assert_eq!(answer(long, &report), long);
    }
}
