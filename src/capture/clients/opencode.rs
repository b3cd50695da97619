//! `OpenCode`: it has no hook commands but plugins, so we ship one that reports events with Claude Code's field names.

use serde_json::Value;

use super::{
    BASE, Client, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    normalize::{self, ToolNames},
    respond,
};
use crate::incoming::ToolUse;

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
