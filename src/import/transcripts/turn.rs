//! The current turn while a record is read: its open calls, whether it is private, and its remarks.
//! Produces the events that hooks would have recorded. Shared by all clients.

use std::{borrow::Cow, collections::HashMap};

use claude_mem_events::{
    Event, Id, PromptSubmitted, StopScope, Submitter, SummaryRequested, ToolUsed,
};

use crate::sink::stable_id;
use claude_mem_capture::{MEDIA, Remarks, ToolUse, clients::is_our_tool, submitter};
use claude_mem_core::failure::Failure;
use claude_mem_privacy::{Policy, redact_json, redact_text};

/// Settings of the hooks.
#[derive(Debug)]
pub(super) struct CaptureRules {
    pub(super) policy: Policy,
    pub(super) skipped_tools: Vec<String>,
}

/// An event, or a tool use that produces none.
pub(super) struct Found<'a> {
    pub(super) what: &'static str,
    pub(super) id: Id,
    /// The branch at that time; empty if unknown.
    pub(super) branch: &'a str,
    pub(super) outcome: Outcome<'a>,
}

pub(super) enum Outcome<'a> {
    /// Built only if it is new: redaction is most of the work.
    Event(&'a dyn Fn() -> Event),
    /// A tool use that hooks would not have recorded, and why.
    LeftOut(&'static str),
}

pub(super) type OnFound<'a> = dyn FnMut(Found<'_>) -> Result<(), Failure> + 'a;

/// The origin of a row. Unknown fields are empty.
#[derive(Debug, Clone, Default)]
pub(super) struct RowOrigin<'a> {
    pub(super) cwd: Cow<'a, str>,
    pub(super) branch: Cow<'a, str>,
    /// Empty unless a subagent wrote the row.
    pub(super) agent_id: Cow<'a, str>,
    pub(super) agent_type: Cow<'a, str>,
}

/// A call of a tool.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) time_us: u64,
    pub(super) tool: String,
    /// JSON.
    pub(super) input: String,
    pub(super) agent_type: String,
}

/// The state of the turn.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    habits: &'a CaptureRules,
    /// The client's id of the turn; empty if it has none.
    pub(super) prompt_id: String,
    /// Calls without a result so far.
    calls: HashMap<String, Call>,
    is_private: bool,
    /// Whether an earlier turn was private: a later summary of the client may contain its text.
    was_private: bool,
    /// The last message of the assistant, if no action followed.
    last_words: Option<LastMessage<'a>>,
    /// Its other remarks.
    remarks: Remarks,
    /// The last row with a remark. Used if there is no last message.
    last_remark: Option<LastMessage<'a>>,
    /// The stop of the last prompt, if no other event follows.
    unanswered: Option<LastMessage<'static>>,
}

#[derive(Debug)]
struct LastMessage<'a> {
    id: Id,
    text: String,
    place: RowOrigin<'a>,
}

/// The turn, or the record, ends before the result.
const NO_RESULT: &str = "without a result";

impl<'a> Turn<'a> {
    pub(super) fn new(habits: &'a CaptureRules) -> Self {
        Self {
            habits,
            prompt_id: String::new(),
            calls: HashMap::new(),
            is_private: false,
            was_private: false,
            last_words: None,
            remarks: Remarks::default(),
            last_remark: None,
            unanswered: None,
        }
    }

    /// Why uses of this tool are not recorded; `None` if they are.
    pub(super) fn reason(&self, tool: &str) -> Option<&'static str> {
        if self.is_private {
            return Some("in private turns");
        }
        if is_our_tool(tool) {
            return Some("of claude-mem itself");
        }
        let is_skipped = self.habits.skipped_tools.iter().any(|skipped| skipped == tool);
        is_skipped.then_some("of skipped tools")
    }

    /// A prompt that begins a turn, or is part of the turn with the same id.
    pub(super) fn prompt(
        &mut self,
        id: Id,
        text: &str,
        prompt_id: &str,
        place: &RowOrigin<'_>,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        let submitter = submitter(text);
        let redacted = redact_text(text, self.habits.policy);
        let is_private = match submitter {
            Submitter::TaskNotification | Submitter::Teammate => self.is_private,
            _ => redacted.wholly_private,
        };
        // A prompt queued into a private turn is public, and the turn stays private.
        let is_same_turn = !prompt_id.is_empty() && prompt_id == self.prompt_id;
        self.is_private = is_private || self.is_private && is_same_turn;
        self.was_private |= self.is_private;
        prompt_id.clone_into(&mut self.prompt_id);
        let is_users = matches!(submitter, Submitter::User | Submitter::UserMedia);
        if !is_same_turn {
            let cwd = place.cwd.to_string().into();
            let branch = place.branch.to_string().into();
            let place = RowOrigin { cwd, branch, ..RowOrigin::default() };
            let stop = LastMessage { id: stop_of_unanswered(id), text: String::new(), place };
            self.unanswered = Some(stop).filter(|_| is_users && !self.is_private);
        }
        let make = || {
            let prompt = match submitter {
                _ if is_private => String::new(),
                Submitter::UserMedia => MEDIA.into(),
                _ => redacted.text.clone(),
            };
            let (prompt_id, cwd) = (prompt_id.to_owned(), place.cwd.to_string());
            let extra = String::new();
            PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra }.into()
        };
        let (branch, outcome) = (&*place.branch, Outcome::Event(&make));
        each(Found { what: "PromptSubmitted", id, branch, outcome })
    }

    /// Text of the assistant: its last message unless an action follows.
    pub(super) fn assistant_text(&mut self, id: Id, text: String, place: RowOrigin<'a>) {
        self.last_words = Some(LastMessage { id, text, place });
    }

    /// The assistant called a tool.
    pub(super) fn called(&mut self, call_id: String, call: Call) {
        self.last_words = None;
        self.calls.insert(call_id, call);
    }

    /// Adds a remark. Its id is used for the end of the turn if nothing follows.
    pub(super) fn remark(&mut self, id: Id, place: RowOrigin<'a>, add: impl FnOnce(&mut Remarks)) {
        add(&mut self.remarks);
        self.last_remark = Some(LastMessage { id, text: String::new(), place });
    }

    /// Whether a summary of the client may contain text of a private turn.
    pub(super) fn was_private(&self) -> bool {
        self.was_private
    }

    /// Removes and returns the call that a result belongs to.
    pub(super) fn take_call(&mut self, call_id: &str) -> Option<Call> {
        self.calls.remove(call_id)
    }

    /// A tool was used, with this result.
    pub(super) fn used(
        &mut self,
        id: Id,
        used: &ToolUse<'_>,
        place: &RowOrigin<'_>,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        if let Some(reason) = self.reason(&used.tool) {
            return left_out(id, reason, each);
        }
        self.unanswered = None;
        let policy = self.habits.policy;
        let make = || {
            let input = redact_json(&used.input, policy);
            let policy = policy.after(input.len());
            // Empty text is not JSON, and would become an empty string.
            let output = match &*used.output {
                "" => String::new(),
                output => redact_json(output, policy),
            };
            let event = ToolUsed {
                tool: redact_text(&used.tool, policy).text,
                error: redact_text(&used.error, policy.after(output.len())).text,
                has_failed: used.has_failed,
                input,
                output,
                tool_use_id: used.tool_use_id.to_string(),
                cwd: place.cwd.to_string(),
                agent_id: place.agent_id.to_string(),
                agent_type: place.agent_type.to_string(),
                prompt_id: used.prompt_id.to_string(),
                ..ToolUsed::default()
            };
            event.into()
        };
        let (branch, outcome) = (&*place.branch, Outcome::Event(&make));
        each(Found { what: "ToolUsed", id, branch, outcome })
    }

    /// Ends the record. If no event follows the last prompt, its turn ends here; without a stop it
    /// would never be distilled.
    pub(super) fn end_of_record(&mut self) {
        if self.last_words.is_none() && self.remarks.is_empty() {
            self.last_words = self.unanswered.take();
        }
    }

    /// Ends the turn. An interrupted turn has no last message, but its remarks are recorded. `open`
    /// returns the id and the tool of a call without a result.
    pub(super) fn end(
        &mut self,
        open: impl Fn(&str, Call) -> (Id, String),
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        let mut calls: Vec<(String, Call)> = self.calls.drain().collect();
        calls.sort_by_key(|(id, call)| (call.time_us, id.clone()));
        for (call_id, call) in calls {
            let (id, tool) = open(&call_id, call);
            left_out(id, self.reason(&tool).unwrap_or(NO_RESULT), each)?;
        }
        let mut remarks = std::mem::take(&mut self.remarks);
        let last_remark = self.last_remark.take().filter(|_| !remarks.is_empty());
        let Some(words) = self.last_words.take().or(last_remark) else { return Ok(()) };
        if self.is_private {
            return Ok(());
        }
        self.unanswered = None;
        let policy = self.habits.policy;
        let remarks = remarks.take(&words.text, policy);
        let place = &words.place;
        let make = || {
            let is_subagent = !place.agent_id.is_empty();
            let stop = SummaryRequested {
                scope: if is_subagent { StopScope::Subagent } else { StopScope::Turn },
                last_assistant_message: redact_text(&words.text, policy).text,
                remarks: remarks.clone(),
                agent_id: place.agent_id.to_string(),
                agent_type: place.agent_type.to_string(),
                prompt_id: self.prompt_id.clone(),
                cwd: place.cwd.to_string(),
                ..SummaryRequested::default()
            };
            stop.into()
        };
        let (id, branch) = (words.id, &*place.branch);
        each(Found { what: "SummaryRequested", id, branch, outcome: Outcome::Event(&make) })
    }
}

/// The id of the stop that ends a prompt without an answer.
pub(super) fn stop_of_unanswered(prompt: Id) -> Id {
    stable_id(prompt.time_us(), &["transcript", "unanswered", &prompt.to_string()])
}

/// A tool use that hooks would not have recorded.
pub(super) fn left_out(
    id: Id,
    reason: &'static str,
    each: &mut OnFound<'_>,
) -> Result<(), Failure> {
    each(Found { what: "ToolUsed", id, branch: "", outcome: Outcome::LeftOut(reason) })
}
