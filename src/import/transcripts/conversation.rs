//! Reads one transcript of Claude Code, row by row.

use std::{borrow::Cow, path::Path};

use claude_mem_events::SessionStarted;

use super::turn::{Call, CaptureRules, Found, OnFound, Outcome, RowOrigin, Turn, left_out};
use crate::sink::stable_id;
use claude_mem_capture::{
    Refusal, Remarks, ToolUse,
    transcript_rows::{Block, Row, as_typed, joined},
};
use claude_mem_core::failure::Failure;

/// State of the conversion.
#[derive(Debug)]
pub(super) struct Conversation<'a> {
    transcript_path: String,
    turn: Turn<'a>,
}

impl<'a> Conversation<'a> {
    pub(super) fn new(file: &Path, habits: &'a CaptureRules) -> Self {
        let transcript_path = file.to_string_lossy().into_owned();
        Self { transcript_path, turn: Turn::new(habits) }
    }

    pub(super) fn row(&mut self, row: &Row<'_>, each: &mut OnFound<'_>) -> Result<(), Failure> {
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
                    let prompt_id = self.turn.prompt_id.clone();
                    self.prompt(row, &prompt, &prompt_id, each)
                }
                None => Ok(()),
            },
            "system" if row.is_compaction() => self.compaction(row, each),
            _ => Ok(()),
        }
    }

    /// Ends the last turn, at the end of the file.
    pub(super) fn end_of_record(&mut self, each: &mut OnFound<'_>) -> Result<(), Failure> {
        self.turn.end_of_record();
        self.end(each)
    }

    /// Ends a turn.
    fn end(&mut self, each: &mut OnFound<'_>) -> Result<(), Failure> {
        let open = |call_id: &str, call: Call| {
            (stable_id(call.time_us, &["transcript", "call", call_id]), call.tool)
        };
        self.turn.end(open, each)
    }

    fn user(&mut self, row: &Row<'_>, each: &mut OnFound<'_>) -> Result<(), Failure> {
        let blocks = row.blocks();
        let results: Vec<_> = blocks.iter().filter(|block| block.kind() == "tool_result").collect();
        // With several results in one row, the hook payload of each is unknown.
        let hook_output = row.tool_result().filter(|_| results.len() == 1);
        for result in &results {
            self.tool_used(row, result, hook_output, each)?;
        }
        if row.is_compaction_summary() && !self.turn.was_private() {
            self.remark(row, |remarks| remarks.compacted(&joined(&blocks)));
        }
        if !results.is_empty() || row.is_hidden() {
            return Ok(());
        }
        if row.is_aside() {
            // The assistant's prompt for a subagent; its results still belong to the turn.
            self.turn.prompt_id = row.prompt_id().into_owned();
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
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        let Some(time_us) = row.time_us() else { return Ok(()) };
        let id = stable_id(time_us, &["transcript", &row.identity()]);
        self.turn.prompt(id, text, prompt_id, &place(row), each)
    }

    fn assistant(&mut self, row: &Row<'_>) {
        for block in row.blocks() {
            match &*block.kind() {
                "text" => {
                    self.remark(row, |remarks| remarks.assistant_text(&block.text()));
                    self.assistant_text(row, block.text());
                }
                "tool_use" => {
                    self.remark(row, |remarks| remarks.called(&block.call_id()));
                    let tool = block.tool().into_owned();
                    let agent_type = row.agent_type().into_owned();
                    let time_us = row.time_us().unwrap_or_default();
                    let call =
                        Call { time_us, tool, input: block.input().into_owned(), agent_type };
                    self.turn.called(block.call_id().into_owned(), call);
                }
                _ => {}
            }
        }
    }

    /// Adds to the remarks of the turn. Messages of subagents are in their reports.
    fn remark(&mut self, row: &Row<'_>, add: impl FnOnce(&mut Remarks)) {
        let Some(time_us) = row.time_us().filter(|_| !row.is_aside()) else { return };
        let id = stable_id(time_us, &["transcript", "interrupted", &row.identity()]);
        self.turn.remark(id, own_place(row), add);
    }

    /// In the transcript of a session, an unnamed side chain is another conversation.
    fn assistant_text(&mut self, row: &Row<'_>, text: Cow<'_, str>) {
        let agent_id = row.agent_id();
        if row.is_aside() && agent_id.is_empty() || text.trim().is_empty() {
            return;
        }
        let Some(time_us) = row.time_us() else { return };
        let id = stable_id(time_us, &["transcript", "stop", &row.identity()]);
        let place = RowOrigin {
            agent_id: agent_id.into_owned().into(),
            agent_type: row.agent_type().into_owned().into(),
            ..own_place(row)
        };
        self.turn.assistant_text(id, text.into_owned(), place);
    }

    fn tool_used(
        &mut self,
        row: &Row<'_>,
        result: &Block<'_>,
        hook_output: Option<&str>,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        let call_id = result.call_id();
        let Some(call) = self.turn.take_call(&call_id) else { return Ok(()) };
        let Some(time_us) = row.time_us() else { return Ok(()) };
        let error = if result.is_error() { row.error_of(result) } else { String::new() };
        let id = stable_id(time_us, &["transcript", &call_id]);
        let refusal = Refusal::of(&call.tool, &error);
        let reason = match (self.turn.reason(&call.tool), &refusal) {
            (None, Some(_)) => Some("rejected or denied"),
            (None, None) if never_ran(&error) => Some("refused by the client"),
            (reason, _) => reason,
        };
        // The user's reason is recorded even if the tool is excluded.
        if let Some(refusal) = &refusal
            && (reason == Some("rejected or denied") || matches!(refusal, Refusal::Words(_)))
        {
            let remark = |remarks: &mut Remarks| {
                remarks.refused(refusal, &call_id, &call.tool, &call.input);
            };
            self.remark(row, remark);
        }
        if let Some(reason) = reason {
            return left_out(id, reason, each);
        }
        let prompt_id = match row.prompt_id() {
            none if none.is_empty() => Cow::Owned(self.turn.prompt_id.clone()),
            prompt_id => prompt_id,
        };
        let (agent_id, agent_type) = (row.agent_id(), call.agent_type.into());
        let place = RowOrigin { agent_id, agent_type, ..place(row) };
        let output = match result.is_error() {
            true => "",
            false => hook_output.unwrap_or(result.output()),
        };
        let used = ToolUse {
            tool: call.tool.into(),
            input: call.input.into(),
            output: output.into(),
            error: error.into(),
            has_failed: result.is_error(),
            tool_use_id: call_id,
            prompt_id,
            ..ToolUse::default()
        };
        self.turn.used(id, &used, &place, each)
    }

    /// The client compacted the conversation, and the session continued.
    fn compaction(&mut self, row: &Row<'_>, each: &mut OnFound<'_>) -> Result<(), Failure> {
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

/// The origin of a row of the main conversation.
fn place<'r>(row: &'r Row<'_>) -> RowOrigin<'r> {
    RowOrigin { cwd: row.cwd(), branch: row.branch(), ..RowOrigin::default() }
}

/// The same, independent of the row.
fn own_place(row: &Row<'_>) -> RowOrigin<'static> {
    RowOrigin {
        cwd: row.cwd().into_owned().into(),
        branch: row.branch().into_owned().into(),
        ..RowOrigin::default()
    }
}

/// Hooks do not receive calls with an input that the client refused.
fn never_ran(error: &str) -> bool {
    error.starts_with("<tool_use_error>")
}
