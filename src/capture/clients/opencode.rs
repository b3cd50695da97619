//! OpenCode: it has no hook commands but plugins, so we ship one that reports events with Claude Code's field names.

use serde_json::Value;

use super::{
    BASE, Client, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    normalize::{self, ToolNames},
    past::{PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::ToolUse,
    transcript::{TurnPart, TurnRow},
};

pub(super) static OPENCODE: Client = Client {
    name: "opencode",
    title: "OpenCode",
    evidence: Evidence {
        fields: &[("platform", Some("opencode"))],
        transcript: &[],
        variables: &[],
    },
    parse: |payload, expected| {
        claude_code::parse_with_tools(payload, expected, "platform", tool_use)
    },
    tool_prefix: "claude-mem_",
    respond: respond::nested,
    config: Config {
        dir: Dir { variable: Some("OPENCODE_CONFIG_DIR"), default: ".config/opencode" },
        signs: &[],
        hooks: HooksForm::Plugin {
            file: "plugins/claude-mem.js",
            text: include_str!("opencode_plugin.js"),
        },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir { variable: Some("OPENCODE_CONFIG_DIR"), default: ".config/opencode" },
            file: "opencode.json",
            key: "mcp",
            form: ServerForm::CommandList,
        }),
        after: "OpenCode downloads its plugin library at the next start, which takes over a minute without a network.",
    },
    past: Some(PastSessions {
        dir: Dir { variable: Some("XDG_DATA_HOME"), default: ".local/share" },
        place: "opencode/opencode.db",
        form: PastForm::OpenCode,
        begin: |_| None,
        row: past_row,
        finish: tool_use,
    }),
    ..BASE
};

const TOOLS: ToolNames = &[
    ("bash", "Bash"),
    ("read", "Read"),
    ("edit", "Edit"),
    ("write", "Write"),
    ("grep", "Grep"),
    ("glob", "Glob"),
    ("list", "LS"),
    ("webfetch", "WebFetch"),
    ("websearch", "WebSearch"),
    ("task", "Agent"),
    ("todowrite", "TodoWrite"),
];

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, TOOLS);
    let Ok(Value::Object(response)) = serde_json::from_str(&used.output) else { return };
    let Some(output) = response.get("output").and_then(Value::as_str) else { return };
    let exit_code = response.get("metadata").and_then(|metadata| metadata["exit"].as_i64());
    match exit_code.filter(|_| used.tool == "Bash") {
        Some(exit_code) => normalize::command_result(used, exit_code, output),
        None => used.output = Value::from(output).to_string().into(),
    }
}

/// A part of a message, with the message.
fn past_row(line: &[u8]) -> TurnRow {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return TurnRow::Other };
    let (part, state) = (&row["part"], &row["part"]["state"]);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let is_user = row["message"]["role"] == "user";
    match part["type"].as_str().unwrap_or_default() {
        // Parts that the client or a plugin added.
        "text" if part["synthetic"] == true => TurnRow::Other,
        "text" if is_user => {
            TurnRow::Prompt { text: text(&part["text"]), prompt_id: String::new() }
        }
        "text" => TurnRow::Parts {
            parts: vec![TurnPart::AssistantText(text(&part["text"]))],
            prompt_id: String::new(),
        },
        "tool" => {
            let id = || text(&part["callID"]);
            let input = state["input"].to_string();
            let called = TurnPart::Called { tool_use_id: id(), tool: text(&part["tool"]), input };
            let result = match state["status"].as_str().unwrap_or_default() {
                "completed" => {
                    Some(TurnPart::Done { tool_use_id: id(), output: state.to_string() })
                }
                "error" => {
                    Some(TurnPart::Failed { tool_use_id: id(), error: text(&state["error"]) })
                }
                _ => None,
            };
            let parts = [called].into_iter().chain(result).collect();
            TurnRow::Parts { parts, prompt_id: String::new() }
        }
        _ => TurnRow::Other,
    }
}
