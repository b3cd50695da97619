//! Imports of past sessions of other clients, in their own formats.

use std::fs;

use claude_mem_capture::clients::find;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::{added, import, rows};
use crate::sandbox::Sandbox;

/// A file below the home directory and its content, with `CWD` for the project: one turn with text,
/// a failing command, an edit, a call without a result, our own tool, an answer.
const PASTS: [(&str, &str, &str); 4] = [
    (
        "codex",
        ".codex/sessions/2026/03/01/rollout-2026-03-01T12-00-00-past-1.jsonl",
        include_str!("../fixtures/past/codex.jsonl"),
    ),
    (
        "copilot",
        ".copilot/session-state/past-1/events.jsonl",
        include_str!("../fixtures/past/copilot.jsonl"),
    ),
    (
        "gemini",
        ".gemini/tmp/shop/chats/session-2026-03-01T12-00-past.jsonl",
        include_str!("../fixtures/past/gemini.jsonl"),
    ),
    (
        "qwen",
        ".qwen/projects/-shop/chats/past-1.jsonl",
        include_str!("../fixtures/past/qwen.jsonl"),
    ),
];

pub(super) fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// Writes the database of OpenCode, with a subagent.
fn opencode(sandbox: &Sandbox, cwd: &str) {
    let path = sandbox.write(".local/share/opencode/opencode.db", "");
    let sql = include_str!("../fixtures/past/opencode.sql").replace("CWD", cwd);
    Connection::open(path).unwrap().execute_batch(&sql).unwrap();
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
    "SessionStarted import",
    "PromptSubmitted make the total right",
    "ToolUsed Bash run the tests Exit code 3\none failed",
    "ToolUsed Edit total.py \"a - b\">\"a + b\"",
    "SummaryRequested The total is right now. | I look at the total.",
];

#[test]
fn the_past_of_every_client_becomes_the_same_events_and_importing_twice_adds_nothing() {
    let opencode_only = [("opencode", "", "")];
    for (client, path, text) in PASTS.into_iter().chain(opencode_only) {
        let sandbox = Sandbox::new();
        let shop = sandbox.home().join("shop");
        fs::create_dir(&shop).unwrap();
        let cwd = shop.to_str().unwrap();
        match client {
            "opencode" => opencode(&sandbox, cwd),
            _ => drop(sandbox.write(path, &text.replace("CWD", cwd))),
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
        assert_eq!((added(&again), again["known"].as_u64()), (0, Some(5)), "{client}");
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
