//! OpenCode: it runs plugins instead of hook commands, so we ship one that reports events with
//! Claude Code's field names.

use serde_json::Value;

use super::{
    BASE, Client, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    json_values::string,
    normalize::{self, ToolNames},
    past::{PastForm, PastSessions},
    respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, Skip, ToolUse},
    payload::Payload,
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
    parse,
    tool_prefix: "claude-mem_",
    respond: respond::nested,
    config: Config {
        dir: Dir::moved_by("OPENCODE_CONFIG_DIR", ".config/opencode"),
        signs: &[],
        hooks: HooksForm::Plugin {
            file: "plugins/claude-mem.js",
            text: include_str!("opencode_plugin.js"),
        },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::moved_by("OPENCODE_CONFIG_DIR", ".config/opencode"),
            file: "opencode.json",
            key: "mcp",
            form: ServerForm::CommandList,
        }),
        after: "OpenCode downloads its plugin library at the next start, which takes over a \
            minute without a network.",
    },
    past: Some(PastSessions {
        dir: Dir::of_home(".local/share/opencode"),
        place: "opencode.db",
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

fn parse<'a>(
    payload: &mut Payload<'a>,
    expected: Option<IncomingKind>,
) -> Result<Incoming<'a>, Skip> {
    let mut incoming = claude_code::parse_with_tools(payload, expected, "platform", tool_use)?;
    if let Incoming::Prompt(prompt) = &mut incoming {
        prompt.text = typed(&prompt.text).into();
    }
    Ok(incoming)
}

/// The prompt as typed: `opencode run` quotes an argument with spaces.
fn typed(prompt: &str) -> String {
    let inside = prompt.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    let is_argument = |text: &&str| text.contains(' ') && !text.replace("\\\"", "").contains('"');
    inside.filter(is_argument).map_or_else(|| prompt.to_owned(), |text| text.replace("\\\"", "\""))
}

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
    let is_user = row["message"]["role"] == "user";
    match part["type"].as_str().unwrap_or_default() {
        // Parts that the client or a plugin added.
        "text" if part["synthetic"] == true => TurnRow::Other,
        "text" if is_user => TurnRow::prompt(typed(&string(&part["text"]))),
        "text" => TurnRow::parts(vec![TurnPart::AssistantText(string(&part["text"]))]),
        "tool" => {
            let id = || string(&part["callID"]);
            let input = state["input"].to_string();
            let called = TurnPart::Called { tool_use_id: id(), tool: string(&part["tool"]), input };
            let result = match state["status"].as_str().unwrap_or_default() {
                "completed" => {
                    Some(TurnPart::Done { tool_use_id: id(), output: state.to_string() })
                }
                "error" => {
                    Some(TurnPart::Failed { tool_use_id: id(), error: string(&state["error"]) })
                }
                _ => None,
            };
            TurnRow::parts([called].into_iter().chain(result).collect())
        }
        _ => TurnRow::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_given_as_one_argument_is_recorded_as_it_was_typed() {
        for (given, expected) in [
            (r#""fix the sum""#, "fix the sum"),
            (r#""say \"hello\" twice""#, r#"say "hello" twice"#),
            (r#""one" and "two""#, r#""one" and "two""#),
            (r#""word""#, r#""word""#),
            ("fix the sum", "fix the sum"),
            ("\"", "\""),
        ] {
            assert_eq!(typed(given), expected);
        }
    }
}
