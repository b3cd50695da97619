//! Converts one transcript, row by row, to the events that hooks would have recorded.

use std::{borrow::Cow, collections::HashMap, path::Path};

use claude_mem_events::{
    Event, Id, PromptSubmitted, SessionStarted, StopScope, Submitter, SummaryRequested, ToolUsed,
};

use crate::sink::stable_id;
use claude_mem_capture::{
    MEDIA, Refusal, Remarks,
    clients::is_our_tool,
    submitter,
    transcript_rows::{Block, Row, as_typed, joined},
};
use claude_mem_core::failure::Failure;
use claude_mem_privacy::{Policy, redact_json, redact_text};

/// Settings of the hooks.
#[derive(Debug)]
pub(super) struct Habits {
    pub(super) policy: Policy,
    pub(super) skipped_tools: Vec<String>,
}

impl Habits {
    /// Why a use of this tool is not recorded in this turn, whatever came of it.
    pub(super) fn reason(&self, tool: &str, is_private: bool) -> Option<&'static str> {
        if is_private {
            return Some("in private turns");
        }
        if is_our_tool(tool) {
            return Some("of claude-mem itself");
        }
        let is_skipped = self.skipped_tools.iter().any(|skipped| skipped == tool);
        is_skipped.then_some("of skipped tools")
    }
}

/// An event, or a tool use that becomes none.
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

pub(super) type Each<'a> = dyn FnMut(Found<'_>) -> Result<(), Failure> + 'a;

/// State of the conversion.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    habits: &'a Habits,
    transcript_path: String,
    /// Calls without a result so far.
    calls: HashMap<String, Call>,
    /// The turn's id; empty on older clients.
    prompt_id: String,
    /// This turn is private and not stored.
    is_private: bool,
    /// A turn was private: what the client sums up later may contain it.
    was_private: bool,
    /// The last message of the assistant, if no action followed.
    last_words: Option<LastWords>,
    /// What else was said in the turn.
    remarks: Remarks,
    /// The last row with a remark, in place of a last message that never came.
    last_remark: Option<LastWords>,
}

#[derive(Debug)]
struct Call {
    time_us: u64,
    tool: String,
    input: String,
    agent_type: String,
}

#[derive(Debug)]
struct LastWords {
    id: Id,
    text: String,
    cwd: String,
    branch: String,
    agent_id: String,
    agent_type: String,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(file: &Path, habits: &'a Habits) -> Self {
        Self {
            habits,
            transcript_path: file.to_string_lossy().into_owned(),
            calls: HashMap::new(),
            prompt_id: String::new(),
            is_private: false,
            was_private: false,
            last_words: None,
            remarks: Remarks::default(),
            last_remark: None,
        }
    }

    pub(super) fn row(&mut self, row: &Row<'_>, each: &mut Each<'_>) -> Result<(), Failure> {
        match row.kind().as_ref() {
            "user" => self.user(row, each),
            "assistant" if row.is_api_error() => {
                self.remark(row, |remarks| remarks.api_error(&row.text()));
                Ok(())
            }
            "assistant" if !row.is_hidden() => {
                self.assistant(row);
                Ok(())
            }
            "attachment" => match row.queued_prompt() {
                Some(prompt) => {
                    let prompt_id = self.prompt_id.clone();
                    self.prompt(row, &prompt, &prompt_id, each)
                }
                None => Ok(()),
            },
            "system" if row.is_compaction() => self.compaction(row, each),
            _ => Ok(()),
        }
    }

    /// Ends the last turn. One that was interrupted has no last message, but what was said in it counts.
    pub(super) fn end(&mut self, each: &mut Each<'_>) -> Result<(), Failure> {
        let mut calls: Vec<(String, Call)> = self.calls.drain().collect();
        calls.sort_by_key(|(id, call)| (call.time_us, id.clone()));
        for (call_id, call) in calls {
            let reason = self.habits.reason(&call.tool, self.is_private).unwrap_or(NO_RESULT);
            let id = stable_id(call.time_us, &["transcript", "call", &call_id]);
            each(Found { what: "ToolUsed", id, branch: "", outcome: Outcome::LeftOut(reason) })?;
        }
        let (mut remarks, last_remark) =
            (std::mem::take(&mut self.remarks), self.last_remark.take());
        let words = self.last_words.take();
        let Some(words) = words.or(last_remark.filter(|_| !remarks.is_empty())) else {
            return Ok(());
        };
        if self.is_private {
            return Ok(());
        }
        let policy = self.habits.policy;
        let remarks = remarks.take(&words.text, policy);
        let make = || {
            let is_aside = !words.agent_id.is_empty();
            let stop = SummaryRequested {
                scope: if is_aside { StopScope::Subagent } else { StopScope::Turn },
                last_assistant_message: redact_text(&words.text, policy).text,
                remarks: remarks.clone(),
                agent_id: words.agent_id.clone(),
                agent_type: words.agent_type.clone(),
                prompt_id: self.prompt_id.clone(),
                cwd: words.cwd.clone(),
                ..SummaryRequested::default()
            };
            stop.into()
        };
        let (id, branch) = (words.id, words.branch.as_str());
        each(Found { what: "SummaryRequested", id, branch, outcome: Outcome::Event(&make) })
    }

    fn user(&mut self, row: &Row<'_>, each: &mut Each<'_>) -> Result<(), Failure> {
        let blocks = row.blocks();
        let results: Vec<_> = blocks.iter().filter(|block| block.kind() == "tool_result").collect();
        // With several results in one row, the hook payload of each is unknown.
        let told = row.tool_result().filter(|_| results.len() == 1);
        for result in &results {
            self.tool_used(row, result, told, each)?;
        }
        if row.is_compaction_summary() && !self.was_private {
            self.remark(row, |remarks| remarks.compacted(&joined(&blocks)));
        }
        if !results.is_empty() || row.is_hidden() {
            return Ok(());
        }
        if row.is_aside() {
            // The assistant's prompt for a subagent; its results still belong to the turn.
            self.prompt_id = row.prompt_id().into_owned();
            return Ok(());
        }
        let text = joined(&blocks);
        let is_media = blocks.iter().any(|block| matches!(&*block.kind(), "image" | "document"));
        match as_typed(&text) {
            Some(typed) if is_media || !typed.trim().is_empty() => {
                self.end(each)?;
                self.prompt(row, &typed, &row.prompt_id(), each)
            }
            _ => Ok(()),
        }
    }

    fn prompt(
        &mut self,
        row: &Row<'_>,
        text: &str,
        prompt_id: &str,
        each: &mut Each<'_>,
    ) -> Result<(), Failure> {
        let Some(time_us) = row.time_us() else { return Ok(()) };
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
        let make = || {
            let prompt = match submitter {
                _ if is_private => String::new(),
                Submitter::UserMedia => MEDIA.into(),
                _ => redacted.text.clone(),
            };
            let (prompt_id, cwd) = (prompt_id.to_owned(), row.cwd().into_owned());
            let extra = String::new();
            PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra }.into()
        };
        let id = stable_id(time_us, &["transcript", &row.identity()]);
        let (branch, outcome) = (&*row.branch(), Outcome::Event(&make));
        each(Found { what: "PromptSubmitted", id, branch, outcome })
    }

    fn assistant(&mut self, row: &Row<'_>) {
        for block in row.blocks() {
            match &*block.kind() {
                "text" => {
                    self.remark(row, |remarks| remarks.said(&block.text()));
                    self.said(row, block.text());
                }
                "tool_use" => {
                    self.last_words = None;
                    self.remark(row, |remarks| remarks.called(&block.call_id()));
                    let tool = block.tool().into_owned();
                    let agent_type = row.agent_type().into_owned();
                    let time_us = row.time_us().unwrap_or_default();
                    let call = Call { time_us, tool, input: block.input().into(), agent_type };
                    self.calls.insert(block.call_id().into_owned(), call);
                }
                _ => {}
            }
        }
    }

    /// Adds to the remarks of the turn. What subagents say is in their reports.
    fn remark(&mut self, row: &Row<'_>, add: impl FnOnce(&mut Remarks)) {
        let Some(time_us) = row.time_us().filter(|_| !row.is_aside()) else { return };
        add(&mut self.remarks);
        self.last_remark = Some(LastWords {
            id: stable_id(time_us, &["transcript", "interrupted", &row.identity()]),
            text: String::new(),
            cwd: row.cwd().into_owned(),
            branch: row.branch().into_owned(),
            agent_id: String::new(),
            agent_type: String::new(),
        });
    }

    /// In the transcript of a session, an unnamed side chain is another conversation.
    fn said(&mut self, row: &Row<'_>, text: Cow<'_, str>) {
        let agent_id = row.agent_id();
        if row.is_aside() && agent_id.is_empty() || text.trim().is_empty() {
            return;
        }
        let Some(time_us) = row.time_us() else { return };
        self.last_words = Some(LastWords {
            id: stable_id(time_us, &["transcript", "stop", &row.identity()]),
            text: text.into_owned(),
            cwd: row.cwd().into_owned(),
            branch: row.branch().into_owned(),
            agent_id: agent_id.into_owned(),
            agent_type: row.agent_type().into_owned(),
        });
    }

    fn tool_used(
        &mut self,
        row: &Row<'_>,
        result: &Block<'_>,
        told: Option<&str>,
        each: &mut Each<'_>,
    ) -> Result<(), Failure> {
        let call_id = result.call_id();
        let Some(call) = self.calls.remove(call_id.as_ref()) else { return Ok(()) };
        let Some(time_us) = row.time_us() else { return Ok(()) };
        let error = if result.is_error() { row.error_of(result) } else { String::new() };
        let id = stable_id(time_us, &["transcript", &call_id]);
        let refusal = Refusal::of(&error);
        let reason = match (self.habits.reason(&call.tool, self.is_private), &refusal) {
            (None, Some(_)) => Some("rejected or denied"),
            (None, None) if never_ran(&error) => Some("refused by the client"),
            (reason, _) => reason,
        };
        // What the user said counts, whatever the tool is.
        if let Some(refusal) = &refusal
            && (reason == Some("rejected or denied") || matches!(refusal, Refusal::Words(_)))
        {
            let remark = |remarks: &mut Remarks| {
                remarks.refused(refusal, &call_id, &call.tool, &call.input);
            };
            self.remark(row, remark);
        }
        if let Some(reason) = reason {
            return each(Found {
                what: "ToolUsed",
                id,
                branch: "",
                outcome: Outcome::LeftOut(reason),
            });
        }
        let policy = self.habits.policy;
        let prompt_id = match row.prompt_id() {
            none if none.is_empty() => Cow::Borrowed(self.prompt_id.as_str()),
            prompt_id => prompt_id,
        };
        let make = || {
            let input = redact_json(&call.input, policy);
            let policy = policy.after(input.len());
            let output = match (result.is_error(), told) {
                (true, _) => String::new(),
                (false, told) => redact_json(told.unwrap_or(result.output()), policy),
            };
            let used = ToolUsed {
                tool: redact_text(&call.tool, policy).text,
                error: redact_text(&error, policy.after(output.len())).text,
                has_failed: result.is_error(),
                input,
                output,
                tool_use_id: call_id.clone().into_owned(),
                cwd: row.cwd().into_owned(),
                agent_id: row.agent_id().into_owned(),
                agent_type: call.agent_type.clone(),
                prompt_id: prompt_id.clone().into_owned(),
                ..ToolUsed::default()
            };
            used.into()
        };
        let (branch, outcome) = (&*row.branch(), Outcome::Event(&make));
        each(Found { what: "ToolUsed", id, branch, outcome })
    }

    /// The client compacted the conversation, and the session continued.
    fn compaction(&mut self, row: &Row<'_>, each: &mut Each<'_>) -> Result<(), Failure> {
        let Some(time_us) = row.time_us() else { return Ok(()) };
        let make = || {
            let started = SessionStarted {
                source: "compact".into(),
                cwd: row.cwd().into_owned(),
                transcript_path: self.transcript_path.clone(),
                ..SessionStarted::default()
            };
            started.into()
        };
        let id = stable_id(time_us, &["transcript", &row.identity()]);
        let (branch, outcome) = (&*row.branch(), Outcome::Event(&make));
        each(Found { what: "SessionStarted", id, branch, outcome })
    }
}

/// The turn, or the transcript, ends before the result.
pub(super) const NO_RESULT: &str = "without a result";

/// Hooks do not receive calls with an input that the client refused.
fn never_ran(error: &str) -> bool {
    error.starts_with("<tool_use_error>")
}
