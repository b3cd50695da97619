//! Imports of past sessions of other clients, in their own formats.

use std::{collections::BTreeMap, fs};

use claude_mem_capture::clients::find;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{added, import, rows};
use crate::sandbox::Sandbox;

/// One turn: text, a failing command, an edit, a call without a result, our own tool, an answer.
const PROMPT: &str = "make the total right";
const SAID: &str = "I look at the total.";
const ANSWER: &str = "The total is right now.";

fn time(second: u32) -> String {
    format!("2026-03-01T12:00:{second:02}.000Z")
}

pub(super) fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn codex(cwd: &str) -> (String, String) {
    let row = |second: u32, kind: &str, payload: Value| json!({"timestamp": time(second), "type": kind, "payload": payload});
    let item = |second: u32, payload: Value| row(second, "response_item", payload);
    let message = |second: u32, role: &str, text: &str| {
        item(
            second,
            json!({"type": "message", "role": role, "content": [{"type": "text", "text": text}]}),
        )
    };
    let output = |second: u32, id: &str, text: &str| {
        item(second, json!({"type": "function_call_output", "call_id": id, "output": text}))
    };
    let patch = "*** Begin Patch\n*** Update File: total.py\n@@\n-a - b\n+a + b\n*** End Patch\n";
    let rows = [
        row(0, "session_meta", json!({"id": "past-1", "cwd": cwd, "git": {"branch": "fix"}})),
        message(0, "developer", "be nice"),
        message(0, "user", "<environment_context>\n</environment_context>"),
        message(1, "user", PROMPT),
        row(1, "event_msg", json!({"type": "user_message", "message": PROMPT})),
        message(2, "assistant", SAID),
        item(
            3,
            json!({"type": "function_call", "name": "exec_command", "call_id": "c1",
            "arguments": "{\"cmd\":\"run the tests\"}"}),
        ),
        row(
            4,
            "event_msg",
            json!({"type": "item_completed", "item": {"type": "CommandExecution",
            "id": "c1", "command": ["bash", "-lc", "run the tests"], "exit_code": 3}}),
        ),
        output(
            4,
            "c1",
            "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 3\nOutput:\n\
             one failed\n",
        ),
        item(
            5,
            json!({"type": "custom_tool_call", "name": "apply_patch", "call_id": "c2", "input": patch}),
        ),
        item(
            6,
            json!({"type": "custom_tool_call_output", "call_id": "c2",
            "output": "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nM total.py\n"}),
        ),
        item(
            7,
            json!({"type": "function_call", "name": "mcp__claude_mem__search", "call_id": "c3",
            "arguments": "{}"}),
        ),
        output(8, "c3", "{\"content\":[]}"),
        item(
            9,
            json!({"type": "function_call", "name": "exec_command", "call_id": "c4",
            "arguments": "{\"cmd\":\"wait\"}"}),
        ),
        message(10, "assistant", ANSWER),
    ];
    (".codex/sessions/2026/03/01/rollout-2026-03-01T12-00-00-past-1.jsonl".into(), lines(&rows))
}

fn copilot(cwd: &str) -> (String, String) {
    let row = |second: u32, kind: &str, data: Value| json!({"type": kind, "timestamp": time(second), "data": data});
    let start = |second: u32, id: &str, tool: &str, arguments: Value| {
        row(
            second,
            "tool.execution_start",
            json!({"toolCallId": id, "toolName": tool, "arguments": arguments}),
        )
    };
    let done = |second: u32, id: &str, text: &str| {
        row(
            second,
            "tool.execution_complete",
            json!({"toolCallId": id, "success": true, "result": {"content": text}}),
        )
    };
    let mut task = row(4, "user.message", json!({"content": "a task"}));
    task["agentId"] = json!("sub");
    let rows = [
        row(
            0,
            "session.start",
            json!({"sessionId": "past-1", "context": {"cwd": cwd, "branch": "fix"}}),
        ),
        row(1, "user.message", json!({"content": PROMPT, "transformedContent": "<d>now</d>"})),
        row(2, "assistant.message", json!({"content": SAID, "toolRequests": [{}]})),
        start(3, "c1", "bash", json!({"command": "run the tests"})),
        done(4, "c1", "one failed\n<shellId: 0 completed with exit code 3>"),
        task,
        start(5, "c2", "edit", json!({"path": "total.py", "old_str": "a - b", "new_str": "a + b"})),
        done(6, "c2", "updated"),
        start(7, "c3", "claude-mem-search", json!({})),
        done(8, "c3", "nothing"),
        start(9, "c4", "bash", json!({"command": "wait"})),
        row(10, "assistant.message", json!({"content": ANSWER, "toolRequests": []})),
    ];
    (".copilot/session-state/past-1/events.jsonl".into(), lines(&rows))
}

fn gemini(_: &str) -> (String, String) {
    let message = |id: &str, second: u32, kind: &str, content: Value| json!({"id": id, "timestamp": time(second), "type": kind, "content": content});
    let call = |id: &str, name: &str, args: Value, response: Value| {
        json!({"id": id, "name": name, "args": args, "status": "success",
            "result": [{"functionResponse": {"id": id, "name": name, "response": response}}]})
    };
    let mut first = message("m2", 2, "gemini", json!(SAID));
    let unfinished = first.clone();
    first["toolCalls"] = json!([
        call("c1", "run_shell_command", json!({"command": "run the tests"}), json!({"output":
            "<untrusted_context>\nOutput: one failed\nExit Code: 3\n</untrusted_context>"})),
        call("c2", "replace", json!({"file_path": "total.py", "old_string": "a - b", "new_string": "a + b"}),
            json!({"output": "updated"})),
        call("c3", "mcp_claude-mem_search", json!({}), json!({"output": "nothing"})),
        {"id": "c4", "name": "run_shell_command", "args": {"command": "wait"}},
    ]);
    let result = json!([{"functionResponse": {"id": "c1", "response": {}}}]);
    let rows = [
        json!({"sessionId": "past-1", "projectHash": "0", "startTime": time(0), "kind": "main"}),
        json!({"$set": {"messages": [message("m0", 0, "user", json!([{"text": "old"}]))]}}),
        message("m0", 0, "user", json!([{"text": "<session_context>x</session_context>"}])),
        message(
            "m1",
            1,
            "user",
            json!([{"text": format!("<hook_context>memory</hook_context>\n\n{PROMPT}")}]),
        ),
        unfinished,
        first,
        message("m3", 4, "user", result),
        message("m4", 10, "gemini", json!(ANSWER)),
    ];
    (".gemini/tmp/shop/chats/session-2026-03-01T12-00-past.jsonl".into(), lines(&rows))
}

fn qwen(cwd: &str) -> (String, String) {
    let row = |second: u32, kind: &str, provenance: &str, parts: Value| {
        json!({"uuid": second.to_string(), "sessionId": "past-1", "timestamp": time(second), "type": kind,
            "provenance": provenance, "cwd": cwd, "gitBranch": "fix", "message": {"parts": parts}})
    };
    let call = |id: &str, name: &str, args: Value| json!({"functionCall": {"id": id, "name": name, "args": args}});
    let result = |second: u32, id: &str, response: Value| {
        let part = json!([{"functionResponse": {"id": id, "response": response}}]);
        row(second, "tool_result", "tool_result", part)
    };
    let rows = [
        row(1, "user", "real_user", json!([{"text": PROMPT}])),
        row(
            2,
            "assistant",
            "assistant_output",
            json!([{"text": SAID}, call("c1", "run_shell_command", json!({"command": "run the tests"}))]),
        ),
        result(
            4,
            "c1",
            json!({"error": "Command: run the tests\nOutput: one failed\nError: (none)\nExit \
                Code: 3"}),
        ),
        row(
            5,
            "assistant",
            "assistant_output",
            json!([call(
                "c2",
                "edit",
                json!({"file_path": "total.py", "old_string": "a - b", "new_string": "a + b"})
            )]),
        ),
        result(6, "c2", json!({"output": "updated"})),
        row(
            7,
            "assistant",
            "assistant_output",
            json!([
                call("c3", "mcp__claude-mem__search", json!({})),
                call("c4", "run_shell_command", json!({"command": "wait"}))
            ]),
        ),
        result(8, "c3", json!({"output": "nothing"})),
        row(10, "assistant", "assistant_output", json!([{"text": ANSWER}])),
    ];
    (".qwen/projects/-shop/chats/past-1.jsonl".into(), lines(&rows))
}

/// Writes the database of OpenCode, with a subagent.
fn opencode(sandbox: &Sandbox, cwd: &str) {
    let path = sandbox.write(".local/share/opencode/opencode.db", "");
    let database = Connection::open(path).unwrap();
    database
        .execute_batch(
            "create table session (id text primary key, parent_id text, directory text, time_created integer);
             create table message (id text primary key, session_id text, time_created integer, data text);
             create table part (id text primary key, message_id text, session_id text, time_created integer,
                 data text);",
        )
        .unwrap();
    let start = 1_772_366_400_000_i64;
    for (id, parent) in [("past-1", None), ("past-2", Some("past-1"))] {
        let sql = "insert into session values (?1, ?2, ?3, ?4)";
        database.execute(sql, (id, parent, cwd, start)).unwrap();
    }
    let message = |id: &str, session: &str, role: &str| {
        let sql = "insert into message values (?1, ?2, ?3, ?4)";
        let data = json!({"role": role}).to_string();
        database.execute(sql, (id, session, start, data)).unwrap();
    };
    message("m1", "past-1", "user");
    message("m2", "past-1", "assistant");
    message("m3", "past-2", "user");
    let part = |second: i64, message: &str, data: Value| {
        let sql = "insert into part values (?1, ?2, ?3, ?4, ?5)";
        let session = if message == "m3" { "past-2" } else { "past-1" };
        let values =
            (format!("p{second:02}"), message, session, start + second * 1000, data.to_string());
        database.execute(sql, values).unwrap();
    };
    let tool = |id: &str, tool: &str, state: Value| json!({"type": "tool", "tool": tool, "callID": id, "state": state});
    part(0, "m1", json!({"type": "text", "text": "memory", "synthetic": true}));
    part(1, "m1", json!({"type": "text", "text": PROMPT}));
    part(2, "m2", json!({"type": "text", "text": SAID}));
    part(
        4,
        "m2",
        tool(
            "c1",
            "bash",
            json!({"status": "completed", "input": {"command": "run the tests"},
        "output": "one failed\n", "metadata": {"exit": 3}}),
        ),
    );
    part(5, "m3", json!({"type": "text", "text": "a task"}));
    part(
        6,
        "m2",
        tool(
            "c2",
            "edit",
            json!({"status": "completed", "output": "updated", "metadata": {},
        "input": {"filePath": "total.py", "oldString": "a - b", "newString": "a + b"}}),
        ),
    );
    part(
        8,
        "m2",
        tool(
            "c3",
            "claude-mem_search",
            json!({"status": "completed", "input": {},
        "output": "nothing"}),
        ),
    );
    part(9, "m2", tool("c4", "bash", json!({"status": "running", "input": {"command": "wait"}})));
    part(10, "m2", json!({"type": "text", "text": ANSWER}));
}

/// One line per event.
pub(super) fn event_lines(sandbox: &Sandbox) -> Vec<String> {
    let line = |event: &Value| {
        let fields = &event["event"];
        let kind = event["kind"].as_str().unwrap();
        let text = |name: &str| fields[name].as_str().unwrap_or_default().to_owned();
        let rest = match kind {
            "ToolUsed" => {
                let input = match &fields["input"] {
                    Value::String(text) => serde_json::from_str(text).unwrap(),
                    other => other.clone(),
                };
                let subject = input["command"].as_str().or_else(|| input["file_path"].as_str());
                let edit = format!("{}>{}", input["old_string"], input["new_string"]);
                let edit = if input["old_string"].is_null() { String::new() } else { edit };
                format!("{} {} {edit}{}", text("tool"), subject.unwrap_or_default(), text("error"))
            }
            "PromptSubmitted" => text("prompt"),
            "SummaryRequested" => {
                let remark = fields["remarks"][0]["text"].as_str().unwrap_or_default();
                format!("{} | {remark}", text("last_assistant_message"))
            }
            _ => text("source"),
        };
        format!("{kind} {rest}")
    };
    sandbox.events().iter().map(line).collect()
}

const EVENTS: [&str; 5] = [
    "SessionStarted startup",
    "PromptSubmitted make the total right",
    "ToolUsed Bash run the tests Exit code 3\none failed",
    "ToolUsed Edit total.py \"a - b\">\"a + b\"",
    "SummaryRequested The total is right now. | I look at the total.",
];

#[test]
fn the_past_of_every_client_becomes_the_same_events_and_importing_twice_adds_nothing() {
    type Past = fn(&str) -> (String, String);
    let pasts: BTreeMap<&str, Option<Past>> = [
        ("codex", Some(codex as Past)),
        ("copilot", Some(copilot)),
        ("gemini", Some(gemini)),
        ("qwen", Some(qwen)),
        ("opencode", None),
    ]
    .into();
    for (client, past) in pasts {
        let sandbox = Sandbox::new();
        let shop = sandbox.home().join("shop");
        fs::create_dir(&shop).unwrap();
        let cwd = shop.to_str().unwrap();
        match past {
            Some(past) => {
                let (path, text) = past(cwd);
                sandbox.write(&path, &text);
            }
            None => opencode(&sandbox, cwd),
        }
        sandbox.write(".gemini/tmp/shop/.project_root", cwd);
        let output = sandbox.run(&["install", "--client", client]).ok();
        let title = find(client).unwrap().title;
        let offer = format!(
            "1 session of {title}; see what an import adds with `claude-mem import --from {client} "
        );
        assert!(output.contains(&offer), "{output}");
        let found = import(&sandbox, &["--from", client]);
        assert_eq!(event_lines(&sandbox), EVENTS, "{client}");
        let left_out = json!({"of claude-mem itself": 1, "without a result": 1});
        assert_eq!(found["tool_uses_left_out"], left_out, "{client}");
        let events = sandbox.events();
        assert!(events.iter().all(|event| event["platform"] == client), "{client}");
        assert!(events.iter().all(|event| event["session"] == "past-1"), "{client}");
        let again = import(&sandbox, &["--from", client]);
        assert_eq!((added(&again), again["known"].as_u64()), (0, Some(4)), "{client}");
        let projects = rows(&sandbox, "select count(*) from projects where label = 'shop'");
        assert_eq!(projects, "1\n", "{client}");
    }
}

/// Lines of `history.jsonl`: of a deleted session, of one with a transcript, of an older client,
/// and a command.
#[test]
fn prompts_of_deleted_sessions_are_imported_from_the_history_once() {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("shop");
    fs::create_dir(&shop).unwrap();
    let line = |text: &str, second: u64, session: &str| {
        let mut line = json!({"display": text, "pastedContents": {}, "project": shop,
            "timestamp": 1_772_366_400_000_u64 + second * 1000});
        if !session.is_empty() {
            line["sessionId"] = json!(session);
        }
        line
    };
    let history = [
        line("why is the walrus slow", 1, "deleted"),
        line("there is a transcript", 2, "kept"),
        line("/model opus", 3, "deleted"),
        line("the otter of an older client", 4, ""),
        line("recorded by a hook", 5, "hooked"),
    ];
    sandbox.write(".claude/history.jsonl", &(lines(&history) + "no json\n"));
    sandbox.write(".claude/projects/-shop/kept.jsonl", "");
    let prompt = json!({"session_id": "hooked", "hook_event_name": "UserPromptSubmit", "cwd": shop,
        "prompt": "recorded by a hook"});
    let now = [("CLAUDE_MEM_NOW", "2026-03-01T12:00:06Z")];
    sandbox.hook_with("new", &now, prompt.to_string());
    let found = import(&sandbox, &["--from", "history"]);
    assert_eq!((added(&found), found["known"].as_u64()), (2, Some(1)), "{found}");
    let left_out = json!({"commands": 1, "prompts in transcripts": 1});
    assert_eq!(found["left_out"], left_out);
    assert_eq!(found["refused"], json!({"lines that are not prompts": 1}));
    let again = import(&sandbox, &["--from", "history"]);
    assert_eq!((added(&again), again["known"].as_u64()), (0, Some(3)), "{again}");
    let hits = sandbox.run(&["search", "walrus", "--json"]).ok();
    assert!(hits.contains("\"session\":\"deleted\""), "{hits}");
    let project = rows(&sandbox, "select distinct label from projects");
    assert_eq!(project, "shop\n");
}

#[test]
fn notes_of_claude_code_are_imported_marked_renewed_and_not_given_back_to_it() {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("shop");
    fs::create_dir(&shop).unwrap();
    let cwd = shop.to_str().unwrap();
    let folder = cwd.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let history = json!({"display": "x", "project": shop, "timestamp": 1});
    sandbox.write(".claude/history.jsonl", &lines(&[history]));
    let place = format!(".claude/projects/{folder}/memory");
    let index = |more: &str| {
        let pointer = "# Memory\n- [Port](port.md): where the walrus listens\n";
        sandbox.write(&format!("{place}/MEMORY.md"), &format!("{pointer}{more}"));
    };
    index("");
    let note = |port: u32| {
        let text = format!(
            "---\nname: port\ndescription: \"Where the walrus listens\"\nmetadata:\n  \
             type: project\n---\nThe walrus listens on port {port}.\n"
        );
        sandbox.write(&format!("{place}/port.md"), &text);
    };
    note(8080);
    sandbox.write(".claude/projects/-gone/memory/MEMORY.md", "of an unknown folder\n");
    sandbox.write(&format!("{place}/dump.md"), &"x".repeat(300 << 10));
    let found = import(&sandbox, &["--from", "auto-memory"]);
    assert_eq!(added(&found), 1, "an index alone is no note: {found}");
    index("- The otter eats at noon.\n- [Gone](gone.md): a note that is not there\n");
    let found = import(&sandbox, &["--from", "auto-memory"]);
    assert_eq!(added(&found), 1, "{found}");
    let notes = sandbox.run(&["search", "otter"]).ok();
    assert!(notes.contains("gone.md") && !notes.contains("port.md"), "{notes}");
    let left_out = json!({"notes of a folder that is unknown": 1, "notes that are too long": 1});
    assert_eq!(found["left_out"], left_out);
    assert_eq!(added(&import(&sandbox, &["--from", "auto-memory"])), 0);
    note(9090);
    let found = import(&sandbox, &["--from", "auto-memory"]);
    assert_eq!(found["added"], json!({"MemoryAdded": 1, "MemoryRevised": 1}));
    assert_eq!(added(&import(&sandbox, &["--from", "auto-memory"])), 0);

    let shown = sandbox.run(&["search", "walrus", "listens", "--json"]).ok();
    let hit = shown.lines().find(|line| line.contains("9090")).unwrap();
    let hit: Value = serde_json::from_str(hit).unwrap();
    assert_eq!(hit["title"], "Where the walrus listens");
    let shown = sandbox.run(&["show", hit["id"].as_str().unwrap()]).ok();
    assert!(shown.contains("\nauto-memory\n"), "{shown}");
    let start = |client: &str| {
        let payload = json!({"session_id": "new", "hook_event_name": "SessionStart", "cwd": cwd,
            "source": "startup"});
        sandbox.run_with(&["hook", "--client", client], &[], payload.to_string()).ok()
    };
    let (claude, codex) = (start("claude-code"), start("codex"));
    assert!(!claude.contains("walrus"), "{claude}");
    assert!(codex.contains("9090") && !codex.contains("8080"), "{codex}");
}

#[test]
fn a_session_of_opencode_with_an_impossible_time_or_parent_does_no_harm() {
    let sandbox = Sandbox::new();
    let cwd = sandbox.home().to_string_lossy().into_owned();
    opencode(&sandbox, &cwd);
    let path = sandbox.home().join(".local/share/opencode/opencode.db");
    let database = Connection::open(path).unwrap();
    for (id, parent) in [("x", "y"), ("y", "x"), ("z", "z")] {
        let sql = "insert into session values (?1, ?2, ?3, ?4)";
        database.execute(sql, (id, parent, &cwd, i64::MAX)).unwrap();
    }
    import(&sandbox, &["--from", "opencode"]);
    assert_eq!(event_lines(&sandbox), EVENTS);
}
