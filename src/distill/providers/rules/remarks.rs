//! Reads the remarks of a turn: words between tools, rejections, compaction summaries.

use claude_mem_events::RemarkKind;

use super::choices::is_proposal;
use super::markdown::{self, Block, sentences};
use super::text::{add, begins, clip, holds, one_line, padded, sentence_case, words};
use crate::turn_prompt::RemarkView;

const LIST_MAX: usize = 6;
const FACT_CHARS_MAX: usize = 320;

/// What the remarks of a turn tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// Causes and reasons that the assistant named between tools.
    pub(super) reasons: Vec<String>,
    /// What the user said when rejecting a tool use.
    pub(super) rejections: Vec<String>,
    /// Tool uses that were not permitted.
    pub(super) denied: Vec<String>,
    /// Errors and their fixes, from a compaction summary.
    pub(super) errors: Vec<String>,
    /// Pending tasks, from a compaction summary.
    pub(super) pending: Vec<String>,
    /// The error of the API that ended the turn.
    pub(super) api_error: Option<String>,
}

impl Remarks {
    pub(super) fn of(remarks: &[RemarkView<'_>]) -> Self {
        let mut found = Self::default();
        for remark in remarks {
            match remark.kind {
                RemarkKind::Narration => found.narration(remark.text),
                RemarkKind::Rejection => {
                    add(&mut found.rejections, clip(remark.text, FACT_CHARS_MAX), LIST_MAX);
                }
                RemarkKind::Denied => add(&mut found.denied, clip(remark.text, 160), LIST_MAX),
                RemarkKind::Compaction => found.compaction(remark.text),
                RemarkKind::ApiError => found.api_error = Some(clip(remark.text, 200)),
            }
        }
        found
    }

    fn narration(&mut self, text: &str) {
        for block in markdown::blocks(text) {
            let text = match block {
                Block::Heading(_) => continue,
                Block::BoldLine(text)
                | Block::Paragraph(text)
                | Block::Row(text)
                | Block::Item { text, .. } => text,
            };
            for sentence in sentences(&one_line(&text)) {
                if is_reason(sentence) {
                    add(
                        &mut self.reasons,
                        clip(&sentence_case(sentence), FACT_CHARS_MAX),
                        2 * LIST_MAX,
                    );
                }
            }
        }
    }

    /// Claude Code writes these summaries under fixed headings.
    fn compaction(&mut self, text: &str) {
        let mut heading = String::new();
        for block in markdown::blocks(text) {
            let item = match block {
                Block::Heading(text) | Block::BoldLine(text) => {
                    heading = text;
                    continue;
                }
                Block::Paragraph(text) => one_line(&text),
                Block::Row(text) | Block::Item { text, .. } => text,
            };
            let (about, rest) = match item.split_once(": ") {
                Some((label, rest)) if is_errors(label) || is_pending(label) => (label, rest),
                _ => (heading.as_str(), item.as_str()),
            };
            if words(rest) < 4 || begins(&rest.to_lowercase(), "no |none") {
                continue;
            }
            let rest = clip(rest, FACT_CHARS_MAX);
            if is_errors(about) {
                add(&mut self.errors, rest, LIST_MAX);
            } else if is_pending(about) {
                add(&mut self.pending, rest, LIST_MAX);
            }
        }
    }
}

fn is_errors(heading: &str) -> bool {
    heading.to_lowercase().contains("errors and fixes")
}

fn is_pending(heading: &str) -> bool {
    heading.to_lowercase().contains("pending tasks")
}

/// Names a cause, or what is needed for something to work.
fn is_reason(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    let causes = " root cause | the cause | caused by | because | due to | turns out | turned out | the reason | the problem is |\
         the problem was | the issue is | the issue was | the bug is | the bug was | that's why | which means | silently |\
         only works | doesn't support | does not support | is missing | was missing | isn't on | not on the path | not in path |\
         must be | must not | needs to be | requires | by default | is not registered | aren't registered | is deprecated |\
         weil | ursache | потому что | причина | из-за | çünkü | nedeni | yüzünden ";
    let plans = " let me | i'll | i will | i need to | now i | i should | let's | maybe | perhaps | might be | could be | probably |\
         i think | i want to ";
    (holds(&text, causes) || holds(&lower, "因为|原因|由于|导致|ため"))
        && !begins(&text, plans)
        && !holds(
            &text,
            " maybe | perhaps | might be | could be | probably | let me check | not sure ",
        )
        && !is_proposal(&lower)
        && !sentence.ends_with(['?', '？', ':'])
        && (5..=60).contains(&words(sentence))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remark(kind: RemarkKind, text: &str) -> RemarkView<'_> {
        RemarkView { kind, tool_use_id: "", text }
    }

    #[test]
    fn causes_between_tools_are_kept_and_plans_are_not() {
        let remarks = Remarks::of(&[
            remark(RemarkKind::Narration, "Let me look at the cart because it is slow."),
            remark(
                RemarkKind::Narration,
                "Found it. The test fails because the clock is mocked twice. I'll fix it.",
            ),
            remark(RemarkKind::Rejection, "no, I did not say commit"),
        ]);
        assert_eq!(remarks.reasons, ["The test fails because the clock is mocked twice."]);
        assert_eq!(remarks.rejections, ["no, I did not say commit"]);
    }

    #[test]
    fn a_compaction_summary_gives_errors_and_pending_tasks() {
        let text = "Summary:\n1. Primary Request:\n   - Build the cart\n\n4. Errors and fixes:\n   - **Rounding**: totals were off by one, fixed by rounding once\n\n\
                    7. Pending Tasks:\n   - Add the discount to the cart\n   - None\n";
        let remarks = Remarks::of(&[remark(RemarkKind::Compaction, text)]);
        assert_eq!(remarks.errors, ["Rounding: totals were off by one, fixed by rounding once"]);
        assert_eq!(remarks.pending, ["Add the discount to the cart"]);
    }
}
