//! Converts one transcript, row by row, to the events that hooks would have recorded.

use std::{borrow::Cow, collections::HashMap, path::Path};

use claude_mem_events::{
    Event, Id, PromptSubmitted, SessionStarted, StopScope, Submitter, SummaryRequested, ToolUsed,
};

use crate::{
    sink::stable_id,
    transcript_rows::{Block, Row},
};
use claude_mem_capture::MEDIA;
use claude_mem_core::failure::Failure;
use claude_mem_privacy::{Policy, clean_json, clean_text, is_only_task_notification};

/// Settings of the hooks.
#[derive(Debug)]
pub(super) struct Habits {
    pub(super) policy: Policy,
    pub(super) skipped_tools: Vec<String>,
}

/// An event, built only if it is new: redaction is most of the work.
pub(super) struct Found<'a> {
    pub(super) what: &'static str,
    pub(super) id: Id,
    pub(super) make: &'a dyn Fn() -> Event,
}

type Each<'a> = dyn FnMut(Found<'_>) -> Result<(), Failure> + 'a;

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
    /// The last message of the assistant, if no action followed.
    last_words: Option<LastWords>,
}

#[derive(Debug)]
struct Call {
    tool: String,
    input: String,
    agent_type: String,
}

#[derive(Debug)]
struct LastWords {
    id: Id,
    text: String,
    cwd: String,
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
            last_words: None,
        }
    }

    pub(super) fn row(&mut self, row: &Row<'_>, each: &mut Each<'_>) -> Result<(), Failure> {
        match row.kind().as_ref() {
            "user" => self.user(row, each),
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

    /// Ends the last turn.
    pub(super) fn end(&mut self, each: &mut Each<'_>) -> Result<(), Failure> {
        let Some(words) = self.last_words.take() else { return Ok(()) };
        if self.is_private {
            return Ok(());
        }
        let policy = self.habits.policy;
        let make = || {
            let is_aside = !words.agent_id.is_empty();
            let stop = SummaryRequested {
                scope: if is_aside { StopScope::Subagent } else { StopScope::Turn },
                last_assistant_message: clean_text(&words.text, policy).text,
                agent_id: words.agent_id.clone(),
                agent_type: words.agent_type.clone(),
                prompt_id: self.prompt_id.clone(),
                cwd: words.cwd.clone(),
                ..SummaryRequested::default()
            };
            stop.into()
        };
        each(Found { what: "SummaryRequested", id: words.id, make: &make })
    }

    fn user(&mut self, row: &Row<'_>, each: &mut Each<'_>) -> Result<(), Failure> {
        let blocks = row.blocks();
        let results: Vec<_> = blocks.iter().filter(|block| block.kind() == "tool_result").collect();
        // With several results in one row, the hook payload of each is unknown.
        let told = row.tool_result().filter(|_| results.len() == 1);
        for result in &results {
            self.tool_used(row, result, told, each)?;
        }
        if !results.is_empty() || row.is_hidden() {
            return Ok(());
        }
        if row.is_aside() {
            // The assistant's prompt for a subagent; its results still belong to the turn.
            self.prompt_id = row.prompt_id().into_owned();
            return Ok(());
        }
        let texts: Vec<_> =
            blocks.iter().filter(|block| block.kind() == "text").map(Block::text).collect();
        let text = texts.join("\n");
        let is_media = blocks.iter().any(|block| matches!(&*block.kind(), "image" | "document"));
        match as_typed(&text) {
            Some(typed) if is_media || !typed.trim().is_empty() => {
                self.end(each)?;
                self.calls.clear();
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
        let submitter = match text.trim() {
            "" => Submitter::UserMedia,
            text if is_only_task_notification(text) => Submitter::TaskNotification,
            _ => Submitter::User,
        };
        let cleaned = clean_text(text, self.habits.policy);
        let is_private = match submitter {
            Submitter::TaskNotification => self.is_private,
            _ => cleaned.wholly_private,
        };
        // A prompt queued into a private turn is public, and the turn stays private.
        let is_same_turn = !prompt_id.is_empty() && prompt_id == self.prompt_id;
        self.is_private = is_private || self.is_private && is_same_turn;
        prompt_id.clone_into(&mut self.prompt_id);
        let make = || {
            let prompt = match submitter {
                _ if is_private => String::new(),
                Submitter::UserMedia => MEDIA.into(),
                _ => cleaned.text.clone(),
            };
            let (prompt_id, cwd) = (prompt_id.to_owned(), row.cwd().into_owned());
            let extra = String::new();
            PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra }.into()
        };
        let id = stable_id(time_us, &["transcript", &row.identity()]);
        each(Found { what: "PromptSubmitted", id, make: &make })
    }

    fn assistant(&mut self, row: &Row<'_>) {
        for block in row.blocks() {
            match &*block.kind() {
                "text" => self.said(row, block.text()),
                "tool_use" => {
                    self.last_words = None;
                    let tool = block.tool().into_owned();
                    let agent_type = row.agent_type().into_owned();
                    let call = Call { tool, input: block.input().into(), agent_type };
                    self.calls.insert(block.call_id().into_owned(), call);
                }
                _ => {}
            }
        }
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
        let error = if result.is_error() { result.words() } else { String::new() };
        let is_skipped = self.habits.skipped_tools.contains(&call.tool);
        if is_skipped || self.is_private || never_ran(&error, told) {
            return Ok(());
        }
        let policy = self.habits.policy;
        let prompt_id = match row.prompt_id() {
            none if none.is_empty() => Cow::Borrowed(self.prompt_id.as_str()),
            prompt_id => prompt_id,
        };
        let make = || {
            let input = clean_json(&call.input, policy);
            let policy = policy.after(input.len());
            let output = match (result.is_error(), told) {
                (true, _) => String::new(),
                (false, told) => clean_json(told.unwrap_or(result.output()), policy),
            };
            let used = ToolUsed {
                tool: clean_text(&call.tool, policy).text,
                error: clean_text(&error, policy.after(output.len())).text,
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
        let id = stable_id(time_us, &["transcript", &call_id]);
        each(Found { what: "ToolUsed", id, make: &make })
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
        each(Found { what: "SessionStarted", id, make: &make })
    }
}

/// Hooks do not receive calls that the client or the user refused.
fn never_ran(error: &str, told: Option<&str>) -> bool {
    error.starts_with("<tool_use_error>") || told == Some("\"User rejected tool use\"")
}

/// The text that the user typed; `None` if the client generated it. A user's command is recorded as
/// its expansion; a client's own command is not a prompt.
fn as_typed(text: &str) -> Option<Cow<'_, str>> {
    const NOT_TYPED: [&str; 7] = [
        "<command-name>",
        "<local-command-",
        "<bash-input>",
        "<bash-stdout>",
        "<bash-stderr>",
        "[Request interrupted",
        "Caveat: The messages below were generated",
    ];
    let text = text.trim_start();
    if NOT_TYPED.iter().any(|begin| text.starts_with(begin)) {
        return None;
    }
    if !text.starts_with("<command-message>") {
        return Some(Cow::Borrowed(text));
    }
    let name = between(text, "<command-name>", "</command-name>")?;
    let arguments = between(text, "<command-args>", "</command-args>").unwrap_or_default();
    Some(Cow::Owned(format!("{name} {arguments}").trim_end().into()))
}

fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    Some(rest.split_once(end)?.0.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slash_commands_are_kept_as_typed_and_client_messages_are_not_prompts() {
        let greet = "<command-message>greet</command-message>\n<command-name>/greet</command-name>\n\
                     <command-args>Bob</command-args>";
        assert_eq!(as_typed(greet).as_deref(), Some("/greet Bob"));
        assert_eq!(as_typed("<command-name>/clear</command-name>"), None);
        assert_eq!(as_typed("[Request interrupted by user]"), None);
        assert_eq!(as_typed("fix <b>it</b>").as_deref(), Some("fix <b>it</b>"));
    }
}
