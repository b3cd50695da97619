//! Codex CLI: Claude Code's hooks with a turn id. A call that fails before it runs is reported by
//! no hook, and a command without its exit code, so both are read from the rollout file.

use std::{borrow::Cow, fmt::Write as _};

use claude_mem_events::StopScope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    BASE, Client, ContextMax, Registration, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_all_tools, for_event,
    json_values::{items, joined, string},
    normalize,
    past::{PastBegin, PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, Skip, ToolUse},
    payload::Payload,
    transcript::{Message, Speaker, TurnPart, TurnRow},
};

pub static CODEX: Client = Client {
    name: "codex",
    title: "Codex CLI",
    evidence: Evidence { fields: &[("turn_id", None)], transcript: &["/rollout-"], variables: &[] },
    parse,
    transcript_line: Some(transcript_line),
    turn_row: Some(turn_row),
    hides_failures: true,
    exit_code: Some(exit_code),
    tool_prefix: "mcp__claude_mem__",
    // More is replaced by its start, its end, and the name of a file.
    context_at: &[
        (IncomingKind::SessionStart, ContextMax::Bytes(10_000)),
        (IncomingKind::Prompt, ContextMax::Bytes(10_000)),
    ],
    respond: |response| respond::nested_as(response, "UserPromptSubmit", "PostToolUse"),
    hooks: HOOKS,
    config: Config {
        dir: Dir::moved_by("CODEX_HOME", ".codex"),
        signs: &[],
        hooks: HooksForm::Groups { file: "hooks.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::moved_by("CODEX_HOME", ".codex"),
            file: "config.toml",
            key: "mcp_servers",
            form: ServerForm::Toml,
        }),
        after: "Codex runs a new hook only when you have approved it: start `codex` and approve the hooks of \
                claude-mem, or run `claude-mem install --client codex --trust`.",
    },
    past: Some(PastSessions {
        dir: Dir::moved_by("CODEX_HOME", ".codex"),
        place: "sessions",
        form: PastForm::Lines { start: "rollout-", end: ".jsonl" },
        begin,
        row: turn_row,
        finish,
    }),
    ..BASE
};

const HOOKS: &[Registration] = &[
    for_event("SessionStart", 10),
    for_event("UserPromptSubmit", 5),
    for_all_tools("PostToolUse", 5),
    for_event("Stop", 10),
    for_event("SubagentStop", 10),
    for_event("SessionEnd", 3),
];

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    let mut incoming = claude_code::parse_relative(payload, expected)?;
    let turn = payload.text("turn_id");
    match &mut incoming {
        Incoming::Prompt(prompt) => prompt.prompt_id = turn,
        Incoming::ToolUse(used) => {
            used.prompt_id = turn;
            tool_use(used);
        }
        Incoming::Stop(stop) => stop.prompt_id = turn,
        _ => {}
    }
    Ok(incoming)
}

/// Renames a tool use to Claude Code's names.
fn tool_use(used: &mut ToolUse<'_>) {
    if used.tool == "apply_patch"
        && let Ok(input) = serde_json::from_str::<Value>(&used.input)
        && let Some(patch) = input["command"].as_str()
    {
        normalize::patch(used, patch);
    }
}

/// A row of a rollout file.
#[derive(Deserialize)]
struct Row<'r> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'r, str>,
    #[serde(default)]
    payload: Value,
}

impl Row<'_> {
    fn read(line: &[u8]) -> Option<Row<'_>> {
        serde_json::from_slice(line).ok()
    }

    /// The part of the conversation in this row, if it has one.
    fn item(&self) -> Option<&Value> {
        (self.kind == "response_item").then_some(&self.payload)
    }
}

/// The exit code of a command, from the row that reports its end. It is written before the hook
/// runs.
fn exit_code(line: &[u8], tool_use_id: &str) -> Option<i64> {
    // Most rows are of other calls, and may be long.
    if !line.windows(tool_use_id.len()).any(|part| part == tool_use_id.as_bytes()) {
        return None;
    }
    let row = Row::read(line)?;
    let item = &row.payload["item"];
    (item["id"] == tool_use_id).then(|| item["exit_code"].as_i64()).flatten()
}

/// Text that the client adds to the conversation in the user's name.
const ADDED: &[&str] =
    &["<environment_context>", "<user_instructions>", "<hook_prompt", "# AGENTS.md"];

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row = Row::read(line)?;
    let item = row.item().filter(|item| item["type"] == "message")?;
    let text = joined(items(&item["content"]));
    let speaker = match item["role"].as_str()? {
        "assistant" => Speaker::Assistant,
        "user" if !ADDED.iter().any(|start| text.starts_with(start)) => Speaker::User,
        _ => return None,
    };
    Some(Message { speaker, text })
}

fn turn_row(line: &[u8]) -> TurnRow {
    let Some(row) = Row::read(line) else { return TurnRow::Other };
    if row.kind == "compacted" {
        return TurnRow::parts(vec![TurnPart::Compacted(string(&row.payload["message"]))]);
    }
    if row.kind == "event_msg" {
        let parts = nested_call(&row.payload["item"]).unwrap_or_default();
        return if parts.is_empty() { TurnRow::Other } else { TurnRow::parts(parts) };
    }
    let Some(item) = row.item() else { return TurnRow::Other };
    let id = || string(&item["call_id"]);
    let part = match item["type"].as_str().unwrap_or_default() {
        "message" => match transcript_line(line, StopScope::Turn) {
            Some(Message { speaker: Speaker::User, text }) => {
                return TurnRow::prompt(text);
            }
            Some(Message { text, .. }) => TurnPart::AssistantText(text),
            None => return TurnRow::Other,
        },
        // A script. Its calls are rows of their own.
        "custom_tool_call" if item["name"] == "exec" => return TurnRow::Other,
        "function_call" | "custom_tool_call" => {
            let (tool, input) = call(item);
            TurnPart::Called { tool_use_id: id(), tool, input }
        }
        "function_call_output" | "custom_tool_call_output" => match failure(&item["output"]) {
            Some(error) => TurnPart::Failed { tool_use_id: id(), error },
            None => TurnPart::Done { tool_use_id: id(), output: item["output"].to_string() },
        },
        _ => return TurnRow::Other,
    };
    TurnRow::parts(vec![part])
}

/// A call within a script: call and result in one row. Other calls have such a row, too, besides
/// their own.
fn nested_call(item: &Value) -> Option<Vec<TurnPart>> {
    let id = item["id"].as_str().filter(|id| id.starts_with("exec-"))?;
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    let (tool, input, output) = match item["type"].as_str()? {
        "CommandExecution" => {
            let command = item["command"].as_array()?.last()?;
            let code = item["exit_code"].as_i64().unwrap_or(0);
            let report = format!("{EXITED}{code}\nOutput:\n{}", text("aggregated_output"));
            ("Bash".into(), json!({ "command": command }), json!(report))
        }
        "FileChange" => {
            let command = patch_of(item["changes"].as_object()?);
            ("apply_patch".into(), json!({ "command": command }), json!(text("stdout")))
        }
        "McpToolCall" => {
            let tool = format!("mcp__{}__{}", text("server"), text("tool"));
            (tool, item["arguments"].clone(), item["result"].clone())
        }
        _ => return None,
    };
    let mut used =
        ToolUse { tool: Cow::Owned(tool), input: input.to_string().into(), ..ToolUse::default() };
    tool_use(&mut used);
    let tool_use_id = id.to_owned();
    let (tool, input) = (used.tool.into_owned(), used.input.into_owned());
    let done = TurnPart::Done { tool_use_id: id.to_owned(), output: output.to_string() };
    Some(vec![TurnPart::Called { tool_use_id, tool, input }, done])
}

/// Changes of files as a patch that the model could have written.
fn patch_of(changes: &serde_json::Map<String, Value>) -> String {
    let mut patch = String::from("*** Begin Patch\n");
    for (path, change) in changes {
        let text = |name: &str| change[name].as_str().unwrap_or_default();
        match change["type"].as_str().unwrap_or_default() {
            "add" => {
                let _ = writeln!(patch, "*** Add File: {path}");
                text("content").lines().for_each(|line| {
                    let _ = writeln!(patch, "+{line}");
                });
            }
            "delete" => {
                let _ = writeln!(patch, "*** Delete File: {path}");
            }
            _ => {
                let _ = writeln!(patch, "*** Update File: {path}");
                if !text("move_path").is_empty() {
                    let _ = writeln!(patch, "*** Move to: {}", text("move_path"));
                }
                let _ = writeln!(patch, "{}", text("unified_diff").trim_end_matches('\n'));
            }
        }
    }
    patch + "*** End Patch\n"
}

/// A session's first row. A subagent has a file of its own.
fn begin(row: &Value) -> Option<PastBegin> {
    let meta = Some(&row["payload"]).filter(|_| row["type"] == "session_meta")?;
    let id = string(&meta["id"]);
    let is_subagent = meta["parent_thread_id"].is_string();
    let session = Some(string(&meta["session_id"])).filter(|_| is_subagent);
    Some(PastBegin {
        session: session.filter(|of| !of.is_empty()).unwrap_or_else(|| id.clone()),
        cwd: string(&meta["cwd"]),
        branch: string(&meta["git"]["branch"]),
        agent_id: if is_subagent { id } else { String::new() },
    })
}

const EXITED: &str = "Process exited with code ";

/// The transcript has the report that the model gets of a command, with its exit code.
fn finish(used: &mut ToolUse<'_>) {
    if used.tool != "Bash" || used.has_failed {
        return;
    }
    let text = crate::payload::text(&used.output).into_owned();
    let Some((head, output)) = text.split_once("Output:\n") else { return };
    let code = head.lines().find_map(|line| line.strip_prefix(EXITED)?.trim().parse().ok());
    normalize::command_result(used, code.unwrap_or(0), output);
}

/// Tool and input of a call, as a hook would report them.
fn call(item: &Value) -> (String, String) {
    let name = item["name"].as_str().unwrap_or_default();
    let arguments = item["arguments"].as_str().unwrap_or_default();
    let input = item["input"].as_str().unwrap_or_default();
    let mut used = match (name, item["namespace"].as_str()) {
        ("apply_patch", _) => ToolUse {
            tool: "apply_patch".into(),
            input: json!({ "command": input }).to_string().into(),
            ..ToolUse::default()
        },
        ("exec_command" | "shell_command" | "shell", _) => {
            let arguments: Value = serde_json::from_str(arguments).unwrap_or_default();
            let command = arguments.get("cmd").or_else(|| arguments.get("command"));
            let input = json!({ "command": command }).to_string();
            ToolUse { tool: "Bash".into(), input: input.into(), ..ToolUse::default() }
        }
        (name, namespace) => {
            let tool = namespace.map_or_else(|| name.to_owned(), |of| format!("{of}__{name}"));
            let input =
                if arguments.is_empty() { json!(input).to_string() } else { arguments.into() };
            ToolUse { tool: tool.into(), input: input.into(), ..ToolUse::default() }
        }
    };
    tool_use(&mut used);
    (used.tool.into_owned(), used.input.into_owned())
}

/// The error of a call that did not run. Results of those that ran have an `Output:` or are JSON,
/// and a script of several calls reports each by itself.
fn failure(output: &Value) -> Option<String> {
    let text = output.as_str()?;
    let has_run = text.trim_start().starts_with(['{', '['])
        || text.lines().any(|line| line == "Output:")
        || text.trim().is_empty();
    (!has_run).then(|| text.to_owned())
}
