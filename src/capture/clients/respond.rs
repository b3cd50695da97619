//! Responses in the formats that clients understand. Without memory, a client other than Claude
//! Code gets no output: some treat our usual JSON as an error, and one shows it to the model.

use serde_json::{Value, json};

use super::Response;
use crate::incoming::IncomingKind;

/// Memory as plain text.
pub(super) fn plain(response: &Response) -> String {
    context(response).map_or_else(String::new, |text| format!("{text}\n"))
}

/// `{"additionalContext": …}`.
pub(super) fn top_level(response: &Response) -> String {
    context(response).map_or_else(String::new, |text| line(&json!({"additionalContext": text})))
}

/// `{"additional_context": …}`.
pub(super) fn snake_case(response: &Response) -> String {
    context(response).map_or_else(String::new, |text| line(&json!({"additional_context": text})))
}

/// `{"hookSpecificOutput": {"additionalContext": …}}` with Claude Code's event names.
pub(super) fn nested(response: &Response) -> String {
    nested_as(response, "UserPromptSubmit", "PostToolUseFailure")
}

/// The same with the client's names of the events for prompts and failed tools.
pub(super) fn nested_as(response: &Response, prompt: &str, failure: &str) -> String {
    let Some(text) = context(response) else { return String::new() };
    let event = match response.event {
        Some(IncomingKind::Prompt) => prompt,
        Some(IncomingKind::ToolUse) => failure,
        Some(IncomingKind::FileUse) => "PreToolUse",
        _ => "SessionStart",
    };
    let mut answer = json!({"hookSpecificOutput":
        {"hookEventName": event, "additionalContext": text}});
    if let Some(notice) = &response.notice {
        answer["systemMessage"] = json!(notice);
    }
    line(&answer)
}

/// No output.
pub(super) fn silent(_: &Response) -> String {
    String::new()
}

fn context(response: &Response) -> Option<&str> {
    response.context.as_deref().filter(|text| !text.is_empty())
}

fn line(answer: &Value) -> String {
    format!("{answer}\n")
}
