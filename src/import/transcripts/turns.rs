//! Converts the records of a session to the events that hooks would have recorded, for clients whose rows are read
//! as parts of turns.

use std::collections::HashMap;

use claude_mem_events::{Event, PromptSubmitted, StopScope, SummaryRequested, ToolUsed};

use super::conversation::{Each, Found, Habits, NO_RESULT, Outcome};
use crate::sink::stable_id;
use claude_mem_capture::{
    MEDIA, Remarks, ToolUse, TurnPart, TurnRow, clients::past::PastSessions, submitter,
};
use claude_mem_core::failure::Failure;
use claude_mem_events::{Id, Submitter};
use claude_mem_privacy::{redact_json, redact_text};

/// Where a record belongs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    /// The name of the client.
    pub(super) client: &'a str,
    pub(super) cwd: &'a str,
    pub(super) branch: &'a str,
    /// Empty unless a subagent wrote it.
    pub(super) agent_id: &'a str,
}

/// State of the conversion of one file.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    past: &'a PastSessions,
    place: Place<'a>,
    habits: &'a Habits,
    /// Calls without a result so far.
    calls: HashMap<String, Call>,
    is_private: bool,
    /// A turn was private: what the client sums up later may contain it.
    was_private: bool,
    /// The last message of the assistant, if no action followed.
    last_words: Option<LastWords>,
    remarks: Remarks,
    /// The last row with a remark, in place of a last message that never came.
    last_remark: Option<LastWords>,
}

#[derive(Debug)]
struct Call {
    time_us: u64,
    tool: String,
    input: String,
}

#[derive(Debug)]
struct LastWords {
    id: Id,
    text: String,
}

impl<'a> Turns<'a> {
    pub(super) fn new(past: &'a PastSessions, place: Place<'a>, habits: &'a Habits) -> Self {
        Self {
            past,
            place,
            habits,
            calls: HashMap::new(),
            is_private: false,
            was_private: false,
            last_words: None,
            remarks: Remarks::default(),
            last_remark: None,
        }
    }

    pub(super) fn row(
        &mut self,
        time_us: u64,
        row: TurnRow,
        each: &mut Each<'_>,
    ) -> Result<(), Failure> {
        match row {
            TurnRow::Other | TurnRow::Stopped => Ok(()),
            // The task of a subagent is in the call that started it.
            TurnRow::Prompt { .. } if !self.place.agent_id.is_empty() => Ok(()),
            TurnRow::Prompt { text, .. } => {
                self.end(each)?;
                self.prompt(time_us, &text, each)
            }
            TurnRow::Parts { parts, .. } => {
                parts.into_iter().try_for_each(|part| self.part(time_us, part, each))
            }
        }
    }

    /// Ends the last turn. One that was interrupted has no last message, but what was said in it counts.
    pub(super) fn end(&mut self, each: &mut Each<'_>) -> Result<(), Failure> {
        let mut calls: Vec<(String, Call)> = self.calls.drain().collect();
        calls.sort_by_key(|(id, call)| (call.time_us, id.clone()));
        for (call_id, call) in calls {
            let id = self.id(call.time_us, &["call", &call_id]);
            let mut used = ToolUse { tool: call.tool.into(), ..ToolUse::default() };
            (self.past.finish)(&mut used);
            let reason = self.habits.reason(&used.tool, self.is_private).unwrap_or(NO_RESULT);
            each(Found { what: "ToolUsed", id, branch: "", outcome: Outcome::LeftOut(reason) })?;
        }
        let mut remarks = std::mem::take(&mut self.remarks);
        let last_remark = self.last_remark.take().filter(|_| !remarks.is_empty());
        let Some(words) = self.last_words.take().or(last_remark) else { return Ok(()) };
        if self.is_private {
            return Ok(());
        }
        let policy = self.habits.policy;
        let remarks = remarks.take(&words.text, policy);
        let is_subagent = !self.place.agent_id.is_empty();
        let make = || {
            let stop = SummaryRequested {
                scope: if is_subagent { StopScope::Subagent } else { StopScope::Turn },
                last_assistant_message: redact_text(&words.text, policy).text,
                remarks: remarks.clone(),
                agent_id: self.place.agent_id.to_owned(),
                cwd: self.place.cwd.to_owned(),
                ..SummaryRequested::default()
            };
            stop.into()
        };
        self.event("SummaryRequested", words.id, &make, each)
    }

    fn prompt(&mut self, time_us: u64, text: &str, each: &mut Each<'_>) -> Result<(), Failure> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let submitter = submitter(text);
        let redacted = redact_text(text, self.habits.policy);
        self.is_private = redacted.wholly_private;
        self.was_private |= self.is_private;
        let make = || {
            let prompt = match submitter {
                _ if redacted.wholly_private => String::new(),
                Submitter::UserMedia => MEDIA.into(),
                _ => redacted.text.clone(),
            };
            let prompt = PromptSubmitted {
                prompt,
                is_private: redacted.wholly_private,
                submitter,
                prompt_id: String::new(),
                cwd: self.place.cwd.to_owned(),
                extra: String::new(),
            };
            prompt.into()
        };
        self.event("PromptSubmitted", self.id(time_us, &["prompt", text]), &make, each)
    }

    fn part(&mut self, time_us: u64, part: TurnPart, each: &mut Each<'_>) -> Result<(), Failure> {
        match part {
            TurnPart::Said(text) if !text.trim().is_empty() => {
                let id = self.id(time_us, &["stop", &text]);
                self.remark(time_us, &text, |remarks| remarks.said(&text));
                self.last_words = Some(LastWords { id, text });
            }
            TurnPart::Called { tool_use_id, tool, input } => {
                self.last_words = None;
                self.remark(time_us, &tool_use_id, |remarks| remarks.called(&tool_use_id));
                self.calls.insert(tool_use_id, Call { time_us, tool, input });
            }
            TurnPart::Done { tool_use_id, output } => {
                let result = ToolUse { output: output.into(), ..ToolUse::default() };
                return self.tool_used(time_us, &tool_use_id, result, each);
            }
            TurnPart::Failed { tool_use_id, error } => {
                let has_failed = true;
                let result = ToolUse { error: error.into(), has_failed, ..ToolUse::default() };
                return self.tool_used(time_us, &tool_use_id, result, each);
            }
            TurnPart::Compacted(text) if !self.was_private => {
                self.remark(time_us, &text, |remarks| remarks.compacted(&text));
            }
            TurnPart::ApiError(text) => {
                self.remark(time_us, &text, |remarks| remarks.api_error(&text));
            }
            TurnPart::Said(_) | TurnPart::Compacted(_) => {}
        }
        Ok(())
    }

    fn tool_used(
        &mut self,
        time_us: u64,
        call_id: &str,
        result: ToolUse<'static>,
        each: &mut Each<'_>,
    ) -> Result<(), Failure> {
        let Some(call) = self.calls.remove(call_id) else { return Ok(()) };
        let id = self.id(time_us, &[call_id]);
        let mut used = ToolUse { tool: call.tool.into(), input: call.input.into(), ..result };
        (self.past.finish)(&mut used);
        if let Some(reason) = self.habits.reason(&used.tool, self.is_private) {
            let outcome = Outcome::LeftOut(reason);
            return each(Found { what: "ToolUsed", id, branch: "", outcome });
        }
        let policy = self.habits.policy;
        let make = || {
            let input = redact_json(&used.input, policy);
            let policy = policy.after(input.len());
            let output = redact_json(&used.output, policy);
            let event = ToolUsed {
                tool: redact_text(&used.tool, policy).text,
                error: redact_text(&used.error, policy.after(output.len())).text,
                has_failed: used.has_failed,
                input,
                output,
                tool_use_id: call_id.to_owned(),
                cwd: self.place.cwd.to_owned(),
                agent_id: self.place.agent_id.to_owned(),
                ..ToolUsed::default()
            };
            event.into()
        };
        self.event("ToolUsed", id, &make, each)
    }

    /// Adds to the remarks of the turn. What subagents say is in their reports.
    fn remark(&mut self, time_us: u64, about: &str, add: impl FnOnce(&mut Remarks)) {
        if self.place.agent_id.is_empty() {
            add(&mut self.remarks);
            let id = self.id(time_us, &["interrupted", about]);
            self.last_remark = Some(LastWords { id, text: String::new() });
        }
    }

    fn event(
        &self,
        what: &'static str,
        id: Id,
        make: &dyn Fn() -> Event,
        each: &mut Each<'_>,
    ) -> Result<(), Failure> {
        each(Found { what, id, branch: self.place.branch, outcome: Outcome::Event(make) })
    }

    /// Without the session: a fork repeats the rows of the session it began from.
    fn id(&self, time_us: u64, parts: &[&str]) -> Id {
        stable_id(time_us, &[&["transcript", self.place.client], parts].concat())
    }
}
