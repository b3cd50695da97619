//! Remarks: the text of a turn other than prompt, tool uses and last message. These are the
//! assistant's text between tools, the user's reasons for rejections, denied permissions,
//! compaction summaries and API errors.
//!
//! No hook reports them, but the client's transcript contains them. The hook at the end of a turn
//! and the import of transcripts collect them here, in order.

use std::collections::BTreeSet;

use claude_mem_events::{Remark, RemarkKind};
use claude_mem_privacy::{Policy, redact_text};
use serde_json::Value;

/// Nearly all turns have fewer. Beyond this, the earliest texts between tools are dropped.
const COUNT_MAX: usize = 100;
/// For all texts of a turn, after redaction.
const BYTES_MAX: usize = 64_000;
/// Maximum number of blocks of a last message. A transcript can have any number of rows, and each
/// is searched for in it.
const LAST_BLOCKS_MAX: usize = 32;
/// Minimum space that is worth a remark.
const BYTES_MIN: usize = 256;

/// The maximum length of one remark. A compaction summary has about 14 kB.
fn bytes_max(kind: RemarkKind) -> usize {
    match kind {
        RemarkKind::Narration => 2_000,
        RemarkKind::Rejection => 4_000,
        RemarkKind::Denied => 400,
        RemarkKind::Compaction => 32_000,
        RemarkKind::ApiError => 1_000,
    }
}

/// Collects the remarks of one turn, in the order of its transcript.
#[derive(Debug, Default)]
pub struct Remarks {
    found: Vec<Remark>,
    /// The assistant's latest text. The next row shows whether it ends the turn.
    narration: Option<String>,
}

impl Remarks {
    /// Adds text of the assistant.
    pub fn assistant_text(&mut self, text: &str) {
        if !text.trim().is_empty() {
            self.narrate("");
            self.narration = Some(text.trim().to_owned());
        }
    }

    /// Adds a tool call: the text before it is about this call.
    pub fn called(&mut self, tool_use_id: &str) {
        self.narrate(tool_use_id);
    }

    /// A tool use was refused, by the user or by the permissions.
    pub fn refused(&mut self, refusal: &Refusal<'_>, tool_use_id: &str, tool: &str, input: &str) {
        let (kind, text) = match refusal {
            Refusal::Words(words) => (RemarkKind::Rejection, (*words).to_owned()),
            Refusal::Silent => (RemarkKind::Denied, in_short(tool, input)),
        };
        self.narrate("");
        self.found.push(Remark { kind, tool_use_id: tool_use_id.to_owned(), text });
    }

    /// The client replaced the conversation by a summary.
    pub fn compacted(&mut self, text: &str) {
        self.other(RemarkKind::Compaction, summary_in(text));
    }

    /// The model's API failed.
    pub fn api_error(&mut self, text: &str) {
        let mut latest = self.found.iter().rev().take(COUNT_MAX);
        let is_same = |it: &Remark| it.kind == RemarkKind::ApiError && it.text == text.trim();
        if !latest.any(is_same) {
            self.other(RemarkKind::ApiError, text);
        }
    }

    fn other(&mut self, kind: RemarkKind, text: &str) {
        self.narrate("");
        if !text.trim().is_empty() {
            self.found.push(Remark {
                kind,
                tool_use_id: String::new(),
                text: text.trim().to_owned(),
            });
        }
    }

    fn narrate(&mut self, tool_use_id: &str) {
        if let Some(text) = self.narration.take() {
            let (kind, tool_use_id) = (RemarkKind::Narration, tool_use_id.to_owned());
            self.found.push(Remark { kind, tool_use_id, text });
        }
    }

    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Takes the remarks of the turn, redacted and limited in size, without `last_message`.
    pub fn take(&mut self, last_message: &str, policy: Policy) -> Vec<Remark> {
        self.narration = None;
        let mut found = std::mem::take(&mut self.found);
        // A last message with several blocks has several rows.
        let mut last_blocks = found.split_off(found.len().saturating_sub(LAST_BLOCKS_MAX));
        last_blocks.retain(|it| {
            !(it.kind == RemarkKind::Narration
                && it.tool_use_id.is_empty()
                && last_message.contains(&it.text))
        });
        found.append(&mut last_blocks);
        let narrations = found.iter().enumerate();
        let narrations = narrations.filter(|(_, it)| it.kind == RemarkKind::Narration);
        let excess = found.len().saturating_sub(COUNT_MAX);
        let dropped: BTreeSet<usize> = narrations.map(|(index, _)| index).take(excess).collect();
        let kept = found.into_iter().enumerate().filter(|(index, _)| !dropped.contains(index));
        let mut kept: Vec<Remark> = kept.map(|(_, remark)| remark).take(COUNT_MAX).collect();
        redact(&mut kept, policy);
        kept
    }
}

/// Redacts and shortens. Texts between tools get the remaining space, the latest first, because
/// they are closest to the result.
fn redact(remarks: &mut Vec<Remark>, policy: Policy) {
    let mut left = BYTES_MAX;
    let (mut words, mut others): (Vec<_>, Vec<_>) =
        remarks.iter_mut().rev().partition(|remark| remark.kind == RemarkKind::Narration);
    for remark in others.iter_mut().chain(&mut words) {
        let bytes_max = bytes_max(remark.kind).min(policy.field_bytes_max).min(left);
        let policy = Policy { field_bytes_max: bytes_max, ..policy };
        remark.text = match bytes_max >= BYTES_MIN {
            true => redact_text(&remark.text, policy).unless_private(),
            false => String::new(),
        };
        remark.tool_use_id = redact_text(&remark.tool_use_id, policy).text;
        left = left.saturating_sub(remark.text.len());
    }
    remarks.retain(|remark| !remark.text.is_empty());
}

/// How a tool use was refused.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal<'a> {
    /// By the user, with a reason.
    Words(&'a str),
    /// By the user or a rule, without a reason.
    Silent,
}

/// The start of the result of a tool use that the user rejected.
const REJECTED: [&str; 2] = [
    "The user doesn't want to proceed with this tool use.",
    "The user doesn't want to take this action right now.",
];
/// The text before the user's reason, in newer and older clients.
const WORDS: [&str; 2] =
    ["the user said:", "The user provided the following reason for the rejection:"];
/// The text that newer clients add after the reason.
const NOTE: &str = "\n\nNote: The user's next message may contain";
/// The start of a result that only reports a missing permission.
const DENIED: [&str; 3] =
    ["Permission to use ", "Permission for this action ", "Claude requested permissions to "];

/// The result of a tool use that the user rejected for this reason.
pub(crate) fn rejected_with(words: &str) -> String {
    format!("{} To tell you how to proceed, {}\n{words}", REJECTED[0], WORDS[0])
}

impl<'a> Refusal<'a> {
    /// Reads the error of a tool use; `None` if it was not refused. The error of a tool of an MCP
    /// server is the server's text, which may imitate a refusal.
    pub fn of(tool: &str, error: &'a str) -> Option<Self> {
        if tool.starts_with("mcp__") {
            return None;
        }
        Self::by_client(error)
    }

    /// Reads an error that the client wrote.
    pub(crate) fn by_client(error: &'a str) -> Option<Self> {
        let error = error.strip_prefix("Error: ").unwrap_or(error);
        let begins = |with: &&str| error.starts_with(*with);
        if REJECTED.iter().any(begins) {
            let words = WORDS.iter().find_map(|before| Some(error.split_once(before)?.1));
            let words = words.unwrap_or_default();
            let words = words.split_once(NOTE).map_or(words, |(words, _)| words).trim();
            return Some(if words.is_empty() { Self::Silent } else { Self::Words(words) });
        }
        let is_denied = DENIED.iter().any(begins)
            && ["denied", "haven't granted"].iter().any(|word| error.contains(word));
        is_denied.then_some(Self::Silent)
    }
}

/// Fields of an input that describe it best.
const SUBJECTS: [&str; 8] =
    ["command", "file_path", "notebook_path", "path", "url", "pattern", "query", "description"];

/// A tool and its input in one line.
fn in_short(tool: &str, input: &str) -> String {
    let fields: Value = serde_json::from_str(input).unwrap_or_default();
    let subject = SUBJECTS.iter().find_map(|name| fields.get(name)?.as_str());
    match subject.unwrap_or(input) {
        "" | "{}" => tool.to_owned(),
        subject => format!("{tool}: {subject}"),
    }
}

/// The summary in a client's text, without introduction, drafts and notes.
fn summary_in(text: &str) -> &str {
    const NOTES: [&str; 2] = [
        "\n\nIf you need specific details from before compaction",
        "\n\nContinue the conversation from where it left off",
    ];
    let text = match text.split_once("<summary>") {
        Some((_, rest)) => rest.split_once("</summary>").map_or(rest, |(summary, _)| summary),
        None if text.starts_with("This session is being continued") => {
            text.split_once("\n\n").map_or(text, |(_, rest)| rest)
        }
        None => text,
    };
    // Newer clients name the tools used so far before the summary.
    let text = text.trim_start();
    let text = match text.strip_prefix("<system-reminder>") {
        Some(rest) => rest.split_once("</system-reminder>").map_or("", |(_, rest)| rest),
        None => text,
    };
    let text = text.trim_start();
    let text = match text.strip_prefix("Analysis:") {
        Some(draft) => draft.split_once("\nSummary:\n").map_or(text, |(_, summary)| summary),
        None => text,
    };
    let text = text.strip_prefix("Summary:").unwrap_or(text);
    let end = NOTES.iter().filter_map(|note| text.find(note)).min();
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(remarks: &[Remark]) -> Vec<String> {
        remarks.iter().map(|it| format!("{:?} {} {}", it.kind, it.tool_use_id, it.text)).collect()
    }

    #[test]
    fn remarks_come_in_the_order_of_the_turn_without_the_last_message() {
        let mut turn = Remarks::default();
        turn.assistant_text(" I look at the cart. ");
        turn.called("t1");
        turn.assistant_text("Two things are wrong.");
        turn.assistant_text("First the total.");
        turn.called("t2");
        turn.called("t3");
        turn.refused(&Refusal::Words("not in main"), "t3", "Bash", "{}");
        turn.refused(&Refusal::Silent, "t4", "Bash", r#"{"command":"rm -r out"}"#);
        turn.assistant_text("Done, and");
        turn.assistant_text("all tests pass.");
        let expected = [
            "Narration t1 I look at the cart.",
            "Narration  Two things are wrong.",
            "Narration t2 First the total.",
            "Rejection t3 not in main",
            "Denied t4 Bash: rm -r out",
        ];
        assert_eq!(shown(&turn.take("Done, and\nall tests pass.", Policy::default())), expected);
        assert_eq!(turn.take("", Policy::default()), []);
    }

    #[test]
    fn only_the_latest_rows_are_compared_with_each_other_and_with_the_last_message() {
        let mut turn = Remarks::default();
        for _ in 0..LAST_BLOCKS_MAX + 2 {
            turn.assistant_text("again");
        }
        assert_eq!(turn.take("again and again", Policy::default()).len(), 1);
        for _ in 0..3 {
            turn.api_error("529 overloaded");
        }
        for number in 0..=COUNT_MAX {
            turn.called(&number.to_string());
            turn.assistant_text("step");
        }
        turn.api_error("529 overloaded");
        let found = turn.found.iter().filter(|it| it.kind == RemarkKind::ApiError).count();
        assert_eq!(found, 2);
    }

    #[test]
    fn a_refusal_is_recognized_by_the_text_of_the_client() {
        let rejected = "\
            The user doesn't want to proceed with this tool use. The tool use was rejected (eg. \
            if it was a file edit, the new_string was NOT written to the file). ";
        let rejection =
            format!("{rejected}To tell you how to proceed, the user said:\nuse main\n\nplease");
        assert_eq!(Refusal::of("Bash", &rejection), Some(Refusal::Words("use main\n\nplease")));
        let noted = format!("{rejection}{NOTE} a correction or preference.");
        assert_eq!(Refusal::of("Bash", &noted), Some(Refusal::Words("use main\n\nplease")));
        let old = format!("{rejected}The user provided the following reason for the rejection: no");
        assert_eq!(Refusal::of("Bash", &old), Some(Refusal::Words("no")));
        assert_eq!(Refusal::of("mcp__shop__sell", &rejection), None);
        for silent in [
            &format!("{rejected}STOP what you are doing and wait for the user."),
            "Error: The user doesn't want to take this action right now. STOP what you are doing.",
            "Permission to use Bash with command rm has been denied.",
            "Permission for this action was denied by the Claude Code auto mode classifier.",
            "Claude requested permissions to write to /x, but you haven't granted it yet.",
        ] {
            assert_eq!(Refusal::of("Bash", silent), Some(Refusal::Silent), "{silent}");
        }
        for other in ["", "Exit code 1", "Permission to use it is fine", "rm: Permission denied"] {
            assert_eq!(Refusal::of("Bash", other), None, "{other}");
        }
    }

    #[test]
    fn a_compaction_is_its_summary_alone() {
        let row = "\
            This session is being continued from a previous conversation that ran out of context. \
            The summary below covers it.\n\n\
            Summary:\n1. Fix the cart.\n\n\
            If you need specific details from before compaction (like code), read the full \
            transcript at: /x";
        assert_eq!(summary_in(row).trim(), "1. Fix the cart.");
        assert_eq!(summary_in("<analysis>a</analysis><summary>b</summary>"), "b");
        let row = "This session is being continued from a previous conversation.\n\n\
            <system-reminder>\n<tools-used-before-summary>Bash</tools-used-before-summary>\n\
            </system-reminder>\nSummary:\n1. Fix the cart.";
        assert_eq!(summary_in(row).trim(), "1. Fix the cart.");
        let row = "This session is being continued from a previous conversation.\n\n\
            Analysis:\nThe user wanted a cart.\n\nSummary:\n1. Fix the cart.";
        assert_eq!(summary_in(row).trim(), "1. Fix the cart.");
        assert_eq!(summary_in("plain"), "plain");
        let mut turn = Remarks::default();
        turn.compacted(row);
        turn.api_error("API Error: 529");
        turn.api_error("API Error: 529\n");
        let expected = ["Compaction  1. Fix the cart.", "ApiError  API Error: 529"];
        assert_eq!(shown(&turn.take("", Policy::default())), expected);
    }

    #[test]
    fn remarks_are_redacted_and_bounded_and_the_latest_stay() {
        let mut turn = Remarks::default();
        turn.refused(&Refusal::Words("keep me"), "t0", "Bash", "{}");
        for number in 0..300 {
            turn.assistant_text(&format!("{number} <private>x</private> {}", "y".repeat(5_000)));
            turn.called("t");
        }
        turn.assistant_text("<private>all of it</private>");
        turn.called("t");
        let remarks = turn.take("", Policy::default());
        let bytes: usize = remarks.iter().map(|remark| remark.text.len()).sum();
        assert!(bytes <= BYTES_MAX && remarks.len() > 20, "{} {bytes}", remarks.len());
        assert_eq!(remarks[0].text, "keep me");
        assert!(remarks.last().unwrap().text.starts_with("299 [redacted:private] y"));
        assert!(remarks.iter().all(|remark| remark.text.len() <= 2_000));
    }
}
