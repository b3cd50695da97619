//! Windsurf, according to its documentation: all fields are in `tool_info`, and it accepts no
//! memory.

use claude_mem_events::StopScope;
use serde_json::json;

use super::{
    BASE, Client, Registration, SessionFields,
    config::{Config, Dir, Extra, HooksForm, ServerFile, ServerForm},
    evidence::Evidence,
    for_event, respond,
};
use crate::{
    incoming::{Incoming, IncomingKind, LastMessages, Prompt, Skip, Stop, ToolUse},
    payload::Payload,
};

pub(super) static WINDSURF: Client = Client {
    name: "windsurf",
    title: "Windsurf",
    is_tested: false,
    evidence: Evidence { fields: &[("agent_action_name", None)], transcript: &[], variables: &[] },
    session,
    parse,
    tool_prefix: "",
    context_at: &[],
    respond: respond::silent,
    hooks: HOOKS,
    config: Config {
        dir: Dir::of_home(".codeium/windsurf"),
        signs: &[],
        hooks: HooksForm::Entries {
            file: "hooks.json",
            timeout: None,
            has_version: false,
            extra: &[("show_output", Extra::Flag(false))],
        },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::of_home(".codeium/windsurf"),
            file: "mcp_config.json",
            key: "mcpServers",
            form: ServerForm::Plain(&[]),
        }),
        after: "Windsurf accepts no memory from hooks: its model reads it through the MCP server.",
    },
    ..BASE
};

const HOOKS: &[Registration] = &[
    for_event("pre_user_prompt", 0),
    for_event("post_run_command", 0),
    for_event("post_write_code", 0),
    for_event("post_mcp_tool_use", 0),
    for_event("post_cascade_response", 0),
];

/// Only commands report their directory; otherwise the hook's own is used.
fn session<'a>(payload: &mut Payload<'a>) -> SessionFields<'a> {
    let id = payload.take_text("trajectory_id").filter(|id| !id.is_empty());
    let info = payload.peek("tool_info").map(|json| Payload::read(json).0);
    let cwd = info.and_then(|mut info| info.take_text("cwd")).filter(|cwd| !cwd.is_empty());
    SessionFields { id, cwd }
}

fn parse<'a>(payload: &mut Payload<'a>, _: Option<IncomingKind>) -> Result<Incoming<'a>, Skip> {
    payload.take("timestamp");
    let turn = payload.text("execution_id");
    let mut info = payload.take_object("tool_info");
    let used = |tool: &'static str, input: String| ToolUse {
        tool: tool.into(),
        input: input.into(),
        prompt_id: turn.clone(),
        ..ToolUse::default()
    };
    match &*payload.text("agent_action_name") {
        "pre_user_prompt" => {
            Ok(Incoming::Prompt(Prompt { text: info.text("user_prompt"), prompt_id: turn }))
        }
        "post_run_command" => {
            let input = json!({"command": info.text("command_line")}).to_string();
            Ok(Incoming::ToolUse(used("Bash", input)))
        }
        "post_write_code" => {
            let edits: serde_json::Value =
                serde_json::from_str(&info.json("edits")).unwrap_or_default();
            let input = json!({"file_path": info.text("file_path"), "edits": edits}).to_string();
            Ok(Incoming::ToolUse(used("Edit", input)))
        }
        "post_mcp_tool_use" => {
            let tool =
                format!("mcp__{}__{}", info.text("mcp_server_name"), info.text("mcp_tool_name"));
            Ok(Incoming::ToolUse(ToolUse {
                tool: tool.into(),
                output: info.json("mcp_result"),
                ..used("", info.json("mcp_tool_arguments").into_owned())
            }))
        }
        "post_cascade_response" => {
            let assistant = info.text("response");
            Ok(Incoming::Stop(Stop {
                scope: StopScope::Turn,
                last_messages: LastMessages::Given { user: "".into(), assistant },
                prompt_id: turn,
                ..Stop::default()
            }))
        }
        "pre_run_command"
        | "pre_write_code"
        | "pre_read_code"
        | "pre_mcp_tool_use"
        | "post_read_code"
        | "post_cascade_response_with_transcript"
        | "post_setup_worktree" => Err(Skip::NotForUs),
        other => Err(Skip::UnknownEvent(other.to_owned())),
    }
}
