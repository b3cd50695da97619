//! Kimi Code: Claude Code's hooks with a prompt in parts. It takes memory only with a prompt, and shows the model
//! whatever else a hook writes. One event it does not know disables all hooks.

use std::borrow::Cow;

use serde_json::Value;

use super::{
    BASE, CLAUDE_CODE_EVENTS, Client, ContextMax, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    normalize, respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, LastMessages, Skip, ToolUse},
    payload::Payload,
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
        Incoming::Prompt(prompt) => prompt.text = joined(&prompt.text),
        Incoming::ToolUse(used) => {
            used.tool_use_id = payload.text("tool_call_id");
            tool_use(used);
        }
        // Neither the stop event nor a path in it leads to the last message.
        Incoming::Stop(stop) => {
            if let LastMessages::InTranscript(None) = stop.last_messages {
                stop.last_messages = LastMessages::default();
            }
        }
        _ => {}
    }
    Ok(incoming)
}

/// The texts of a prompt in parts; any other prompt as it is.
fn joined<'a>(prompt: &str) -> Cow<'a, str> {
    let Ok(Value::Array(parts)) = serde_json::from_str(prompt) else {
        return Cow::Owned(prompt.to_owned());
    };
    let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
    Cow::Owned(texts.join("\n"))
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
