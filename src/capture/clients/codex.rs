//! Codex CLI: Claude Code's hooks with a turn id. No hook reports a call that fails before it runs,
//! and a command is reported without its exit code. Both are read from the rollout file. Up to
//! version 0.145, the exit code is written after the hook has run.

use std::{borrow::Cow, fmt::Write as _};

use claude_mem_events::StopScope;
use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    BASE, Client, ContextMax, Registration, claude_code,
    config::{Config, Dir, HooksForm, ServerFile, ServerForm, TimeoutUnit},
    evidence::Evidence,
    for_all_tools, for_event,
    json_values::{items, joined, string},
    normalize,
    past::{PastBegin, PastForm, PastSessions},
    respond,
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
    // The client replaces longer text by its start, its end, and a file name.
    context_at: &[
        (IncomingKind::SessionStart, ContextMax::Bytes(10_000)),
        (IncomingKind::Prompt, ContextMax::Bytes(10_000)),
    ],
    respond: |response| respond::nested_as(response, "UserPromptSubmit", "PostToolUse"),
    hooks: HOOKS,
    config: Config {
        dir: Dir::moved_by("CODEX_HOME", ".codex"),
        signs: &[],
        hooks: HooksForm::Groups { file: "hooks.json", unit: TimeoutUnit::Seconds },
        registered_as: None,
        server: Some(ServerFile {
            dir: Dir::moved_by("CODEX_HOME", ".codex"),
            file: "config.toml",
            key: "mcp_servers",
            form: ServerForm::Toml,
        }),
        after: "Codex runs a new hook only when you have approved it: start `codex` and approve \
            the hooks of claude-mem, or run `claude-mem install --client codex --trust`.",
    },
    past: Some(PastSessions {
        dir: Dir::moved_by("CODEX_HOME", ".codex"),
        place: "sessions",
        form: PastForm::Lines { start: "rollout-", end: ".jsonl" },
        begin,
        row: turn_row,
        finish,
    }),
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

/// Renames a tool use to Claude Code's names.
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

/// The exit code of a command, from the row about its end. The row is written before the hook runs.
fn exit_code(line: &[u8], tool_use_id: &str) -> Option<i64> {
    // Most rows are about other calls, and can be long.
    memmem::find(line, tool_use_id.as_bytes())?;
    let row = Row::read(line)?;
    let item = &row.payload["item"];
    (item["id"] == tool_use_id).then(|| item["exit_code"].as_i64()).flatten()
}

/// Text that the client adds to the conversation as if the user had typed it.
const ADDED: &[&str] =
    &["<environment_context>", "<user_instructions>", "<hook_prompt", "# AGENTS.md"];

fn transcript_line(line: &[u8], _: StopScope) -> Option<Message> {
    let row = Row::read(line)?;
    let item = row.item().filter(|item| item["type"] == "message")?;
    let text = joined(items(&item["content"]));
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
        return TurnRow::parts(vec![TurnPart::Compacted(string(&row.payload["message"]))]);
    }
    if row.kind == "event_msg" {
        let parts = nested_call(&row.payload["item"]).unwrap_or_default();
        return if parts.is_empty() { TurnRow::Other } else { TurnRow::parts(parts) };
    }
    let Some(item) = row.item() else { return TurnRow::Other };
    let id = || string(&item["call_id"]);
    let part = match item["type"].as_str().unwrap_or_default() {
        "message" => match transcript_line(line, StopScope::Turn) {
            Some(Message { speaker: Speaker::User, text }) => {
                return TurnRow::prompt(text);
            }
            Some(Message { text, .. }) => TurnPart::AssistantText(text),
            None => return TurnRow::Other,
        },
        // A script. Its calls have separate rows.
        "custom_tool_call" if item["name"] == "exec" => return TurnRow::Other,
        "function_call" | "custom_tool_call" => {
            let (tool, input) = call(item);
            TurnPart::Called { tool_use_id: id(), tool, input }
        }
        "function_call_output" | "custom_tool_call_output" => match script_error(&item["output"]) {
            Some(error) => {
                let (tool, input) = ("exec".to_owned(), "{}".to_owned());
                let called = TurnPart::Called { tool_use_id: id(), tool, input };
                let failed = TurnPart::Failed { tool_use_id: id(), error };
                return TurnRow::parts(vec![called, failed]);
            }
            None => result(id(), &item["output"]),
        },
        _ => return TurnRow::Other,
    };
    TurnRow::parts(vec![part])
}

/// The result of a call, from the text for the model.
fn result(tool_use_id: String, output: &Value) -> TurnPart {
    match failure(output) {
        Some(error) => TurnPart::Failed { tool_use_id, error },
        None => TurnPart::Done { tool_use_id, output: output.to_string() },
    }
}

/// A call within a script: call and result in one row. Other calls have such a row in addition to
/// their own.
fn nested_call(item: &Value) -> Option<Vec<TurnPart>> {
    let id = item["id"].as_str().filter(|id| id.starts_with("exec-"))?;
    let text = |name: &str| item[name].as_str().unwrap_or_default();
    let done =
        |output: Value| TurnPart::Done { tool_use_id: id.to_owned(), output: output.to_string() };
    let (tool, input, result) = match item["type"].as_str()? {
        "CommandExecution" => {
            let command = item["command"].as_array()?.last()?;
            let code = item["exit_code"].as_i64().unwrap_or(0);
            let report = format!("{}{code}\nOutput:\n{}", EXITS[0], text("aggregated_output"));
            ("Bash".into(), json!({ "command": command }), result(id.to_owned(), &json!(report)))
        }
        "FileChange" => {
            let command = patch_of(item["changes"].as_object()?);
            ("apply_patch".into(), json!({ "command": command }), done(json!(text("stdout"))))
        }
        "McpToolCall" => {
            let tool = format!("mcp__{}__{}", text("server"), text("tool"));
            (tool, item["arguments"].clone(), done(item["result"].clone()))
        }
        _ => return None,
    };
    let mut used =
        ToolUse { tool: Cow::Owned(tool), input: input.to_string().into(), ..ToolUse::default() };
    tool_use(&mut used);
    let tool_use_id = id.to_owned();
    let (tool, input) = (used.tool.into_owned(), used.input.into_owned());
    Some(vec![TurnPart::Called { tool_use_id, tool, input }, result])
}

/// Formats file changes as a patch in the syntax of `apply_patch`.
fn patch_of(changes: &serde_json::Map<String, Value>) -> String {
    let mut patch = String::from("*** Begin Patch\n");
    for (path, change) in changes {
        let text = |name: &str| change[name].as_str().unwrap_or_default();
        match change["type"].as_str().unwrap_or_default() {
            "add" => {
                let _ = writeln!(patch, "*** Add File: {path}");
                text("content").lines().for_each(|line| {
                    let _ = writeln!(patch, "+{line}");
                });
            }
            "delete" => {
                let _ = writeln!(patch, "*** Delete File: {path}");
            }
            _ => {
                let _ = writeln!(patch, "*** Update File: {path}");
                if !text("move_path").is_empty() {
                    let _ = writeln!(patch, "*** Move to: {}", text("move_path"));
                }
                let _ = writeln!(patch, "{}", text("unified_diff").trim_end_matches('\n'));
            }
        }
    }
    patch + "*** End Patch\n"
}

/// A session's first row. A subagent has a separate file.
fn begin(row: &Value) -> Option<PastBegin> {
    let meta = Some(&row["payload"]).filter(|_| row["type"] == "session_meta")?;
    let id = string(&meta["id"]);
    let is_subagent = meta["parent_thread_id"].is_string();
    let session = Some(string(&meta["session_id"])).filter(|_| is_subagent);
    Some(PastBegin {
        session: session.filter(|of| !of.is_empty()).unwrap_or_else(|| id.clone()),
        cwd: string(&meta["cwd"]),
        branch: string(&meta["git"]["branch"]),
        agent_id: if is_subagent { id } else { String::new() },
    })
}

/// Text before the exit code in the report of a command, by tool.
const EXITS: [&str; 2] = ["Process exited with code ", "Exit code: "];

/// The exit code and the output in the report that the model gets about a command. Older versions
/// write the report as JSON. A running command has no code.
fn report(text: &str) -> Option<(i64, Cow<'_, str>)> {
    if text.starts_with('{') {
        let report: Value = serde_json::from_str(text).ok()?;
        let code = report["metadata"]["exit_code"].as_i64()?;
        return Some((code, string(&report["output"]).into()));
    }
    let (head, output) = text.split_once("\nOutput:\n")?;
    let code_in = |line: &str| {
        let code = EXITS.iter().find_map(|exit| line.strip_prefix(exit))?;
        code.trim().parse().ok()
    };
    Some((head.lines().find_map(code_in).unwrap_or(0), output.into()))
}

/// Replaces the report of a command by its output.
fn finish(used: &mut ToolUse<'_>) {
    if used.tool == "Bash"
        && !used.has_failed
        && let Some((_, output)) = report(&crate::payload::text(&used.output))
    {
        used.output = json!(output).to_string().into();
    }
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

/// The error of a call that failed or did not run. Results of those that ran have an `Output:` or
/// are JSON.
fn failure(output: &Value) -> Option<String> {
    let text = output.as_str()?;
    if let Some((exit_code, output)) = report(text) {
        return (exit_code != 0).then(|| normalize::command_error(exit_code, &output));
    }
    let has_run = text.trim_start().starts_with(['{', '['])
        || text.lines().any(|line| line == "Output:")
        || text.trim().is_empty();
    (!has_run).then(|| text.to_owned())
}

/// The error that ended a script. It may be a call that failed before it ran.
fn script_error(output: &Value) -> Option<String> {
    let (status, texts) = items(output).split_first()?;
    status["text"].as_str()?.strip_prefix("Script failed\n")?;
    let error =
        texts.iter().rev().find_map(|it| it["text"].as_str()?.strip_prefix(SCRIPT_ERROR))?;
    Some(error.to_owned())
}

const SCRIPT_ERROR: &str = "Script error:\n";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::{Extent, hidden_failures};

    fn item(payload: &Value) -> Value {
        json!({"type": "response_item", "payload": payload})
    }

    fn call(id: &str) -> Value {
        item(&json!({"type": "function_call", "name": "exec_command", "call_id": id,
            "arguments": json!({"cmd": id}).to_string()}))
    }

    fn output(id: &str, text: &str) -> Value {
        item(&json!({"type": "function_call_output", "call_id": id, "output": text}))
    }

    fn prompt(text: &str) -> Value {
        item(&json!({"type": "message", "role": "user", "content": [{"text": text}]}))
    }

    /// The row that newer versions write before the hook runs.
    fn ended(id: &str, code: i64) -> Value {
        let item = json!({"type": "CommandExecution", "id": id, "command": ["sh", id],
            "exit_code": code, "aggregated_output": "out\n"});
        json!({"type": "event_msg", "payload": {"type": "item_completed", "item": item}})
    }

    /// Ids and errors of the failures in rows.
    fn hidden(rows: &[Value], extent: Extent) -> Vec<(String, String)> {
        let file = tempfile::NamedTempFile::new().unwrap();
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        std::fs::write(file.path(), lines).unwrap();
        let was_reported = |line: &[u8], id: &str| exit_code(line, id).is_some();
        let found = hidden_failures(file.path(), extent, turn_row, was_reported);
        found.iter().map(|used| (used.tool_use_id.to_string(), used.error.to_string())).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(id, error)| ((*id).to_owned(), (*error).to_owned())).collect()
    }

    const PASSED: &str = "Chunk ID: 1\nProcess exited with code 0\nOutput:\nout\n";
    const FAILED: &str = "Chunk ID: 1\nProcess exited with code 3\nOutput:\nout\n";

    #[test]
    fn failures_at_the_end_of_a_turn_are_hidden_unless_their_hook_had_the_exit_code() {
        let error = "Exit code 3\nout";
        let none: &[(&str, &str)] = &[];
        for (rows, expected) in [
            (vec![prompt("x"), call("a"), output("a", FAILED)], &[("a", error)][..]),
            (
                vec![call("a"), output("a", FAILED), call("b"), output("b", "no such tool")],
                &[("a", error), ("b", "no such tool")],
            ),
            (
                vec![call("a"), call("b"), output("a", FAILED), output("b", PASSED), call("c")],
                &[("a", error)],
            ),
            (vec![call("a"), ended("a", 3), output("a", FAILED), call("b")], none),
            (vec![ended("exec-1", 3), ended("exec-2", 0)], none),
            (vec![call("a"), output("a", FAILED), prompt("next"), call("b")], none),
            (vec![prompt("<private>x</private>"), call("a"), output("a", FAILED)], none),
        ] {
            assert_eq!(hidden(&rows, Extent::End), pairs(expected), "{rows:?}");
            assert_eq!(hidden(&rows, Extent::Turn), pairs(expected), "{rows:?}");
        }
        // After four successful calls, their hooks have found the failure.
        let mut rows = vec![prompt("x"), call("a"), output("a", FAILED)];
        for id in ["b", "c", "d", "e"] {
            assert_eq!(hidden(&rows, Extent::End), pairs(&[("a", error)]), "{id}");
            rows.extend([call(id), output(id, PASSED)]);
        }
        assert_eq!(hidden(&rows, Extent::End), []);
        assert_eq!(hidden(&rows, Extent::Turn), pairs(&[("a", error)]));
        // A hook does not read back for megabytes.
        let mut rows = vec![prompt("x"), call("a"), output("a", FAILED)];
        rows.extend((0..40).map(|_| json!({"type": "event_msg", "text": "y".repeat(64 << 10)})));
        assert_eq!(hidden(&rows, Extent::End), []);
        assert_eq!(hidden(&rows, Extent::Turn), pairs(&[("a", error)]));
    }

    #[test]
    fn a_report_of_a_command_has_three_forms() {
        let json = json!({"output": "out\n", "metadata": {"exit_code": 2}}).to_string();
        for (text, expected) in [
            (PASSED, Some((0, "out\n"))),
            (FAILED, Some((3, "out\n"))),
            ("Exit code: 1\nWall time: 0 seconds\nOutput:\n", Some((1, ""))),
            ("Wall time: 1 seconds\nProcess running with session ID 7\nOutput:\n", Some((0, ""))),
            (json.as_str(), Some((2, "out\n"))),
            ("{\"content\":[]}", None),
            ("apply_patch verification failed: no such file", None),
        ] {
            let expected = expected.map(|(code, output): (i64, &str)| (code, output.into()));
            assert_eq!(report(text), expected, "{text}");
        }
    }

    #[test]
    fn a_script_that_ends_with_an_error_is_a_failed_call() {
        let script = |status: &str, error: &str| {
            let texts = [format!("{status}\nWall time 0.1 seconds\nOutput:\n"), error.to_owned()];
            let texts = texts.map(|text| json!({"type": "input_text", "text": text}));
            item(&json!({"type": "custom_tool_call_output", "call_id": "s", "output": texts}))
        };
        let error = "Script error:\napply_patch verification failed: no such file";
        assert_eq!(
            hidden(&[script("Script failed", error)], Extent::Turn),
            pairs(&[("s", "apply_patch verification failed: no such file")])
        );
        assert_eq!(hidden(&[script("Script completed", error)], Extent::Turn), []);
    }
}
