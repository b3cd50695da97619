//! Kimi Code: Claude Code's hooks, with the prompt split into parts. It accepts memory only with a
//! prompt, and shows the model any other output of a hook. One unknown event disables all hooks. No
//! event names the transcript, which is the only source of the last answer.

use std::time::Duration;

use claude_mem_events::StopScope;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{
    BASE, CLAUDE_CODE_EVENTS, Client, ContextMax, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    json_values::{items, joined, string},
    normalize, respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, Skip, ToolUse},
    payload::Payload,
    transcript::{Message, Speaker, TurnPart, TurnRow},
};

pub(super) static KIMI: Client = Client {
    name: "kimi",
    title: "Kimi Code",
    evidence: Evidence {
        fields: &[("client_type", Some("kimi_code_cli"))],
        transcript: &["/.kimi-code/"],
        variables: &[],
    },
    parse,
    transcript_place: Some(transcript_place),
    transcript_line: Some(transcript_line),
    turn_row: Some(turn_row),
    // Rows are written with a delay.
    transcript_lag: Duration::from_millis(200),
    tool_prefix: "mcp__claude-mem__",
    context_at: &[(IncomingKind::Prompt, ContextMax::Unlimited)],
    respond: respond::plain,
    hooks: CLAUDE_CODE_EVENTS,
    config: Config {
        dir: Dir::of_home(".kimi-code"),
        signs: &[],
        hooks: HooksForm::Tables { file: "config.toml" },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".kimi-code"),
            file: "mcp.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "",
    },
    ..BASE
};

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    payload.take("client_type");
    let mut incoming = claude_code::parse_relative(payload, expected)?;
    match &mut incoming {
        Incoming::Prompt(prompt) => {
            if let Ok(Value::Array(parts)) = serde_json::from_str(&prompt.text) {
                prompt.text = joined(&parts).into();
            }
        }
        Incoming::ToolUse(used) => {
            used.tool_use_id = payload.text("tool_call_id");
            tool_use(used);
        }
        _ => {}
    }
    Ok(incoming)
}

/// The name of the working directory's folder, then the start of its hash.
fn transcript_place(session: &str, cwd: &str) -> String {
    let name = cwd.rsplit('/').next().unwrap_or_default();
    // A session id that is a path does not name a file outside the folder.
    let session = session.rsplit(['/', '\\']).next().unwrap_or_default();
    let hash = Sha256::digest(cwd.as_bytes());
    let hash: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    format!("sessions/wd_{name}_{hash}/{session}/agents/main/wire.jsonl")
}

/// The answer is the message without calls. It is written after the turn has ended.
fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    if let TurnRow::Prompt { text, .. } = turn_row(line) {
        return Some(Message { speaker: Speaker::User, text });
    }
    let row: Value = serde_json::from_slice(line).ok()?;
    let message = &row["message"]["message"];
    let is_answer = row["type"] == "agent.message.appended"
        && message["role"] == "assistant"
        && items(&message["toolCalls"]).is_empty();
    let text = is_answer.then(|| joined(items(&message["content"])))?;
    Some(Message { speaker: Speaker::Assistant, text })
}

fn turn_row(line: &[u8]) -> TurnRow {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return TurnRow::Other };
    if row["type"] == "turn.prompt" {
        return TurnRow::prompt(joined(items(&row["input"])));
    }
    if row["type"] != "context.append_loop_event" {
        return TurnRow::Other;
    }
    let event = &row["event"];
    let tool_use_id = string(&event["toolCallId"]);
    let part = match event["type"].as_str().unwrap_or_default() {
        "content.part" if event["part"]["type"] == "text" => {
            TurnPart::AssistantText(string(&event["part"]["text"]))
        }
        "tool.call" => {
            let (tool, input) = (string(&event["name"]), event["args"].to_string());
            TurnPart::Called { tool_use_id, tool, input }
        }
        "tool.result" if event["result"]["isError"] == true => {
            TurnPart::Failed { tool_use_id, error: string(&event["result"]["output"]) }
        }
        _ => return TurnRow::Other,
    };
    TurnRow::parts(vec![part])
}

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, &[]);
    if !used.has_failed {
        return;
    }
    if let Ok(Value::Object(error)) = serde_json::from_str(&used.error)
        && let Some(message) = error.get("message").and_then(Value::as_str)
    {
        used.error = message.to_owned().into();
    }
    if used.tool == "Bash"
        && let Some((output, code)) = used.error.rsplit_once("Command failed with exit code: ")
        && let Ok(code) = code.trim_end_matches(['.', '\n']).parse()
    {
        let output = output.to_owned();
        normalize::command_result(used, code, &output);
    }
}
