//! Cline CLI: one program per event, nested payloads. It accepts no memory at the start or with a
//! prompt, and has no prompt event.

use claude_mem_events::StopScope;
use serde_json::{Map, Value, json};

use super::{
    BASE, Client, Registration, SessionFields,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    for_event, normalize, respond,
};
use crate::{
    incoming::{
        Incoming, IncomingKind, LastMessages, SessionEnd, SessionStart, Skip, Stop, ToolUse,
    },
    payload::Payload,
};

pub(super) static CLINE: Client = Client {
    name: "cline",
    title: "Cline CLI",
    evidence: Evidence { fields: &[("clineVersion", None)], transcript: &[], variables: &[] },
    session,
    parse,
    tool_prefix: "claude-mem__",
    context_at: &[],
    respond: respond::silent,
    hooks: HOOKS,
    config: Config {
        dir: Dir::of_home(".cline"),
        signs: &[],
        hooks: HooksForm::Scripts { dir: "hooks" },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".cline"),
            file: "data/settings/cline_mcp_settings.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "",
    },
    ..BASE
};

const HOOKS: &[Registration] = &[
    for_event("TaskStart", 10),
    for_event("PostToolUse", 5),
    for_event("TaskComplete", 10),
    for_event("SessionShutdown", 5),
];

fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    let mut context = payload.take_object("sessionContext");
    let id = context.take_text("rootSessionId").or_else(|| payload.take_text("taskId"));
    let mut workspace = payload.take_object("workspaceInfo");
    SessionFields {
        id: id.filter(|id| !id.is_empty()),
        cwd: workspace.take_text("rootPath").filter(|cwd| !cwd.is_empty()),
    }
}

fn parse<'a>(payload: &mut Payload<'a>, _: Option<IncomingKind>) -> Result<Incoming<'a>, Skip> {
    let is_subagent = payload.take("parent_agent_id").is_some();
    let agent = payload.take_text("agent_id").filter(|_| is_subagent).unwrap_or_default();
    for name in ["userId", "clineVersion", "timestamp", "workspaceRoots", "taskId", "postToolUse"] {
        payload.take(name);
    }
    match &*payload.text("hookName") {
        "agent_start" if is_subagent => Err(Skip::NotForUs),
        "agent_start" => Ok(Incoming::SessionStart(SessionStart {
            source: "startup".into(),
            ..SessionStart::default()
        })),
        "tool_result" => {
            let mut result = payload.take_object("tool_result");
            let mut used = ToolUse {
                tool: result.text("name"),
                input: result.json("input"),
                output: result.json("output"),
                tool_use_id: result.text("id"),
                duration_ms: result.take_number("durationMs"),
                agent_id: agent,
                ..ToolUse::default()
            };
            tool_use(&mut used);
            Ok(Incoming::ToolUse(used))
        }
        "agent_end" => {
            let assistant = payload.take_object("turn").text("outputText");
            Ok(Incoming::Stop(Stop {
                scope: if is_subagent { StopScope::Subagent } else { StopScope::Turn },
                last_messages: LastMessages::Given { user: "".into(), assistant },
                agent_id: agent,
                ..Stop::default()
            }))
        }
        "session_shutdown" => Ok(Incoming::SessionEnd(SessionEnd::default())),
        "tool_call" => Err(Skip::NotForUs),
        other => Err(Skip::UnknownEvent(other.to_owned())),
    }
}

/// Tools take lists. A list with one entry is converted to the form of other clients.
fn tool_use(used: &mut ToolUse<'_>) {
    let parsed = |json: &str| serde_json::from_str::<Value>(json).unwrap_or_default();
    let (input, output) = (parsed(&used.input), parsed(&used.output));
    if let Some((server, tool)) = used.tool.split_once("__") {
        used.tool = format!("mcp__{server}__{tool}").into();
        return;
    }
    // A single result is not in a list.
    let results = match &output {
        Value::Array(results) => &results[..],
        Value::Object(_) => std::slice::from_ref(&output),
        _ => return,
    };
    let text = |name: &str| {
        let texts = results.iter().filter_map(|result| result[name].as_str());
        texts.collect::<Vec<_>>().join("\n")
    };
    used.has_failed = results.iter().any(|result| result["success"] == false);
    match &*used.tool {
        "run_commands" => {
            let commands = input["commands"].as_array().into_iter().flatten();
            let commands: Vec<&str> = commands.filter_map(Value::as_str).collect();
            used.tool = "Bash".into();
            used.input = json!({"command": commands.join("\n")}).to_string().into();
            let output = text("result");
            let failed = output.strip_prefix("[Command exited with code ");
            match failed.and_then(|rest| rest.split_once("]\n")) {
                Some((code, rest)) => {
                    normalize::command_result(used, code.parse().unwrap_or(1), rest);
                }
                None if used.has_failed => used.error = text("error").into(),
                None => normalize::command_result(used, 0, &output),
            }
        }
        "editor" => {
            used.tool = if input["old_text"].is_string() { "Edit" } else { "Write" }.into();
            let new = if used.tool == "Edit" { "new_string" } else { "content" };
            let names = [("path", "file_path"), ("old_text", "old_string"), ("new_text", new)];
            let Value::Object(input) = input else { return };
            let ours = |name: String| {
                let ours = names.iter().find(|(theirs, _)| *theirs == name);
                ours.map_or(name, |(_, ours)| (*ours).to_owned())
            };
            let input: Map<String, Value> =
                input.into_iter().map(|(name, value)| (ours(name), value)).collect();
            used.input = Value::Object(input).to_string().into();
            used.output = Value::from(text("result")).to_string().into();
        }
        "read_files" => {
            used.tool = "Read".into();
            let path = &input["files"][0]["path"];
            used.input = json!({"file_path": path, "files": input["files"]}).to_string().into();
            used.output = Value::from(text("result")).to_string().into();
        }
        _ => {}
    }
    if used.has_failed && used.error.is_empty() {
        used.error = text("error").into();
    }
}
