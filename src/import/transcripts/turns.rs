//! Reads the records of clients whose rows are parts of turns.

use super::turn::{Call, CaptureRules, OnFound, RowOrigin, Turn};
use crate::sink::stable_id;
use claude_mem_capture::{Remarks, ToolUse, TurnPart, TurnRow, clients::past::PastSessions};
use claude_mem_core::failure::Failure;
use claude_mem_events::Id;

/// State of the conversion of one file.
#[derive(Debug)]
pub(super) struct Turns<'a> {
    past: &'a PastSessions,
    /// The name of the client.
    client: &'a str,
    place: RowOrigin<'a>,
    turn: Turn<'a>,
}

impl<'a> Turns<'a> {
    pub(super) fn new(
        past: &'a PastSessions,
        client: &'a str,
        place: RowOrigin<'a>,
        habits: &'a CaptureRules,
    ) -> Self {
        Self { past, client, place, turn: Turn::new(habits) }
    }

    pub(super) fn row(
        &mut self,
        time_us: u64,
        row: TurnRow,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        match row {
            TurnRow::Other | TurnRow::Stopped => Ok(()),
            // The task of a subagent is in the call that started it.
            TurnRow::Prompt { .. } if !self.place.agent_id.is_empty() => Ok(()),
            TurnRow::Prompt { text, .. } => {
                self.end(each)?;
                if text.trim().is_empty() {
                    return Ok(());
                }
                let id = self.id(time_us, &["prompt", &text]);
                self.turn.prompt(id, &text, "", &self.place, each)
            }
            TurnRow::Parts { parts, .. } => {
                parts.into_iter().try_for_each(|part| self.part(time_us, part, each))
            }
        }
    }

    /// Ends the last turn, at the end of the record.
    pub(super) fn end_of_record(&mut self, each: &mut OnFound<'_>) -> Result<(), Failure> {
        self.turn.end_of_record();
        self.end(each)
    }

    fn end(&mut self, each: &mut OnFound<'_>) -> Result<(), Failure> {
        let (client, finish) = (self.client, self.past.finish);
        let open = |call_id: &str, call: Call| {
            let mut used = ToolUse { tool: call.tool.into(), ..ToolUse::default() };
            finish(&mut used);
            (id_of(client, call.time_us, &["call", call_id]), used.tool.into_owned())
        };
        self.turn.end(open, each)
    }

    fn part(
        &mut self,
        time_us: u64,
        part: TurnPart,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        match part {
            TurnPart::AssistantText(text) if !text.trim().is_empty() => {
                let id = self.id(time_us, &["stop", &text]);
                self.remark(time_us, &text, |remarks| remarks.assistant_text(&text));
                self.turn.assistant_text(id, text, self.place.clone());
            }
            TurnPart::Called { tool_use_id, tool, input } => {
                self.remark(time_us, &tool_use_id, |remarks| remarks.called(&tool_use_id));
                let call = Call { time_us, tool, input, agent_type: String::new() };
                self.turn.called(tool_use_id, call);
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
            TurnPart::Compacted(text) if !self.turn.was_private() => {
                self.remark(time_us, &text, |remarks| remarks.compacted(&text));
            }
            TurnPart::ApiError(text) => {
                self.remark(time_us, &text, |remarks| remarks.api_error(&text));
            }
            TurnPart::AssistantText(_) | TurnPart::Compacted(_) => {}
        }
        Ok(())
    }

    fn tool_used(
        &mut self,
        time_us: u64,
        call_id: &str,
        result: ToolUse<'_>,
        each: &mut OnFound<'_>,
    ) -> Result<(), Failure> {
        let Some(call) = self.turn.take_call(call_id) else { return Ok(()) };
        let mut used = ToolUse {
            tool: call.tool.into(),
            input: call.input.into(),
            tool_use_id: call_id.into(),
            ..result
        };
        (self.past.finish)(&mut used);
        self.turn.used(self.id(time_us, &[call_id]), &used, &self.place, each)
    }

    /// Adds to the remarks of the turn. Messages of subagents are in their reports.
    fn remark(&mut self, time_us: u64, about: &str, add: impl FnOnce(&mut Remarks)) {
        if self.place.agent_id.is_empty() {
            let id = self.id(time_us, &["interrupted", about]);
            self.turn.remark(id, self.place.clone(), add);
        }
    }

    fn id(&self, time_us: u64, parts: &[&str]) -> Id {
        id_of(self.client, time_us, parts)
    }
}

/// Without the session: a fork repeats the rows of the session it began from.
fn id_of(client: &str, time_us: u64, parts: &[&str]) -> Id {
    stable_id(time_us, &[&["transcript", client], parts].concat())
}
