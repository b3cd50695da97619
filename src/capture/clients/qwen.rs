//! Qwen Code: Claude Code's hooks, Gemini's tools. Its prompt event also comes before every further request to the
//! model, then without a prompt.

use super::{
    BASE, CLAUDE_CODE_EVENTS, Client, claude_code,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    gemini, normalize, respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, Skip, ToolUse},
    payload::Payload,
};

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
