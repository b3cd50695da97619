//! Factory droid: Claude Code's hooks without ids. It has no events for failed tools, which are
//! read from the transcript.

use claude_mem_events::StopScope;
use serde_json::Value;

use super::{
    BASE, Client, Registration, claude_code,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_all_tools, for_event,
    json_values::{joined, string},
    normalize::{self, ToolNames},
    respond,
};
use crate::{
    incoming::ToolUse,
    transcript::{Message, Speaker, TurnPart, TurnRow},
};

pub(super) static DROID: Client = Client {
    name: "droid",
    title: "Factory droid",
    evidence: Evidence {
        fields: &[],
        transcript: &["/.factory/"],
        variables: &["DROID_PROJECT_DIR"],
    },
    project_variable: Some("DROID_PROJECT_DIR"),
    parse: |payload, expected| {
        claude_code::parse_with_tools(payload, expected, "CLAUDE_ENV_FILE", tool_use)
    },
    transcript_line: Some(transcript_line),
    turn_row: Some(turn_row),
    hides_failures: true,
    tool_prefix: "claude-mem___",
    respond: respond::nested,
    hooks: HOOKS,
    config: Config {
        dir: Dir::of_home(".factory"),
        signs: &[],
        hooks: HooksForm::Groups { file: "settings.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".factory"),
            file: "mcp.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[("type", Extra::Text("stdio"))]),
        }),
        after: "",
    },
    ..BASE
};

const HOOKS: &[Registration] = &[
    for_event("SessionStart", 10),
    for_event("UserPromptSubmit", 5),
    for_all_tools("PostToolUse", 5),
    for_event("Stop", 10),
    for_event("SubagentStop", 10),
    for_event("SessionEnd", 5),
];

const TOOLS: ToolNames = &[("Execute", "Bash"), ("Create", "Write")];

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, TOOLS);
    if let Some((server, tool)) = used.tool.split_once("___") {
        used.tool = format!("mcp__{server}__{tool}").into();
    }
    if used.tool == "Bash"
        && let Some((output, exit_code)) = command_output(&crate::payload::text(&used.output))
    {
        normalize::command_result(used, exit_code, &output);
    }
}

/// The output of a command, and the exit code below it.
fn command_output(text: &str) -> Option<(String, i64)> {
    let (output, code) = text.trim_end().rsplit_once("[Process exited with code ")?;
    let code = code.strip_suffix(']')?.parse().ok()?;
    Some((format!("{}\n", output.trim_end()), code))
}

/// Formats the error of a command as other clients do: exit code, then output.
fn command_error(text: String) -> String {
    let Some(rest) = text.strip_prefix("Error: Command failed (exit code: ") else { return text };
    let output = rest.split_once(")\n").map(|(_, output)| output).unwrap_or_default();
    let Some((output, code)) = command_output(output) else { return text };
    normalize::command_error(code, &output)
}

/// The content blocks of a message that the model received, and their author.
fn message(line: &[u8]) -> Option<(Speaker, Vec<Value>)> {
    let mut row: Value = serde_json::from_slice(line).ok()?;
    let message = &mut row["message"];
    let speaker = match message["role"].as_str()? {
        "user" if message["visibility"] != "user_only" => Speaker::User,
        "assistant" => Speaker::Assistant,
        _ => return None,
    };
    match message["content"].take() {
        Value::Array(blocks) => Some((speaker, blocks)),
        _ => None,
    }
}

fn is_added(text: &str) -> bool {
    text.trim_start().starts_with("<system-reminder>")
}

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let (speaker, blocks) = message(line)?;
    Some(Message { speaker, text: joined(&blocks) }).filter(|message| !is_added(&message.text))
}

fn turn_row(line: &[u8]) -> TurnRow {
    let Some((speaker, blocks)) = message(line) else { return TurnRow::Other };
    let part = |block: &Value| {
        let field = |name: &str| string(&block[name]);
        match block["type"].as_str()? {
            "text" => Some(TurnPart::AssistantText(field("text"))),
            "tool_use" => {
                let input = block["input"].to_string();
                let mut used = ToolUse {
                    tool: field("name").into(),
                    input: input.into(),
                    ..ToolUse::default()
                };
                tool_use(&mut used);
                let (tool, input) = (used.tool.into_owned(), used.input.into_owned());
                Some(TurnPart::Called { tool_use_id: field("id"), tool, input })
            }
            "tool_result" if block["is_error"] == true => {
                let error = match &block["content"] {
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                let error = command_error(error);
                Some(TurnPart::Failed { tool_use_id: field("tool_use_id"), error })
            }
            "tool_result" => Some(TurnPart::Done {
                tool_use_id: field("tool_use_id"),
                output: block["content"].to_string(),
            }),
            _ => None,
        }
    };
    let is_result = blocks.iter().any(|block| block["type"] == "tool_result");
    if speaker == Speaker::User && !is_result {
        let text = joined(&blocks);
        if text.trim().is_empty() || is_added(&text) {
            return TurnRow::Other;
        }
        return TurnRow::prompt(text);
    }
    TurnRow::parts(blocks.iter().filter_map(part).collect())
}
