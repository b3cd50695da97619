//! Cursor, according to its documentation: event names in camel case, one turn id, tool results as
//! JSON in a string.

use claude_mem_events::StopScope;
use serde_json::Value;

use super::{
    BASE, Client, ContextMax, Registration, SessionFields,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    for_event,
    json_values::{items, joined},
    normalize::{self, ToolNames},
    past::{PastBegin, PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::{
        Answer, Incoming, IncomingKind, LastMessages, Prompt, SessionEnd, SessionStart, Skip, Stop,
        ToolUse,
    },
    payload::Payload,
    transcript::{Message, Speaker, TurnPart, TurnRow},
};

pub(super) static CURSOR: Client = Client {
    name: "cursor",
    title: "Cursor",
    is_tested: false,
    evidence: Evidence {
        fields: &[("cursor_version", None)],
        transcript: &["/.cursor/"],
        variables: &["CURSOR_VERSION"],
    },
    project_variable: Some("CURSOR_PROJECT_DIR"),
    session,
    parse,
    transcript_line: Some(transcript_line),
    // The model sees tool names without a prefix.
    tool_prefix: "",
    // Ten thousand characters.
    context_at: &[
        (IncomingKind::SessionStart, ContextMax::Bytes(10_000)),
        (IncomingKind::Prompt, ContextMax::Bytes(10_000)),
    ],
    respond: respond::snake_case,
    hooks: HOOKS,
    config: Config {
        dir: Dir::of_home(".cursor"),
        signs: &[],
        hooks: HooksForm::Entries {
            file: "hooks.json",
            timeout: Some("timeout"),
            has_version: true,
            extra: &[],
        },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".cursor"),
            file: "mcp.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "",
    },
    past: Some(PastSessions {
        dir: Dir::of_home(".cursor"),
        place: "projects",
        form: PastForm::Undated { folder: "agent-transcripts" },
        begin: |row| {
            (row["role"].is_string() && row["message"].is_object()).then(PastBegin::default)
        },
        row: past_row,
        finish: tool_use,
    }),
    ..BASE
};

/// Only the events for all tools: those for shell, files and MCP would report the same uses again.
const HOOKS: &[Registration] = &[
    for_event("sessionStart", 10),
    for_event("beforeSubmitPrompt", 5),
    for_event("postToolUse", 5),
    for_event("postToolUseFailure", 5),
    for_event("afterAgentResponse", 5),
    for_event("stop", 10),
    for_event("subagentStop", 10),
    for_event("sessionEnd", 5),
];

const TOOLS: ToolNames = &[("Shell", "Bash"), ("Task", "Agent")];

fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    let id = payload.take_text("conversation_id").or_else(|| payload.take_text("session_id"));
    let roots: Vec<String> =
        serde_json::from_str(&payload.json("workspace_roots")).unwrap_or_default();
    let cwd = payload.take_text("cwd").filter(|cwd| !cwd.is_empty());
    SessionFields {
        id: id.filter(|id| !id.is_empty()),
        cwd: cwd.or_else(|| roots.into_iter().next().map(Into::into)),
    }
}

fn parse<'a>(payload: &mut Payload<'a>, _: Option<IncomingKind>) -> Result<Incoming<'a>, Skip> {
    // The email address of the user is not recorded.
    payload.take("user_email");
    payload.take("session_id");
    let turn = payload.text("generation_id");
    let stop = |scope, last_messages| Stop { scope, last_messages, ..Stop::default() };
    match &*payload.text("hook_event_name") {
        "sessionStart" => Ok(Incoming::SessionStart(SessionStart {
            source: "startup".into(),
            model: payload.text("model"),
            transcript_path: payload.text("transcript_path"),
        })),
        "beforeSubmitPrompt" => {
            Ok(Incoming::Prompt(Prompt { text: payload.text("prompt"), prompt_id: turn }))
        }
        "postToolUse" | "postToolUseFailure" => {
            let error = payload.text("error_message");
            let mut used = ToolUse {
                tool: payload.text("tool_name"),
                input: payload.json("tool_input"),
                output: payload.json("tool_output"),
                has_failed: !error.is_empty() || payload.has("failure_type"),
                error,
                is_interrupt: payload.take_flag("is_interrupt"),
                tool_use_id: payload.text("tool_use_id"),
                prompt_id: turn,
                duration_ms: payload.take_number("duration"),
                ..ToolUse::default()
            };
            tool_use(&mut used);
            Ok(Incoming::ToolUse(used))
        }
        // The latest response is the last message of the turn.
        "afterAgentResponse" => {
            Ok(Incoming::Answer(Answer { text: payload.text("text"), prompt_id: turn }))
        }
        "stop" => {
            let transcript = payload.peek_text("transcript_path");
            let last = LastMessages::InTranscript(transcript);
            Ok(Incoming::Stop(Stop { prompt_id: turn, ..stop(StopScope::Turn, last) }))
        }
        "subagentStop" => {
            let assistant = payload.text("summary");
            let last = LastMessages::Given { user: "".into(), assistant };
            let agent_type = payload.text("subagent_type");
            let stop = stop(StopScope::Subagent, last);
            Ok(Incoming::Stop(Stop { agent_type, prompt_id: turn, ..stop }))
        }
        "sessionEnd" => Ok(Incoming::SessionEnd(SessionEnd { reason: payload.text("reason") })),
        "afterAgentThought"
        | "afterFileEdit"
        | "afterShellExecution"
        | "afterMCPExecution"
        | "beforeShellExecution"
        | "beforeMCPExecution"
        | "beforeReadFile"
        | "preToolUse"
        | "preCompact"
        | "subagentStart" => Err(Skip::NotForUs),
        other => Err(Skip::UnknownEvent(other.to_owned())),
    }
}

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, TOOLS);
    let text = crate::payload::text(&used.output).into_owned();
    if let Some(tool) = used.tool.strip_prefix("MCP:") {
        let server = if is_ours(tool, &text) { "claude-mem__" } else { "" };
        used.tool = format!("mcp__{server}{tool}").into();
    }
    let Ok(result) = serde_json::from_str::<Value>(&text) else { return };
    match (result["exitCode"].as_i64(), result["stdout"].as_str()) {
        (Some(exit_code), Some(output)) => normalize::command_result(used, exit_code, output),
        _ => used.output = text.into(),
    }
}

/// Cursor omits the server from the name of an MCP tool. Other servers have a tool `search`, too,
/// so ours is recognized by its result table. The other names are rare enough.
fn is_ours(tool: &str, output: &str) -> bool {
    match tool {
        "search" => output.contains("ID | time | type | ") || output.contains("No match in "),
        other => super::OUR_TOOLS.contains(&other),
    }
}

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row: Value = serde_json::from_slice(line).ok()?;
    let speaker = match row["role"].as_str()? {
        "user" => Speaker::User,
        "assistant" => Speaker::Assistant,
        _ => return None,
    };
    let text = joined(row["message"]["content"].as_array()?);
    let text = if speaker == Speaker::User { typed(&text).to_owned() } else { text };
    Some(Message { speaker, text })
}

/// Calls have no results, and mostly no ids.
fn past_row(line: &[u8]) -> TurnRow {
    let Some(Message { speaker, text }) = transcript_line(line, StopScope::Turn) else {
        return TurnRow::Other;
    };
    if speaker == Speaker::User {
        return TurnRow::prompt(text);
    }
    let row: Value = serde_json::from_slice(line).unwrap_or_default();
    let part = |block: &Value| match block["type"].as_str()? {
        "text" => Some(TurnPart::AssistantText(block["text"].as_str()?.to_owned())),
        "tool_use" => {
            let (tool, input) = (block["name"].as_str()?.to_owned(), block["input"].to_string());
            let id = block["id"].as_str().map_or_else(|| format!("{tool} {input}"), str::to_owned);
            Some(TurnPart::Called { tool_use_id: id, tool, input })
        }
        _ => None,
    };
    TurnRow::parts(items(&row["message"]["content"]).iter().filter_map(part).collect())
}

/// The prompt inside Cursor's `<user_query>` element.
fn typed(text: &str) -> &str {
    let inside = text.split_once("<user_query>").map(|(_, rest)| rest);
    let inside = inside.and_then(|rest| rest.split_once("</user_query>")).map(|(inside, _)| inside);
    inside.unwrap_or(text).trim()
}
