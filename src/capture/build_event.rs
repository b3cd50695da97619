//! Builds an event from what a client reported: applies private turns and tool exclusions, redacts every
//! field.

use std::{borrow::Cow, io, path::Path};

use claude_mem_events::{
    Event, PromptSubmitted, SessionEnded, SessionStarted, Submitter, SummaryRequested, ToolUsed,
};

use crate::{
    clients::{self, Client},
    incoming::{Incoming, LastMessages, Prompt, SessionEnd, SessionStart, Skip, Stop, ToolUse},
    payload::Payload,
    private_turn::PrivateTurn,
    transcript,
};
use claude_mem_core::settings::{Settings, table::SKIP_TOOLS};
use claude_mem_privacy::{Policy, clean_json, clean_text, is_only_task_notification};

/// Stands for a prompt without text.
pub const MEDIA: &str = "[media prompt]";

/// Builds one event of a session that is recorded.
pub(super) struct EventBuilder<'r, 'a> {
    pub(super) settings: &'r Settings,
    pub(super) policy: Policy,
    pub(super) cwd: String,
    pub(super) turn: PrivateTurn,
    /// Reads transcripts. `None` if no path in the event may be opened.
    pub(super) transcripts_of: Option<&'static Client>,
    /// The fields that the client's parser did not take.
    pub(super) rest: Payload<'a>,
    /// Bytes of text so far, so that the whole record stays below the log's limit.
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
        match incoming {
            Incoming::SessionStart(start) => Ok(self.session_started(&start).into()),
            Incoming::Prompt(prompt) => self.prompt_submitted(&prompt).map(Event::from),
            Incoming::ToolUse(tool_use) => Ok(self.tool_used(&tool_use)?.into()),
            Incoming::Stop(stop) => Ok(self.summary_requested(stop)?.into()),
            Incoming::SessionEnd(end) => Ok(self.session_ended(&end).into()),
        }
    }

    fn session_started(&mut self, start: &SessionStart<'_>) -> SessionStarted {
        SessionStarted {
            source: self.text(&start.source),
            cwd: std::mem::take(&mut self.cwd),
            model: self.text(&start.model),
            transcript_path: self.text(&start.transcript_path),
            extra: self.extra(),
        }
    }

    /// A wholly private prompt makes the whole turn private. The marker is written before the prompt is
    /// recorded, so that no tool of this turn can come before it.
    fn prompt_submitted(&mut self, prompt: &Prompt<'_>) -> Result<PromptSubmitted, NotBuilt> {
        let prompt_id = self.text(&prompt.prompt_id);
        let cleaned = clean_text(&prompt.text, self.policy());
        let submitter = match prompt.text.trim() {
            "" => Submitter::UserMedia,
            text if is_only_task_notification(text) => Submitter::TaskNotification,
            _ => Submitter::User,
        };
        let is_private = match (submitter, cleaned.wholly_private) {
            // The result of a background task is as private as the turn that started it.
            (Submitter::TaskNotification, _) => self.turn.is_on(),
            (_, true) => {
                self.turn.begin(&prompt_id).map_err(NotBuilt::Marker)?;
                true
            }
            (_, false) => {
                // A prompt queued into a running turn has the id of that turn. The prompt is public, the
                // turn stays private.
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
            _ => cleaned.text,
        };
        let cwd = std::mem::take(&mut self.cwd);
        let extra = if is_private { String::new() } else { self.extra() };
        Ok(PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra })
    }

    fn tool_used(&mut self, tool_use: &ToolUse<'_>) -> Result<ToolUsed, Skip> {
        let tool = self.text(&tool_use.tool);
        if self.turn.is_on() {
            return Err(Skip::Private);
        }
        if clients::is_our_tool(&tool) {
            return Err(Skip::OurTool);
        }
        if self.settings.is_doubtful(&SKIP_TOOLS) || self.settings.get(&SKIP_TOOLS).contains(&tool)
        {
            return Err(Skip::Tool);
        }
        Ok(ToolUsed {
            tool,
            input: self.json(&tool_use.input),
            output: self.json(&tool_use.output),
            error: self.text(&tool_use.error),
            has_failed: tool_use.has_failed,
            is_interrupt: tool_use.is_interrupt,
            tool_use_id: self.text(&tool_use.tool_use_id),
            cwd: std::mem::take(&mut self.cwd),
            agent_id: self.text(&tool_use.agent_id),
            agent_type: self.text(&tool_use.agent_type),
            prompt_id: self.text(&tool_use.prompt_id),
            duration_ms: tool_use.duration_ms,
            extra: self.extra(),
        })
    }

    fn summary_requested(&mut self, stop: Stop<'_>) -> Result<SummaryRequested, Skip> {
        if self.turn.is_on() {
            return Err(Skip::Private);
        }
        let agent_type = self.text(&stop.agent_type);
        let (user, assistant) = match stop.last_messages {
            LastMessages::Given { user, assistant } => (user, assistant),
            LastMessages::InTranscript(path) => {
                let read_line = self.transcripts_of.and_then(|client| client.transcript_line);
                let last = match (path, read_line) {
                    (Some(path), Some(read_line)) => {
                        let read_line = |line: &[u8]| read_line(line, stop.scope);
                        transcript::last_messages(Path::new(&*path), read_line)
                    }
                    _ => transcript::Last::default(),
                };
                (Cow::Owned(last.user), Cow::Owned(last.assistant))
            }
        };
        Ok(SummaryRequested {
            scope: stop.scope,
            last_user_message: self.text(&user),
            last_assistant_message: self.text(&assistant),
            is_stop_hook_active: stop.is_stop_hook_active,
            background_tasks: stop.background_tasks,
            agent_id: self.text(&stop.agent_id),
            agent_type,
            prompt_id: self.text(&stop.prompt_id),
            cwd: std::mem::take(&mut self.cwd),
            extra: self.extra(),
            remarks: Vec::new(),
        })
    }

    /// A private turn ends with its session.
    fn session_ended(&mut self, end: &SessionEnd<'_>) -> SessionEnded {
        self.turn.end();
        SessionEnded { reason: self.text(&end.reason), extra: self.extra() }
    }

    fn text(&mut self, text: &str) -> String {
        if text.is_empty() {
            return String::new();
        }
        let text = clean_text(text, self.policy()).text;
        self.bytes_used += text.len();
        text
    }

    fn json(&mut self, json: &str) -> String {
        if json.is_empty() {
            return String::new();
        }
        let json = clean_json(json, self.policy());
        self.bytes_used += json.len();
        json
    }

    /// Fields that no client's parser knows.
    fn extra(&mut self) -> String {
        let rest = std::mem::take(&mut self.rest).rest();
        if rest.is_empty() { rest } else { clean_json(&rest, self.policy()) }
    }

    fn policy(&self) -> Policy {
        self.policy.after(self.bytes_used)
    }
}
