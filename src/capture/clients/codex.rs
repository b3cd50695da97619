//! Codex CLI: Claude Code's hooks with a turn id. A call that fails before it runs is reported by no hook,
//! and a command without its exit code, so both are read from the rollout file.

use std::borrow::Cow;

use claude_mem_events::StopScope;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    BASE, Client, Registration, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_all_tools, for_event, normalize, respond,
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
    context_bytes_max: 10_000,
    respond: |response| respond::nested_as(response, "UserPromptSubmit", "PostToolUse"),
    hooks: HOOKS,
    config: Config {
        dir: Dir { variable: Some("CODEX_HOME"), default: ".codex" },
        signs: &[],
        hooks: HooksForm::Groups { file: "hooks.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir { variable: Some("CODEX_HOME"), default: ".codex" },
            file: "config.toml",
            key: "mcp_servers",
            form: ServerForm::Toml,
        }),
        after: "Codex runs a new hook only when you have approved it: start `codex` and approve the hooks of \
                claude-mem, or run `claude-mem install --client codex --trust`.",
    },
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

/// Gives a tool use the names of Claude Code.
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

/// The exit code of a command, from the row that reports its end. It is written before the hook runs.
fn exit_code(line: &[u8], tool_use_id: &str) -> Option<i64> {
    // Most rows are of other calls, and may be long.
    if !line.windows(tool_use_id.len()).any(|part| part == tool_use_id.as_bytes()) {
        return None;
    }
    let row = Row::read(line)?;
    let item = &row.payload["item"];
    (item["id"] == tool_use_id).then(|| item["exit_code"].as_i64()).flatten()
}

/// What the client adds to the conversation in the user's name.
const ADDED: &[&str] =
    &["<environment_context>", "<user_instructions>", "<hook_prompt", "# AGENTS.md"];

fn text(item: &Value) -> String {
    let parts = item["content"].as_array().into_iter().flatten();
    let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
    texts.join("\n")
}

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row = Row::read(line)?;
    let item = row.item().filter(|item| item["type"] == "message")?;
    let text = text(item);
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
        let summary = row.payload["message"].as_str().unwrap_or_default().to_owned();
        return TurnRow::Parts {
            parts: vec![TurnPart::Compacted(summary)],
            prompt_id: String::new(),
        };
    }
    let Some(item) = row.item() else { return TurnRow::Other };
    let id = || item["call_id"].as_str().unwrap_or_default().to_owned();
    let part = match item["type"].as_str().unwrap_or_default() {
        "message" => match transcript_line(line, StopScope::Turn) {
            Some(Message { speaker: Speaker::User, text }) => {
                return TurnRow::Prompt { text, prompt_id: String::new() };
            }
            Some(Message { text, .. }) => TurnPart::Said(text),
            None => return TurnRow::Other,
        },
        "function_call" | "custom_tool_call" => {
            let (tool, input) = call(item);
            TurnPart::Called { tool_use_id: id(), tool, input }
        }
        "function_call_output" | "custom_tool_call_output" => match failure(&item["output"]) {
            Some(error) => TurnPart::Failed { tool_use_id: id(), error },
            None => return TurnRow::Other,
        },
        _ => return TurnRow::Other,
    };
    TurnRow::Parts { parts: vec![part], prompt_id: String::new() }
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

/// The error of a call that did not run. Results of those that ran have an `Output:` or are JSON, and a script of
/// several calls reports each by itself.
fn failure(output: &Value) -> Option<String> {
    let text = output.as_str()?;
    let has_run = text.trim_start().starts_with(['{', '['])
        || text.lines().any(|line| line == "Output:")
        || text.trim().is_empty();
    (!has_run).then(|| text.to_owned())
}
