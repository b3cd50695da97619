//! Gemini CLI, and Antigravity, which reads the same settings. In a session without a terminal, the
//! memory given at the start is repeated before the prompt.

use std::borrow::Cow;

use claude_mem_events::StopScope;
use serde_json::{Value, json};

use super::{
    BASE, Client, Registration, Response,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_all_tools, for_event,
    json_values::{items, joined, string},
    normalize::{self, ToolNames},
    past::{PastBegin, PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::{
        Incoming, IncomingKind, LastMessages, Prompt, SessionEnd, SessionStart, Skip, Stop, ToolUse,
    },
    payload::Payload,
    transcript::{Message, Speaker, TurnPart, TurnRow},
};

pub(super) static GEMINI: Client = Client {
    name: "gemini",
    title: "Gemini CLI",
    evidence: Evidence {
        fields: &[],
        transcript: &["/.gemini/"],
        variables: &["GEMINI_SESSION_ID"],
    },
    session_variable: Some("GEMINI_SESSION_ID"),
    project_variable: Some("GEMINI_PROJECT_DIR"),
    parse,
    transcript_line: Some(transcript_line),
    tool_prefix: "mcp_claude-mem_",
    respond,
    hooks: HOOKS,
    config: Config {
        dir: Dir::of_home(".gemini"),
        signs: &[],
        hooks: HooksForm::Groups { file: "settings.json", unit: TimeoutUnit::Milliseconds },
        registered_as: None,
        server: Some(SERVER),
        after: "",
    },
    past: Some(PastSessions {
        dir: Dir::of_home(".gemini"),
        place: "tmp",
        form: PastForm::Journal { end: ".jsonl", project_file: ".project_root" },
        begin,
        row: past_row,
        finish: |used| {
            normalize::rename(used, TOOLS);
            result(used);
        },
    }),
    ..BASE
};

pub(super) static ANTIGRAVITY: Client = Client {
    name: "antigravity",
    title: "Antigravity",
    is_tested: false,
    evidence: Evidence { fields: &[], transcript: &["/antigravity"], variables: &[] },
    config: Config {
        dir: Dir::of_home(".gemini"),
        signs: &[Dir::of_home(".gemini/antigravity"), Dir::of_home(".antigravity")],
        hooks: HooksForm::Groups { file: "settings.json", unit: TimeoutUnit::Milliseconds },
        registered_as: Some("gemini"),
        server: Some(ServerFile {
            dir: Dir::of_home(".gemini"),
            file: "config/mcp_config.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "",
    },
    project_variable: Some("GEMINI_PROJECT_DIR"),
    parse,
    tool_prefix: "mcp_claude-mem_",
    respond,
    hooks: HOOKS,
    ..BASE
};

const SERVER: ServerFile = ServerFile {
    dir: Dir::of_home(".gemini"),
    file: "settings.json",
    key: "mcpServers",
    form: ServerForm::Plain(&[("trust", Extra::Flag(true))]),
};

const HOOKS: &[Registration] = &[
    for_event("SessionStart", 10),
    for_event("BeforeAgent", 5),
    for_all_tools("AfterTool", 5),
    for_event("AfterAgent", 10),
    for_event("SessionEnd", 5),
];

/// The client wraps memory in its own tags, and escapes the angle brackets of ours.
fn respond(response: &Response) -> String {
    let inside = |text: &String| normalize::without_wrapper(text, "claude-mem-context").to_owned();
    let response = Response {
        context: response.context.as_ref().map(inside),
        notice: response.notice.clone(),
        event: response.event,
    };
    respond::nested_as(&response, "BeforeAgent", "AfterTool")
}

/// Tool names, shared with Qwen Code.
pub(super) const TOOLS: ToolNames = &[
    ("run_shell_command", "Bash"),
    ("read_file", "Read"),
    ("replace", "Edit"),
    ("edit", "Edit"),
    ("write_file", "Write"),
    ("grep_search", "Grep"),
    ("search_file_content", "Grep"),
    ("glob", "Glob"),
    ("list_directory", "LS"),
    ("web_fetch", "WebFetch"),
    ("google_web_search", "WebSearch"),
    ("invoke_agent", "Agent"),
    ("agent", "Agent"),
];

fn parse<'a>(payload: &mut Payload<'a>, _: Option<IncomingKind>) -> Result<Incoming<'a>, Skip> {
    let name = payload.text("hook_event_name");
    payload.take("timestamp");
    match &*name {
        "SessionStart" => Ok(Incoming::SessionStart(SessionStart {
            source: payload.text("source"),
            model: Cow::Borrowed(""),
            transcript_path: payload.text("transcript_path"),
        })),
        "BeforeAgent" => {
            let text = without_memory(payload.text("prompt"));
            Ok(Incoming::Prompt(Prompt { text, ..Prompt::default() }))
        }
        "AfterTool" => Ok(Incoming::ToolUse(tool_use(payload))),
        "AfterAgent" => {
            let assistant = payload.text("prompt_response").trim().to_owned().into();
            let user = without_memory(payload.text("prompt"));
            let transcript = payload.peek_text("transcript_path");
            Ok(Incoming::Stop(Stop {
                scope: StopScope::Turn,
                last_messages: LastMessages::Joined { user, assistant, transcript },
                is_stop_hook_active: payload.take_flag("stop_hook_active"),
                ..Stop::default()
            }))
        }
        "SessionEnd" => Ok(Incoming::SessionEnd(SessionEnd { reason: payload.text("reason") })),
        // `PreCompress` is sent before every request to the model, even if nothing is compressed.
        "BeforeTool"
        | "PreCompress"
        | "BeforeModel"
        | "AfterModel"
        | "BeforeToolSelection"
        | "Notification" => Err(Skip::NotForUs),
        other => Err(Skip::UnknownEvent(other.to_owned())),
    }
}

/// Removes the text that hooks put before a prompt. The client escapes that text, so the first
/// closing tag is the right one.
fn without_memory(prompt: Cow<'_, str>) -> Cow<'_, str> {
    const END: &str = "</hook_context>";
    let mut rest = &*prompt;
    while rest.starts_with("<hook_context>")
        && let Some(end) = rest.find(END)
    {
        rest = rest[end + END.len()..].trim_start();
    }
    if rest.len() == prompt.len() { prompt } else { Cow::Owned(rest.to_owned()) }
}

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row: Value = serde_json::from_slice(line).ok()?;
    let (speaker, text) = match row["type"].as_str()? {
        "gemini" => (Speaker::Assistant, &row["content"]),
        // Results of tools have no text.
        "user" => (Speaker::User, &row["content"][0]["text"]),
        _ => return None,
    };
    Some(Message { speaker, text: text.as_str()?.to_owned() })
}

fn tool_use<'a>(payload: &mut Payload<'a>) -> ToolUse<'a> {
    let mut server = payload.take_object("mcp_context");
    let mut used = ToolUse {
        tool: payload.text("tool_name"),
        input: payload.json("tool_input"),
        output: payload.json("tool_response"),
        ..ToolUse::default()
    };
    if let (Some(server), Some(tool)) =
        (server.take_text("server_name"), server.take_text("tool_name"))
    {
        used.tool = format!("mcp__{server}__{tool}").into();
    }
    normalize::rename(&mut used, TOOLS);
    result(&mut used);
    used
}

/// Replaces the response of a tool by the text that the model receives, or by the error.
pub(super) fn result(used: &mut ToolUse<'_>) {
    let Ok(Value::Object(response)) = serde_json::from_str(&used.output) else { return };
    let Some(content) = response.get("llmContent") else { return };
    if let Some(message) = response.get("error").and_then(|error| error["message"].as_str()) {
        used.has_failed = true;
        used.error = message.to_owned().into();
        used.output = Cow::Borrowed("");
        return;
    }
    let Some(text) = text_of(content) else {
        used.output = content.to_string().into();
        return;
    };
    match normalize::command_report(&text).filter(|_| used.tool == "Bash") {
        Some((exit_code, output)) => normalize::command_result(used, exit_code, output),
        None => used.output = Value::from(text).to_string().into(),
    }
}

/// The text that the model receives; `None` if it contains other parts, such as an image. MCP tools
/// return a list of parts.
fn text_of(content: &Value) -> Option<String> {
    let inside = |text| normalize::without_wrapper(text, "untrusted_context").to_owned();
    match content {
        Value::Array(parts) => {
            let texts = parts.iter().map(|part| part["text"].as_str().map(inside));
            texts.collect::<Option<Vec<_>>>().map(|texts| texts.join("\n"))
        }
        content => content.as_str().map(inside),
    }
}

/// A session's first row. Its folder is in a separate file.
fn begin(row: &Value) -> Option<PastBegin> {
    row["projectHash"].as_str()?;
    let session = row["sessionId"].as_str()?.to_owned();
    Some(PastBegin { session, ..PastBegin::default() })
}

/// Text that the client adds to the conversation as if the user had typed it.
const ADDED: &str = "<session_context>";

fn past_row(line: &[u8]) -> TurnRow {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return TurnRow::Other };
    let text = match &row["content"] {
        Value::String(text) => text.clone(),
        parts => joined(items(parts)),
    };
    match row["type"].as_str().unwrap_or_default() {
        "user" => {
            let text = without_memory(Cow::Owned(text)).into_owned();
            if text.trim().is_empty() || text.starts_with(ADDED) {
                return TurnRow::Other;
            }
            TurnRow::prompt(text)
        }
        "gemini" => {
            let mut parts = vec![TurnPart::AssistantText(text)];
            for call in items(&row["toolCalls"]) {
                let (tool_use_id, tool) = (string(&call["id"]), string(&call["name"]));
                let input = call["args"].to_string();
                parts.push(TurnPart::Called { tool_use_id, tool, input });
                parts.extend(items(&call["result"]).iter().filter_map(returned));
            }
            TurnRow::parts(parts)
        }
        _ => TurnRow::Other,
    }
}

/// The result of a tool, in the format of hooks.
pub(super) fn returned(part: &Value) -> Option<TurnPart> {
    let of = part.get("functionResponse")?;
    let tool_use_id = of["id"].as_str()?.to_owned();
    let response = &of["response"];
    if let Some(error) = response["error"].as_str() {
        return Some(TurnPart::Failed { tool_use_id, error: error.to_owned() });
    }
    let output = json!({ "llmContent": response["output"] }).to_string();
    Some(TurnPart::Done { tool_use_id, output })
}
