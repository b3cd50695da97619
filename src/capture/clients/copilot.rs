//! GitHub Copilot CLI, and the agent of VS Code, which runs the same hooks and those of Claude
//! Code. In Copilot, a subagent has a separate session, and its task is sent as a prompt.

use std::{borrow::Cow, time::Duration};

use claude_mem_events::StopScope;
use serde_json::Value;

use super::{
    BASE, Client, ContextMax, Registration, SessionFields, claude_code,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    for_event,
    json_values::{items, string},
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

pub(super) static COPILOT: Client = Client {
    name: "copilot",
    title: "GitHub Copilot CLI",
    evidence: Evidence {
        fields: &[("initial_prompt", None), ("tool_result", None)],
        transcript: &["/session-state/"],
        variables: &["COPILOT_CLI"],
    },
    session_variable: Some("COPILOT_AGENT_SESSION_ID"),
    project_variable: Some("COPILOT_PROJECT_DIR"),
    session,
    parse,
    transcript_line: Some(transcript_line),
    // Measured: about 80 ms after the stop event.
    transcript_lag: Duration::from_millis(200),
    tool_prefix: "claude-mem-",
    respond: respond::top_level,
    hooks: HOOKS,
    config: Config {
        dir: Dir::moved_by("COPILOT_HOME", ".copilot"),
        signs: &[],
        hooks: FORM,
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::moved_by("COPILOT_HOME", ".copilot"),
            file: "mcp-config.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[("type", Extra::Text("local")), ("tools", Extra::All)]),
        }),
        after: "",
    },
    past: Some(PastSessions {
        dir: Dir::moved_by("COPILOT_HOME", ".copilot"),
        place: "session-state",
        form: PastForm::Lines { start: "events", end: ".jsonl" },
        begin,
        row: past_row,
        finish: tool_use,
    }),
    ..BASE
};

pub(super) static VSCODE: Client = Client {
    name: "vscode",
    title: "VS Code",
    is_tested: false,
    evidence: Evidence {
        fields: &[("hookEventName", None)],
        transcript: &["/GitHub.copilot-chat/"],
        variables: &[],
    },
    session,
    parse: parse_vscode,
    transcript_line: Some(transcript_line),
    tool_prefix: "mcp_claude-mem_",
    context_at: &[(IncomingKind::SessionStart, ContextMax::Unlimited)],
    respond: respond::nested,
    hooks: HOOKS,
    config: Config {
        dir: Dir::moved_by("COPILOT_HOME", ".copilot"),
        signs: &[Dir::of_home(".vscode"), Dir::of_app_data(".config/Code")],
        hooks: FORM,
        registered_as: Some("copilot"),
        server: Some(ServerFile {
            dir: Dir::of_app_data(".config/Code/User"),
            file: "mcp.json",
            key: "servers",
            form: ServerForm::Plain(&[("type", Extra::Text("stdio"))]),
        }),
        after: "",
    },
    ..BASE
};

/// A separate file, so that nothing has to be merged.
const FORM: HooksForm = HooksForm::Entries {
    file: "hooks/claude-mem.json",
    timeout: Some("timeoutSec"),
    has_version: true,
    extra: &[("type", Extra::Text("command"))],
};

const HOOKS: &[Registration] = &[
    for_event("SessionStart", 10),
    for_event("UserPromptSubmit", 5),
    for_event("PostToolUse", 5),
    for_event("PostToolUseFailure", 5),
    for_event("Stop", 10),
    for_event("SubagentStop", 10),
    for_event("SessionEnd", 5),
];

const TOOLS: ToolNames = &[
    ("bash", "Bash"),
    ("view", "Read"),
    ("edit", "Edit"),
    ("create", "Write"),
    ("grep", "Grep"),
    ("glob", "Glob"),
    ("task", "Agent"),
    // Tools of VS Code: those in its documentation, and their internal names.
    ("editFiles", "Edit"),
    ("replace_string_in_file", "Edit"),
    ("insert_edit_into_file", "Edit"),
    ("createFile", "Write"),
    ("create_file", "Write"),
    ("runTerminalCommand", "Bash"),
    ("runInTerminal", "Bash"),
    ("run_in_terminal", "Bash"),
    ("readFile", "Read"),
    ("read_file", "Read"),
];

/// Events of a subagent belong to the session that started it.
fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    let SessionFields { id, cwd } = claude_code::session(payload);
    let id = id.or_else(|| payload.take_text("sessionId").filter(|id| !id.is_empty()));
    let parent = payload.peek_text("parent_agent_id").filter(|id| !id.is_empty());
    SessionFields { id: parent.or(id), cwd }
}

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    payload.take("timestamp");
    if !payload.has("hook_event_name") {
        return parse_unnamed(payload);
    }
    let is_subagent = payload.take("parent_agent_id").is_some();
    let mut incoming = claude_code::parse_relative(payload, expected)?;
    match &mut incoming {
        // The task is in the call that started the subagent, and its end is reported by a separate
        // event.
        Incoming::Prompt(_) | Incoming::Stop(Stop { scope: StopScope::Turn, .. })
            if is_subagent =>
        {
            return Err(Skip::NotForUs);
        }
        Incoming::SessionStart(start) => {
            payload.take("initial_prompt");
            startup(&mut start.source);
        }
        Incoming::ToolUse(used) => {
            let mut result = payload.take_object("tool_result");
            if let Some(text) = result.take("text_result_for_llm") {
                used.output = Cow::Borrowed(text);
            }
            tool_use(used);
        }
        _ => {}
    }
    Ok(incoming)
}

/// Events registered with camel-case names have different fields and no event name. We do not
/// register such names.
fn parse_unnamed<'a>(payload: &mut Payload<'a>) -> Result<Incoming<'a>, Skip> {
    // Events with `hookName`, and those of a subagent, are never recorded.
    let is_other = ["hookName", "agentName", "transformedPrompt", "parent_agent_id"];
    if is_other.iter().any(|name| payload.has(name)) {
        return Err(Skip::NotForUs);
    }
    if payload.has("toolName") {
        let error = payload.text("error");
        if error.is_empty() && !payload.has("toolResult") {
            return Err(Skip::NotForUs);
        }
        let mut used = ToolUse {
            tool: payload.text("toolName"),
            input: payload.json("toolArgs"),
            output: payload.take_object("toolResult").json("textResultForLlm"),
            has_failed: !error.is_empty(),
            error,
            ..ToolUse::default()
        };
        tool_use(&mut used);
        return Ok(Incoming::ToolUse(used));
    }
    if payload.has("stopReason") {
        let path = payload.peek_text("transcriptPath");
        let last_messages = LastMessages::InTranscript(path);
        return Ok(Incoming::Stop(Stop { last_messages, ..Stop::default() }));
    }
    if payload.has("source") {
        payload.take("initialPrompt");
        let mut source = payload.text("source");
        startup(&mut source);
        return Ok(Incoming::SessionStart(SessionStart { source, ..SessionStart::default() }));
    }
    if payload.has("prompt") {
        return Ok(Incoming::Prompt(Prompt { text: payload.text("prompt"), ..Prompt::default() }));
    }
    if payload.has("reason") {
        return Ok(Incoming::SessionEnd(SessionEnd { reason: payload.text("reason") }));
    }
    Err(Skip::UnknownEvent(String::new()))
}

fn startup(source: &mut Cow<'_, str>) {
    if source == "new" {
        *source = Cow::Borrowed("startup");
    }
}

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, TOOLS);
    let input = crate::payload::text(&used.input).into_owned();
    if used.input.starts_with('"') && input.starts_with("*** Begin Patch") {
        normalize::patch(used, &input);
    }
    if used.tool != "Bash" || used.has_failed {
        return;
    }
    let text = crate::payload::text(&used.output).into_owned();
    if let Some((exit_code, output)) = shell_output(&text) {
        normalize::command_result(used, exit_code, output);
    }
}

/// The output of a command, which ends with `<shellId: 0 completed with exit code 3>`.
fn shell_output(text: &str) -> Option<(i64, &str)> {
    let (output, end) = text.trim_end().rsplit_once("<shellId: ")?;
    let (_, code) = end.strip_suffix('>')?.split_once(" completed with exit code ")?;
    Some((code.parse().ok()?, output))
}

/// VS Code documents two fields in camel case; others follow Claude Code.
fn parse_vscode<'a>(
    payload: &mut Payload<'a>,
    _: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    payload.take("timestamp");
    let name = payload.take_text("hookEventName");
    let name = name.unwrap_or_else(|| payload.text("hook_event_name"));
    let mut incoming = claude_code::parse_relative_event(payload, &name, None)?;
    match &mut incoming {
        Incoming::SessionStart(start) => startup(&mut start.source),
        Incoming::ToolUse(used) => vscode_tool_use(used),
        _ => {}
    }
    Ok(incoming)
}

fn vscode_tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, TOOLS);
    let Ok(Value::Object(mut input)) = serde_json::from_str(&used.input) else { return };
    if used.tool == "apply_patch"
        && let Some(patch) = input.get("input").and_then(Value::as_str)
    {
        normalize::patch(used, patch);
    } else if let Some([file]) = input.get("files").map(items) {
        // A list with one entry is converted to the form of other clients.
        let file = file.clone();
        input.insert("file_path".into(), file);
        used.input = Value::Object(input).to_string().into();
    }
}

/// Only an answer without tool calls ends a turn. Rows of subagents are in the same file.
fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row: Value = serde_json::from_slice(line).ok()?;
    let data = &row["data"];
    if is_of_subagent(&row) {
        return None;
    }
    let speaker = match row["type"].as_str()? {
        "user.message" => Speaker::User,
        "assistant.message" => Speaker::Assistant,
        _ => return None,
    };
    if !items(&data["toolRequests"]).is_empty() {
        return None;
    }
    Some(Message { speaker, text: data["content"].as_str()?.to_owned() })
}

fn is_of_subagent(row: &Value) -> bool {
    row["agentId"].is_string() || row["data"]["parentToolCallId"].is_string()
}

/// A session's first row.
fn begin(row: &Value) -> Option<PastBegin> {
    let data = Some(&row["data"]).filter(|_| row["type"] == "session.start")?;
    Some(PastBegin {
        session: string(&data["sessionId"]),
        cwd: string(&data["context"]["cwd"]),
        branch: string(&data["context"]["branch"]),
        agent_id: String::new(),
    })
}

/// Tool uses of subagents are included, as in hooks; messages to and from them are not.
fn past_row(line: &[u8]) -> TurnRow {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return TurnRow::Other };
    let (data, is_subagent) = (&row["data"], is_of_subagent(&row));
    let part = match row["type"].as_str().unwrap_or_default() {
        "user.message" if !is_subagent => {
            return TurnRow::prompt(string(&data["content"]));
        }
        "assistant.message" if !is_subagent => TurnPart::AssistantText(string(&data["content"])),
        "tool.execution_start" => TurnPart::Called {
            tool_use_id: string(&data["toolCallId"]),
            tool: string(&data["toolName"]),
            input: data["arguments"].to_string(),
        },
        "tool.execution_complete" if data["success"] == false => TurnPart::Failed {
            tool_use_id: string(&data["toolCallId"]),
            error: string(&data["error"]["message"]),
        },
        "tool.execution_complete" => TurnPart::Done {
            tool_use_id: string(&data["toolCallId"]),
            output: data["result"]["content"].to_string(),
        },
        _ => return TurnRow::Other,
    };
    TurnRow::parts(vec![part])
}
