//! Builds an event from a client's report: applies private turns and tool exclusions, and redacts
//! every text of the event.

use std::{borrow::Cow, collections::HashMap, io, path::Path};

use claude_mem_events::{
    Event, PromptSubmitted, SessionEnded, SessionStarted, StopScope, Submitter, SummaryRequested,
    TextForm, ToolUsed, VisitTexts as _,
};

use crate::{
    clients::{self, Client},
    exclusion::names_excluded_file,
    incoming::{Incoming, LastMessages, Prompt, SessionEnd, SessionStart, Skip, Stop, ToolUse},
    payload::{Payload, text as json_text},
    private_turn::PrivateTurn,
    remarks::{Refusal, Remarks},
    transcript::{self, TurnPart},
};
use claude_mem_core::settings::{Settings, table::SKIP_TOOLS};
use claude_mem_privacy::{Author, Policy, redact_json, redact_text, typed};

/// Replaces a prompt without text.
pub const MEDIA: &str = "[media prompt]";

/// Finds the submitter of a prompt by its text.
pub fn submitter(text: &str) -> Submitter {
    match typed(text).author {
        Author::Client => Submitter::TaskNotification,
        Author::Teammate => Submitter::Teammate,
        Author::User if text.trim().is_empty() => Submitter::UserMedia,
        Author::User => Submitter::User,
    }
}

/// Whether one text ends with another, ignoring white space.
fn ends_with_words(text: &str, end: &str) -> bool {
    let backwards =
        |text: &str| text.chars().rev().filter(|c| !c.is_whitespace()).collect::<Vec<_>>();
    backwards(text).starts_with(&backwards(end))
}

/// Builds one event of a session that is recorded.
pub(super) struct EventBuilder<'r, 'a> {
    pub(super) settings: &'r Settings,
    pub(super) home: Option<&'r Path>,
    pub(super) policy: Policy,
    pub(super) cwd: String,
    pub(super) turn: PrivateTurn,
    /// Reads transcripts. `None` if no path in the event may be opened.
    pub(super) transcripts_of: Option<&'static Client>,
    /// The fields that the client's parser did not take.
    pub(super) rest: Payload<'a>,
    /// Bytes of text so far. Keeps the record below the log's size limit.
    pub(super) bytes_used: usize,
}

/// Why there is no event.
#[derive(Debug)]
pub(super) enum NotBuilt {
    Skipped(Skip),
    /// The marker of a private turn could not be written.
    Marker(io::Error),
}

impl From<Skip> for NotBuilt {
    fn from(skip: Skip) -> Self {
        Self::Skipped(skip)
    }
}

impl EventBuilder<'_, '_> {
    pub(super) fn build(mut self, incoming: Incoming<'_>) -> Result<Event, NotBuilt> {
        let mut event = match incoming {
            Incoming::SessionStart(start) => self.session_started(start).into(),
            Incoming::Prompt(prompt) => self.prompt_submitted(&prompt)?.into(),
            Incoming::FileUse(_) | Incoming::Answer(_) => return Err(Skip::NotForUs.into()),
            Incoming::ToolUse(tool_use) => self.tool_used(tool_use)?.into(),
            Incoming::Stop(stop) => self.summary_requested(stop)?.into(),
            Incoming::SessionEnd(end) => self.session_ended(end).into(),
        };
        self.redact(&mut event);
        Ok(event)
    }

    /// Redacts every text of an event, and cuts what would make the record too long.
    fn redact(&mut self, event: &mut Event) {
        event.visit_texts(&mut |form, text| {
            if text.is_empty() {
                return;
            }
            let policy = self.policy.after(self.bytes_used);
            *text = match form {
                TextForm::Json => redact_json(text, policy),
                TextForm::Plain | TextForm::Path | TextForm::Reply => {
                    redact_text(text, policy).text
                }
            };
            self.bytes_used += text.len();
        });
    }

    fn session_started(&mut self, start: SessionStart<'_>) -> SessionStarted {
        SessionStarted {
            source: start.source.into(),
            cwd: std::mem::take(&mut self.cwd),
            model: start.model.into(),
            transcript_path: start.transcript_path.into(),
            extra: self.extra(),
        }
    }

    /// A fully private prompt makes the whole turn private. The marker is written before the prompt
    /// is recorded, so that later tool uses of the turn always see it.
    fn prompt_submitted(&mut self, prompt: &Prompt<'_>) -> Result<PromptSubmitted, NotBuilt> {
        let prompt_id = redact_text(&prompt.prompt_id, self.policy).text;
        let redacted = redact_text(&prompt.text, self.policy);
        let submitter = submitter(&prompt.text);
        let is_private = match (submitter, redacted.wholly_private) {
            // The result of a background task is as private as the turn that started it.
            (Submitter::TaskNotification | Submitter::Teammate, _) => self.turn.is_on(),
            (_, true) => {
                self.turn.begin(&prompt_id).map_err(NotBuilt::Marker)?;
                true
            }
            (_, false) => {
                // A prompt queued into a running turn has the id of that turn. The prompt is
                // public, the turn stays private.
                let is_same_turn = |turn: String| !turn.is_empty() && turn == prompt_id;
                if !self.turn.prompt_id().is_some_and(is_same_turn) {
                    self.turn.end();
                }
                false
            }
        };
        let prompt = match submitter {
            _ if is_private => String::new(),
            Submitter::UserMedia => MEDIA.into(),
            _ => redacted.text,
        };
        let cwd = std::mem::take(&mut self.cwd);
        let extra = if is_private { String::new() } else { self.extra() };
        Ok(PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra })
    }

    fn tool_used(&mut self, mut tool_use: ToolUse<'_>) -> Result<ToolUsed, Skip> {
        if self.turn.is_on() {
            return Err(Skip::Private);
        }
        if let Some(skip) = self.skip(&tool_use.tool) {
            return Err(skip);
        }
        if names_excluded_file(self.settings, &tool_use.input, Path::new(&self.cwd), self.home) {
            return Err(Skip::Project);
        }
        self.find_exit_code(&mut tool_use);
        Ok(ToolUsed {
            tool: tool_use.tool.into(),
            input: tool_use.input.into(),
            output: tool_use.output.into(),
            error: tool_use.error.into(),
            has_failed: tool_use.has_failed,
            is_interrupt: tool_use.is_interrupt,
            tool_use_id: tool_use.tool_use_id.into(),
            cwd: std::mem::take(&mut self.cwd),
            agent_id: tool_use.agent_id.into(),
            agent_type: tool_use.agent_type.into(),
            prompt_id: tool_use.prompt_id.into(),
            duration_ms: tool_use.duration_ms,
            extra: self.extra(),
        })
    }

    /// Some clients report a failed command like a successful one, and only their transcript has
    /// the exit code.
    fn find_exit_code(&self, tool_use: &mut ToolUse<'_>) {
        let find = self.transcripts_of.and_then(|client| client.exit_code);
        let (Some(find), Some(path)) = (find, self.rest.peek_text("transcript_path")) else {
            return;
        };
        if tool_use.tool != "Bash" || tool_use.has_failed || tool_use.tool_use_id.is_empty() {
            return;
        }
        let read_line = |line: &[u8]| find(line, &tool_use.tool_use_id);
        if let Some(exit_code) = transcript::find_latest(Path::new(&*path), read_line) {
            let output = json_text(&tool_use.output).into_owned();
            clients::command_result(tool_use, exit_code, &output);
        }
    }

    /// Why uses of this tool are not recorded; `None` if they are.
    fn skip(&self, tool: &str) -> Option<Skip> {
        if clients::is_our_tool(tool) {
            return Some(Skip::OurTool);
        }
        let is_skipped = self.settings.is_doubtful(&SKIP_TOOLS)
            || self.settings.get(&SKIP_TOOLS).iter().any(|skipped| skipped == tool);
        is_skipped.then_some(Skip::Tool)
    }

    fn summary_requested(&mut self, stop: Stop<'_>) -> Result<SummaryRequested, Skip> {
        if self.turn.is_on() {
            return Err(Skip::Private);
        }
        if stop.scope == StopScope::Compaction
            && let Some(transcript) = &stop.transcript
            && self.transcripts_of.is_some()
            && transcript::mentions_private(Path::new(&**transcript))
        {
            return Err(Skip::Private);
        }
        let mut remarks = self.remarks(&stop);
        let (user, assistant) = match stop.last_messages {
            LastMessages::Given { user, assistant } => (user, assistant),
            LastMessages::InTranscript(path) => {
                let last = self.last_in_transcript(path.as_deref(), stop.scope);
                (Cow::Owned(last.user), Cow::Owned(last.assistant))
            }
            LastMessages::Joined { user, assistant, transcript } => {
                let last = self.last_in_transcript(transcript.as_deref(), stop.scope).assistant;
                let is_end = !last.is_empty() && ends_with_words(&assistant, &last);
                (user, if is_end { Cow::Owned(last) } else { assistant })
            }
        };
        Ok(SummaryRequested {
            scope: stop.scope,
            remarks: remarks.take(&assistant, self.policy),
            last_user_message: user.into(),
            last_assistant_message: assistant.into(),
            is_stop_hook_active: stop.is_stop_hook_active,
            background_tasks: stop.background_tasks,
            agent_id: stop.agent_id.into(),
            agent_type: stop.agent_type.into(),
            prompt_id: stop.prompt_id.into(),
            cwd: std::mem::take(&mut self.cwd),
            extra: self.extra(),
        })
    }

    fn last_in_transcript(&self, path: Option<&str>, scope: StopScope) -> transcript::LastTexts {
        let Some((client, path)) = self.transcripts_of.zip(path) else {
            return transcript::LastTexts::default();
        };
        let Some(read_line) = client.transcript_line else {
            return transcript::LastTexts::default();
        };
        let read_line = |line: &[u8]| read_line(line, scope);
        transcript::last_messages_within(Path::new(path), client.transcript_lag, read_line)
    }

    /// The transcript's remarks about the turn, besides its last message.
    fn remarks(&self, stop: &Stop<'_>) -> Remarks {
        let mut remarks = Remarks::default();
        let read_row = self.transcripts_of.and_then(|client| client.turn_row);
        if let (Some(path), Some(read_row), StopScope::Turn) =
            (&stop.transcript, read_row, stop.scope)
        {
            let parts = transcript::turn_parts(Path::new(&**path), &stop.prompt_id, read_row);
            self.collect(parts, &mut remarks);
        }
        remarks.api_error(&stop.api_error);
        remarks
    }

    fn collect(&self, parts: Vec<TurnPart>, remarks: &mut Remarks) {
        let mut calls: HashMap<String, (String, String)> = HashMap::new();
        for part in parts {
            match part {
                TurnPart::AssistantText(text) => remarks.assistant_text(&text),
                TurnPart::Called { tool_use_id, tool, input } => {
                    remarks.called(&tool_use_id);
                    calls.insert(tool_use_id, (tool, input));
                }
                TurnPart::Failed { tool_use_id, error } => {
                    let (tool, input) = calls.remove(&tool_use_id).unwrap_or_default();
                    match Refusal::of(&tool, &error) {
                        // The user's reason is recorded even if the tool is excluded.
                        Some(refusal @ Refusal::Words(_)) => {
                            remarks.refused(&refusal, &tool_use_id, &tool, &input);
                        }
                        Some(Refusal::Silent) if !tool.is_empty() && self.skip(&tool).is_none() => {
                            remarks.refused(&Refusal::Silent, &tool_use_id, &tool, &input);
                        }
                        _ => {}
                    }
                }
                TurnPart::Done { .. } => {}
                TurnPart::Compacted(text) => remarks.compacted(&text),
                TurnPart::ApiError(text) => remarks.api_error(&text),
            }
        }
    }

    /// A private turn ends with its session.
    fn session_ended(&mut self, end: SessionEnd<'_>) -> SessionEnded {
        self.turn.end();
        SessionEnded { reason: end.reason.into(), extra: self.extra() }
    }

    /// Fields that the client's parser did not recognize.
    fn extra(&mut self) -> String {
        std::mem::take(&mut self.rest).rest()
    }
}
