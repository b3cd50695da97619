//! Claude Code: its hook payloads, responses, transcripts, environment and configuration.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use claude_mem_core::environment::Environment;
use claude_mem_events::StopScope;
use serde_json::json;

use super::{
    BASE, Client, ContextMax, Registration, Response, SessionFields,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_event,
};
use crate::{
    incoming::{
        FileUse, Incoming, IncomingKind, LastMessages, Prompt, SessionEnd, SessionStart, Skip,
        Stop, ToolUse,
    },
    payload::{self, Payload},
    transcript::{Message, Speaker, TurnPart, TurnRow},
    transcript_rows::{Block, Row, as_typed},
};

/// The client truncates longer output of a hook.
pub const CONTEXT_MAX: ContextMax = ContextMax::JsonUnits(10_000);

pub static CLAUDE_CODE: Client = Client {
    name: "claude-code",
    title: "Claude Code",
    evidence: Evidence { fields: &[], transcript: &["/.claude/"], variables: &[] },
    session_variable: Some("CLAUDE_CODE_SESSION_ID"),
    project_variable: Some("CLAUDE_PROJECT_DIR"),
    session,
    parse,
    transcript_line: Some(transcript_line),
    turn_row: Some(turn_row),
    context_at: &[
        (IncomingKind::SessionStart, CONTEXT_MAX),
        (IncomingKind::Prompt, CONTEXT_MAX),
        (IncomingKind::FileUse, CONTEXT_MAX),
        (IncomingKind::ToolUse, CONTEXT_MAX),
    ],
    respond,
    hooks: HOOKS,
    config: Config {
        dir: Dir::moved_by(CONFIG_DIR, ".claude"),
        signs: &[],
        hooks: HooksForm::Groups { file: "settings.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::moved_by(CONFIG_DIR, ""),
            file: ".claude.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "",
    },
    ..BASE
};

/// Environment variable that replaces `~/.claude`.
pub const CONFIG_DIR: &str = "CLAUDE_CONFIG_DIR";

/// The commands that `claude-mem install` registers, each with the event it expects. They are
/// aliases of `hook --client claude-code`: settings written by any version keep working.
pub const ALIASES: [(&str, IncomingKind); 5] = [
    ("context", IncomingKind::SessionStart),
    ("new", IncomingKind::Prompt),
    ("save", IncomingKind::ToolUse),
    ("summary", IncomingKind::Stop),
    ("cleanup", IncomingKind::SessionEnd),
];

/// Events that Claude Code 2.0.76 does not know are registered only for newer versions: one unknown
/// name there disables every hook in the file. Denied permissions and compactions are in the
/// transcript that `Stop` reads, so their events (`PermissionDenied`, `PostCompact`) are not
/// registered. All versions know `PreToolUse`; those before 2.1.9 ignore the context that it adds.
/// Hooks are synchronous, because background hooks are killed when the session ends. `SessionEnd`
/// without an explicit timeout gets 1.5 seconds, shared with all other hooks.
const HOOKS: &[Registration] = &[
    registration("SessionStart", None, "context", 10),
    registration("UserPromptSubmit", None, "new", 5),
    Registration { matcher: Some(FILE_TOOLS), ..for_event("PreToolUse", 5) },
    registration("PostToolUse", Some("*"), "save", 5),
    registration("PostToolUseFailure", Some("*"), "save", 5),
    registration("Stop", None, "summary", 10),
    registration("SubagentStop", None, "summary", 10),
    registration("SessionEnd", None, "cleanup", 5),
    Registration { since: Some([2, 1, 78]), ..registration("StopFailure", None, "summary", 10) },
];

/// Tools that name one file, which they read or write.
const FILE_TOOLS: &str = "Read|Edit|Write|MultiEdit|NotebookEdit";

const fn registration(
    event: &'static str,
    matcher: Option<&'static str>,
    alias: &'static str,
    timeout_seconds: u32,
) -> Registration {
    Registration { matcher, alias: Some(alias), ..for_event(event, timeout_seconds) }
}

/// Claude Code's own directory.
pub fn config_dir(environment: &Environment, home: Option<&Path>) -> Option<PathBuf> {
    match environment.get(CONFIG_DIR) {
        Some(chosen) => Some(chosen.into()),
        None => home.map(|home| home.join(".claude")),
    }
}

pub(super) fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    let mut take = |name| payload.take_text(name).filter(|text| !text.is_empty());
    SessionFields { id: take("session_id"), cwd: take("cwd") }
}

/// The event name in the payload takes precedence over the command. A hook that is registered for
/// the wrong event is then still recorded correctly.
pub(crate) fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    let name = payload.text("hook_event_name");
    parse_event(payload, &name, expected)
}

/// Events of other clients with these hooks that are not recorded.
const IGNORED: &[&str] = &[
    "ErrorOccurred",
    "Interrupt",
    "Notification",
    "PermissionRequest",
    "PermissionResult",
    "PostCompact",
    "PostToolBatch",
    "PreCompact",
    "PreToolUse",
    "SubagentStart",
    "TaskStarted",
    "TurnStarted",
];

/// Parses an event of another client that has the same hooks.
pub(super) fn parse_relative<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    let name = payload.text("hook_event_name");
    parse_relative_event(payload, &name, expected)
}

/// The same for an event with this name.
pub(super) fn parse_relative_event<'a>(
    payload: &mut Payload<'a>,
    name: &str,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    if IGNORED.contains(&name) {
        return Err(Skip::NotForUs);
    }
    parse_event(payload, name, expected)
}

/// Parses an event of another client that has the same hooks but different tool names. The field
/// `unused` is not recorded.
pub(super) fn parse_with_tools<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
    unused: &str,
    rename: fn(&mut ToolUse<'_>),
) -> Result<Incoming<'a>, Skip> {
    payload.take(unused);
    let mut incoming = parse_relative(payload, expected)?;
    if let Incoming::ToolUse(used) = &mut incoming {
        rename(used);
    }
    Ok(incoming)
}

/// Parses an event by name; an empty name means the expected event.
fn parse_event<'a>(
    payload: &mut Payload<'a>,
    name: &str,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    let kind = match name {
        "SessionStart" => IncomingKind::SessionStart,
        "UserPromptSubmit" => IncomingKind::Prompt,
        "PreToolUse" => IncomingKind::FileUse,
        "PostToolUse" | "PostToolUseFailure" => IncomingKind::ToolUse,
        "Stop" | "SubagentStop" | "StopFailure" => IncomingKind::Stop,
        "SessionEnd" => IncomingKind::SessionEnd,
        "" => expected.ok_or_else(|| Skip::UnknownEvent(String::new()))?,
        other => return Err(Skip::UnknownEvent(other.to_owned())),
    };
    Ok(match kind {
        IncomingKind::SessionStart => Incoming::SessionStart(SessionStart {
            source: payload.text("source"),
            model: payload.text("model"),
            transcript_path: payload.text("transcript_path"),
        }),
        IncomingKind::Prompt => Incoming::Prompt(Prompt {
            text: payload.text("prompt"),
            prompt_id: payload.text("prompt_id"),
        }),
        IncomingKind::FileUse => Incoming::FileUse(file_use(payload).ok_or(Skip::NotForUs)?),
        IncomingKind::ToolUse => Incoming::ToolUse(tool_use(payload, name)),
        // The stop event contains the last message.
        IncomingKind::Answer => return Err(Skip::NotForUs),
        IncomingKind::Stop => Incoming::Stop(stop(payload, name)),
        IncomingKind::SessionEnd => {
            Incoming::SessionEnd(SessionEnd { reason: payload.text("reason") })
        }
    })
}

/// `None` if the tool names no file.
fn file_use<'a>(payload: &mut Payload<'a>) -> Option<FileUse<'a>> {
    #[derive(serde::Deserialize)]
    struct Input {
        #[serde(alias = "notebook_path")]
        file_path: String,
    }
    let input: Input = serde_json::from_str(&payload.json("tool_input")).ok()?;
    Some(FileUse { path: Cow::Owned(input.file_path) }).filter(|used| !used.path.is_empty())
}

fn tool_use<'a>(payload: &mut Payload<'a>, event: &str) -> ToolUse<'a> {
    let error = payload.text("error");
    ToolUse {
        tool: payload.text("tool_name"),
        input: payload::tool_input(payload.json("tool_input")),
        output: match payload.json("tool_response") {
            Cow::Borrowed("") => payload.json("tool_output"),
            given => given,
        },
        has_failed: event == "PostToolUseFailure" || !error.is_empty(),
        error,
        is_interrupt: payload.take_flag("is_interrupt"),
        tool_use_id: payload.text("tool_use_id"),
        agent_id: payload.text("agent_id"),
        agent_type: payload.text("agent_type"),
        prompt_id: payload.text("prompt_id"),
        duration_ms: payload.take_number("duration_ms"),
    }
}

fn stop<'a>(payload: &mut Payload<'a>, event: &str) -> Stop<'a> {
    let agent_type = payload.take_text("agent_type");
    let scope = match (event, agent_type.as_deref()) {
        // Compaction runs as a hidden fork with an empty type, which no SubagentStart announces.
        // Older clients send no type at all, and those are ordinary subagents.
        ("SubagentStop", Some("")) => StopScope::Compaction,
        ("SubagentStop", _) => StopScope::Subagent,
        _ => StopScope::Turn,
    };
    // The transcript is not complete yet, so it is read only for older clients, which do not send
    // the last message.
    let mut api_error = Cow::Borrowed("");
    let last_messages = match payload.take_text("last_assistant_message") {
        // The message is the client's own text for the user.
        message if event == "StopFailure" => {
            let code = payload.text("error");
            api_error = message.filter(|message| !message.is_empty()).unwrap_or(code);
            LastMessages::Given { assistant: Cow::Borrowed(""), user: Cow::Borrowed("") }
        }
        Some(assistant) => {
            LastMessages::Given { assistant, user: payload.text("last_user_message") }
        }
        None => LastMessages::InTranscript(payload.peek_text(match scope {
            StopScope::Turn => "transcript_path",
            StopScope::Subagent | StopScope::Compaction => "agent_transcript_path",
        })),
    };
    Stop {
        scope,
        last_messages,
        api_error,
        transcript: payload.peek_text("transcript_path"),
        is_stop_hook_active: payload.take_flag("stop_hook_active"),
        background_tasks: payload.count("background_tasks") as u32,
        agent_id: payload.text("agent_id"),
        agent_type: agent_type.unwrap_or_default(),
        prompt_id: payload.text("prompt_id"),
    }
}

/// The response of a hook that has nothing to add.
const CONTINUE: &str = "{\"continue\": true, \"suppressOutput\": true}\n";

fn respond(response: &Response) -> String {
    let Response { context: Some(context), notice, event } = response else {
        return CONTINUE.into();
    };
    let event = match event {
        Some(IncomingKind::Prompt) => "UserPromptSubmit",
        Some(IncomingKind::FileUse) => "PreToolUse",
        // A successful tool use adds no context.
        Some(IncomingKind::ToolUse) => "PostToolUseFailure",
        _ => "SessionStart",
    };
    let output = json!({"hookEventName": event, "additionalContext": context});
    let mut answer =
        json!({"continue": true, "suppressOutput": true, "hookSpecificOutput": output});
    if let Some(notice) = notice {
        answer["systemMessage"] = json!(notice);
    }
    format!("{answer}\n")
}

/// A subagent's own file is one side chain; in the main file a side chain is another conversation.
fn transcript_line(line: &[u8], scope: StopScope) -> Option<Message> {
    let line = String::from_utf8_lossy(line);
    let row = Row::read(&line)?;
    if row.is_hidden() || row.is_aside() && scope == StopScope::Turn {
        return None;
    }
    let speaker = match &*row.kind() {
        "assistant" => Speaker::Assistant,
        "user" => Speaker::User,
        _ => return None,
    };
    Some(Message { speaker, text: row.text() })
}

/// The parts of a turn in one line.
fn turn_row(line: &[u8]) -> TurnRow {
    let line = String::from_utf8_lossy(line);
    let Some(row) = Row::read(&line).filter(|row| !row.is_aside()) else { return TurnRow::Other };
    let prompt_id = row.prompt_id().into_owned();
    let parts = match &*row.kind() {
        "system" if row.is_after_stop() => return TurnRow::Stopped,
        "assistant" if row.is_api_error() => vec![TurnPart::ApiError(row.text())],
        "assistant" if !row.is_hidden() => row.blocks().iter().filter_map(spoken).collect(),
        "user" if row.is_compaction_summary() => vec![TurnPart::Compacted(row.text())],
        "user" => {
            let blocks = row.blocks();
            let results = blocks.iter().filter(|block| block.kind() == "tool_result");
            let results: Vec<&Block<'_>> = results.collect();
            if results.is_empty() {
                return match as_typed(&row.text()) {
                    Some(text) if !row.is_hidden() => {
                        TurnRow::Prompt { text: text.into_owned(), prompt_id }
                    }
                    _ => TurnRow::Other,
                };
            }
            let failed = results.into_iter().filter(|result| result.is_error());
            failed
                .map(|result| TurnPart::Failed {
                    tool_use_id: result.call_id().into_owned(),
                    error: row.error_of(result),
                })
                .collect()
        }
        _ => return TurnRow::Other,
    };
    TurnRow::Parts { parts, prompt_id }
}

fn spoken(block: &Block<'_>) -> Option<TurnPart> {
    match &*block.kind() {
        "text" => Some(TurnPart::AssistantText(block.text().into_owned())),
        "tool_use" => Some(TurnPart::Called {
            tool_use_id: block.call_id().into_owned(),
            tool: block.tool().into_owned(),
            input: block.input().into_owned(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_input_given_as_text_is_read_as_json_and_a_result_has_two_names() {
        let used = |json: &str| {
            let (mut payload, _) = Payload::read(json);
            let used = tool_use(&mut payload, "PostToolUse");
            (used.input.into_owned(), used.output.into_owned())
        };
        let expected = (r#"{"command":"ls \"a\""}"#.to_owned(), r#"{"stdout":"b"}"#.to_owned());
        let text =
            r#"{"tool_input":"{\"command\":\"ls \\\"a\\\"\"}","tool_output":{"stdout":"b"}}"#;
        assert_eq!(used(text), expected);
        let both = r#"{"tool_input":{"command":"ls \"a\""},"tool_output":1,"tool_response":{"stdout":"b"}}"#;
        assert_eq!(used(both), expected);
        for plain in [r#""ls""#, r#""{ls""#, r#""7""#, "7", r#""""#] {
            assert_eq!(used(&format!("{{\"tool_input\":{plain}}}")).0, plain);
        }
    }

    #[test]
    fn every_registered_alias_is_known_and_reads_the_same_event() {
        for hook in HOOKS {
            let Some(name) = hook.alias else { continue };
            let alias = ALIASES.iter().find(|(command, _)| *command == name);
            assert!(alias.is_some(), "{hook:?}");
            let (mut payload, _) = Payload::read("{}");
            let named = format!("{{\"hook_event_name\":\"{}\"}}", hook.event);
            let (mut named, _) = Payload::read(&named);
            let expected = alias.map(|(_, kind)| *kind);
            let kinds = [parse(&mut payload, expected), parse(&mut named, None)]
                .map(|parsed| parsed.unwrap().kind());
            assert_eq!(kinds.map(Some), [expected; 2], "{hook:?}");
        }
    }
}
