//! Parses the remarks of a turn: text between tools, rejections, compaction summaries.

use std::collections::HashMap;

use claude_mem_events::RemarkKind;
use claude_mem_privacy::own_words;

use super::choices::is_proposal;
use super::corrections::Corrections;
use super::markdown::{self, Block, sentences};
use super::text::{
    add, alternatives, clip, contains_any, one_line, padded, sentence_case, starts_with_any, words,
};
use crate::turn_prompt::{ToolView, Turn};

const LIST_MAX: usize = 6;
const FACT_CHARS_MAX: usize = 320;

/// Maximum number of sentences that explain one failure.
const EXPLANATIONS_MAX: usize = 2;

/// The content of a turn's remarks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// Causes and reasons that the assistant named between tools, and its explanations of failed
    /// tools.
    pub(super) reasons: Vec<String>,
    /// Corrections between tools.
    pub(super) corrections: Corrections,
    /// The user's reasons for rejecting tool uses.
    pub(super) rejections: Vec<String>,
    /// The user's own words in these reasons.
    pub(super) own_words: Vec<String>,
    /// Tool uses that were not permitted.
    pub(super) denied: Vec<String>,
    /// Errors and their fixes, from a compaction summary.
    pub(super) errors: Vec<String>,
    /// Pending tasks, from a compaction summary.
    pub(super) pending: Vec<String>,
    /// The API error that ended the turn.
    pub(super) api_error: Option<String>,
}

impl Remarks {
    pub(super) fn of(turn: &Turn<'_>) -> Self {
        let mut found = Self::default();
        let at: HashMap<&str, usize> =
            turn.tools.iter().map(|tool| tool.tool_use_id).zip(0..).collect();
        let mut from = 0;
        for remark in &turn.remarks {
            match remark.kind {
                RemarkKind::Narration => {
                    // The remark is about the tools since the previous remark.
                    let until = at.get(remark.tool_use_id).copied().unwrap_or(from).max(from);
                    let is_own_failure = |tool: &ToolView<'_>| tool.failed && tool.agent.is_none();
                    let has_failed = turn.tools[from..until].iter().any(is_own_failure);
                    from = until;
                    found.narration(remark.text, has_failed);
                }
                RemarkKind::Rejection => {
                    add(&mut found.rejections, clip(remark.text, FACT_CHARS_MAX), LIST_MAX);
                    let own = clip(&own_words(remark.text), FACT_CHARS_MAX);
                    add(&mut found.own_words, own, LIST_MAX);
                }
                RemarkKind::Denied => add(&mut found.denied, clip(remark.text, 160), LIST_MAX),
                RemarkKind::Compaction => found.compaction(remark.text),
                RemarkKind::ApiError => found.api_error = Some(clip(remark.text, 200)),
            }
        }
        found
    }

    fn narration(&mut self, text: &str, has_failed: bool) {
        let mut explanations = 0;
        for block in markdown::blocks(text) {
            let text = match block {
                Block::Heading(_) => continue,
                Block::BoldLine(text)
                | Block::Paragraph(text)
                | Block::Labelled(text)
                | Block::Row(text)
                | Block::Item { text, .. } => text,
            };
            let mut is_explained = false;
            for sentence in sentences(&one_line(&text)) {
                self.corrections.read(sentence);
                let explains =
                    has_failed && explanations < EXPLANATIONS_MAX && is_explanation(sentence);
                if explains || is_reason(sentence) {
                    explanations += usize::from(explains);
                    let reason = clip(&sentence_case(sentence), FACT_CHARS_MAX);
                    add(&mut self.reasons, reason, 2 * LIST_MAX);
                    is_explained = has_failed;
                } else if let Some(cure) = cure(sentence).filter(|_| is_explained) {
                    if let Some(reason) = self.reasons.last_mut() {
                        *reason = clip(&format!("{reason} Then: {cure}"), FACT_CHARS_MAX);
                    }
                    is_explained = false;
                }
            }
        }
    }

    /// Claude Code writes these summaries with fixed headings.
    fn compaction(&mut self, text: &str) {
        let mut heading = String::new();
        for block in markdown::blocks(text) {
            let item = match block {
                Block::Heading(text) | Block::BoldLine(text) => {
                    heading = text;
                    continue;
                }
                Block::Paragraph(text) => one_line(&text),
                Block::Labelled(text) | Block::Row(text) | Block::Item { text, .. } => text,
            };
            let (about, rest) = match item.split_once(": ") {
                Some((label, rest)) if is_errors(label) || is_pending(label) => (label, rest),
                _ => (heading.as_str(), item.as_str()),
            };
            if words(rest) < 4 || starts_with_any(&rest.to_lowercase(), "no |none") {
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

/// Phrases that announce the assistant's next action.
const PLANS: &str = " \
    let me | i'll | i will | i need | now | next | time to | i should | let's | maybe | perhaps | \
    might be | could be | probably | i think | i want to | i can | i don't | \
    lass mich | ich werde | je vais | voy a | \
    давайте | давай | сейчас | проверю | посмотрю | \
    şimdi | bakalım | hadi ";
const PLANS_WIDE: &str = "让我|我来|我先|接下来|我重新|现在我|では";

const GUESSES: &str =
    " maybe | perhaps | might be | could be | probably | likely | let me check | not sure ";

/// A limitation of the assistant is not a property of the project.
const INABILITIES: &str = " \
    i cannot | i can't | i can not | i don't have | i do not have | i'm unable | i am unable | \
    unfortunately , i ";

/// Phrases that state a cause or a requirement.
const CAUSES: &str = " \
    root cause | the cause | caused by | because | due to | turns out | turned out | \
    the reason | the problem is | the problem was | the issue is | the issue was | the bug is | \
    the bug was | that's why | which means | silently | only works | doesn't support | \
    does not support | is missing | was missing | isn't on | not on the path | not in path | \
    must be | must not | needs to be | requires | is required | are required | by default | \
    not registered | aren't registered | is deprecated | is stale | are stale | is outdated | \
    out of date | is filtering | are filtering | filters the | strips the | swallows the | \
    doesn't exist | does not exist | no longer exists | not checking | doesn't check | \
    does not check | ignores the | is ignored | are ignored | is gitignored | is blocked by | \
    was blocked by | is rejected | was rejected | rejects | pre-existing | preexisting | \
    unrelated to | which is expected | not from our | overrides the | conflicts with | \
    never runs | never called | \
    weil | ursache | liegt daran | \
    existiert nicht | unterstützt kein | \
    потому что | причина | из-за | оказалось | не поддерживает | не существует | устарел | \
    требует | \
    çünkü | nedeni | yüzünden | meğer | kayıtlı değil | mevcut değil | desteklemiyor | \
    gerektiriyor ";
const CAUSES_WIDE: &str = "因为|原因|由于|导致|原来|不支持|不存在|已过期|要求先|被忽略|ため";

/// Whether a sentence states a cause or a requirement.
fn is_reason(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    (contains_any(&text, CAUSES) || contains_any(&lower, CAUSES_WIDE))
        && states_something(sentence, &lower, &text)
}

/// Whether a sentence explains the failure before it. Fewer than five words only repeat that it
/// failed.
fn is_explanation(sentence: &str) -> bool {
    let lower = sentence.to_lowercase().replace('’', "'");
    let text = padded(&lower);
    let courtesies =
        " good | great | perfect | ok | okay | sorry | done | all good | interesting | expected ";
    !starts_with_any(&text, courtesies)
        && words(sentence) >= 4
        && states_something(sentence, &lower, &text)
}

/// Whether a sentence is a statement, not a plan, guess, question or proposal.
fn states_something(sentence: &str, lower: &str, text: &str) -> bool {
    !starts_with_any(text, PLANS)
        && !contains_any(lower, PLANS_WIDE)
        && !contains_any(text, GUESSES)
        && !contains_any(text, INABILITIES)
        && !is_proposal(lower)
        && !sentence.ends_with(['?', '？', ':', '：'])
        && (4..=60).contains(&words(sentence))
}

/// Verbs that only investigate and do not fix anything.
const LOOKS: &str = "\
    check|look|see|verify|read|re-read|reread|find|investigate|understand|try|search|examine|\
    test|confirm|get|debug|trace|inspect|explore|review|fix|update|continue|do|run|view|grep|\
    redo|retry|also|first|now|just|be|address|handle";

/// The fix that the assistant announces for a failure: "Let me pull and rebase first."
fn cure(sentence: &str) -> Option<&str> {
    let announcements = "Let me |I'll |I’ll |I will |I need to |Let's ";
    let rest = alternatives(announcements).find_map(|words| sentence.strip_prefix(words))?;
    let verb = rest.split([' ', ',', '.', ':']).next().unwrap_or_default();
    let is_look = alternatives(LOOKS).any(|look| look == verb);
    (!is_look && words(rest) >= 2).then(|| rest.trim_end_matches([':', '：']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn_prompt::RemarkView;

    fn remark(kind: RemarkKind, text: &str) -> RemarkView<'_> {
        RemarkView { kind, tool_use_id: "", text }
    }

    fn read(remarks: Vec<RemarkView<'_>>) -> Remarks {
        Remarks::of(&Turn { remarks, ..Turn::default() })
    }

    #[test]
    fn causes_between_tools_are_kept_and_plans_are_not() {
        let remarks = read(vec![
            remark(RemarkKind::Narration, "Let me look at the cart because it is slow."),
            remark(
                RemarkKind::Narration,
                "Found it. The test fails because the clock is mocked twice. I'll fix it.",
            ),
            remark(RemarkKind::Narration, "I cannot reach the shop because it requires a login."),
            remark(RemarkKind::Narration, "The cart is empty. Now the totals."),
            remark(RemarkKind::Narration, "Now rebuild the cart, because the totals must be new."),
            remark(RemarkKind::Rejection, "no, I did not say commit"),
        ]);
        assert_eq!(remarks.reasons, ["The test fails because the clock is mocked twice."]);
        assert_eq!(remarks.rejections, ["no, I did not say commit"]);
    }

    #[test]
    fn a_remark_after_a_failure_explains_it() {
        let tool = |id, failed| ToolView { tool_use_id: id, failed, ..ToolView::default() };
        let remark = |id, text| RemarkView { kind: RemarkKind::Narration, tool_use_id: id, text };
        let explained = |text: &'static str, failed: bool| {
            let tools = vec![tool("a", failed), tool("b", false), tool("c", false)];
            let remarks = vec![remark("a", "The shop has two carts."), remark("c", text)];
            Remarks::of(&Turn { tools, remarks, ..Turn::default() }).reasons
        };
        for (text, fact) in [
            (
                "The remote has new prices. Let me pull and rebase first.",
                "The remote has new prices. Then: pull and rebase first.",
            ),
            (
                "The cart test expects 3 items but there are 4. Let me check.",
                "The cart test expects 3 items but there are 4.",
            ),
            (
                "Sepet sınıfı bu projede yok; `Basket` kullanılıyor.",
                "Sepet sınıfı bu projede yok; `Basket` kullanılıyor.",
            ),
            (
                "Корзина хранится в другой таблице. Давайте посмотрим.",
                "Корзина хранится в другой таблице.",
            ),
            (
                "购物车的表名已经改成 baskets 了。让我重新读一下。",
                "购物车的表名已经改成 baskets 了。",
            ),
        ] {
            assert_eq!(explained(text, true), [fact]);
            assert_eq!(explained(text, false), Vec::<String>::new(), "{text}");
        }
        assert_eq!(
            explained("Just formatting. Let me see the whole cart.", true),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_compaction_summary_gives_errors_and_pending_tasks() {
        let text = "\
            Summary:\n1. Primary Request:\n   - Build the cart\n\n4. Errors and fixes:\n   \
            - **Rounding**: totals were off by one, fixed by rounding once\n\n\
            7. Pending Tasks:\n   - Add the discount to the cart\n   - None\n";
        let remarks = read(vec![remark(RemarkKind::Compaction, text)]);
        assert_eq!(remarks.errors, ["Rounding: totals were off by one, fixed by rounding once"]);
        assert_eq!(remarks.pending, ["Add the discount to the cart"]);
    }
}
