//! Qwen Code: Claude Code's hooks and Gemini's tools. Its prompt event is also sent before every
//! further request to the model, then without a prompt.

use super::{
    BASE, CLAUDE_CODE_EVENTS, Client, claude_code,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    gemini,
    json_values::{items, joined, string},
    normalize,
    past::{PastBegin, PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, Skip, ToolUse},
    payload::Payload,
    transcript::{TurnPart, TurnRow},
};
use serde_json::Value;

pub(super) static QWEN: Client = Client {
    name: "qwen",
    title: "Qwen Code",
    evidence: Evidence {
        fields: &[("submitted_prompt", None)],
        transcript: &["/.qwen/"],
        variables: &["QWEN_CODE_SESSION_ID"],
    },
    session_variable: Some("QWEN_CODE_SESSION_ID"),
    project_variable: Some("QWEN_PROJECT_DIR"),
    parse,
    tool_prefix: "mcp__claude-mem__",
    respond: respond::nested,
    hooks: CLAUDE_CODE_EVENTS,
    config: Config {
        dir: Dir::of_home(".qwen"),
        signs: &[],
        hooks: HooksForm::Groups { file: "settings.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".qwen"),
            file: "settings.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[("trust", Extra::Flag(true))]),
        }),
        after: "",
    },
    past: Some(PastSessions {
        dir: Dir::of_home(".qwen"),
        place: "projects",
        form: PastForm::Lines { start: "", end: ".jsonl" },
        begin,
        row: past_row,
        finish: tool_use,
    }),
    ..BASE
};

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    payload.take("timestamp");
    let submitted = payload.take_text("submitted_prompt");
    let mut incoming = claude_code::parse_relative(payload, expected)?;
    match &mut incoming {
        Incoming::Prompt(prompt) => match submitted {
            Some(text) => prompt.text = text,
            None if prompt.text.trim().is_empty() => return Err(Skip::NotForUs),
            None => {}
        },
        Incoming::ToolUse(used) => tool_use(used),
        _ => {}
    }
    Ok(incoming)
}

fn tool_use(used: &mut ToolUse<'_>) {
    normalize::rename(used, gemini::TOOLS);
    if used.has_failed {
        if let Some((exit_code, output)) = normalize::command_report(&used.error)
            && exit_code != 0
        {
            let output = output.to_owned();
            normalize::command_result(used, exit_code, &output);
        }
        return;
    }
    gemini::result(used);
}

/// Every row names its session.
fn begin(row: &Value) -> Option<PastBegin> {
    row["provenance"].as_str()?;
    Some(PastBegin {
        session: string(&row["sessionId"]),
        cwd: string(&row["cwd"]),
        branch: string(&row["gitBranch"]),
        agent_id: String::new(),
    })
}

fn past_row(line: &[u8]) -> TurnRow {
    let Ok(row) = serde_json::from_slice::<Value>(line) else { return TurnRow::Other };
    let parts = items(&row["message"]["parts"]);
    match row["type"].as_str().unwrap_or_default() {
        "user" if row["provenance"] == "real_user" => TurnRow::prompt(joined(parts)),
        "assistant" | "tool_result" => TurnRow::parts(parts.iter().filter_map(part).collect()),
        _ => TurnRow::Other,
    }
}

fn part(part: &Value) -> Option<TurnPart> {
    if let Some(call) = part.get("functionCall") {
        let (tool_use_id, tool) = (string(&call["id"]), string(&call["name"]));
        return Some(TurnPart::Called { tool_use_id, tool, input: call["args"].to_string() });
    }
    if let Some(text) = part["text"].as_str().filter(|_| part["thought"] != true) {
        return Some(TurnPart::AssistantText(text.to_owned()));
    }
    gemini::returned(part)
}
