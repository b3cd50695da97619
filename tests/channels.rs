//! Every way into memory redacts: known secrets and private text are sent through each, and none of
//! them is on disk, in the raw log, or in an export afterwards.

use std::fs;

use claude_mem_tools::model::{Answer, Server};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    http::Site,
    import::upstream::left_behind,
    mcp::McpProcess,
    model::{self, Session, provider},
    sandbox::Sandbox,
    secrets::assert_nowhere,
    serving::{Lines, Serving, until},
};

/// Texts that must not be found. Concatenated here, so that no secret scanner reports this file.
fn secrets() -> Vec<String> {
    let part = "Zx9Qw7Lm3Np5Rt8Vk2Yb6Hc4Jd1Fg0Sa";
    vec![
        format!("AKIA{}", "Q7ZP3M5R8T2V6W4X"),
        format!("ghp_{part}Ab3d"),
        format!("sk-ant-api03-{part}{part}{part}-AA"),
        format!("pw-{part}"),
        format!("link-{part}"),
        format!("login-{part}"),
        format!("netrc-{part}"),
        format!("MIIEpAIBAAKCAQEA{part}{part}"),
        "walrus-under-the-piano".into(),
    ]
}

/// One text with all secrets, as people and programs write them.
fn planted() -> String {
    let [aws, github, anthropic, password, url, curl, netrc, key, private] =
        <[String; 9]>::try_from(secrets()).unwrap();
    let key_kind = "RSA PRIVATE KEY";
    format!(
        "<private>\n{private}\n</private>\n{aws} {github} {anthropic}\n\
         DB_PASSWORD={password}\npostgres://ada:{url}@db/x\n\
         Curl -u ada:{curl} https://x\nmachine db\n  login ada\n  password {netrc}\n\
         -----BEGIN {key_kind}-----\n{key}\n{key}\n-----END {key_kind}-----\nthe end"
    )
}

/// Looks for the secrets in every file, in every event, and in all output.
fn assert_clean(sandbox: &Sandbox) {
    let secrets = secrets();
    let texts: Vec<&str> = secrets.iter().map(String::as_str).collect();
    let raw = sandbox.run(&["log", "--json", "--raw"]).ok();
    let export = sandbox.run(&["export"]).ok();
    assert!(export.contains("[redacted:"), "nothing was planted: {export}");
    for text in &texts {
        assert!(!raw.contains(text), "{text} is in the raw log");
        assert!(!export.contains(text), "{text} is in the export");
    }
    assert_nowhere(sandbox, &texts);
}

/// Lines of a diff, as Claude Code sends them for an edit.
fn diff(sign: &str) -> Value {
    planted().lines().map(|line| format!("{sign}{line}")).collect::<Vec<_>>().into()
}

#[test]
fn hooks_store_no_secret_from_any_field() {
    let sandbox = Sandbox::new();
    let text = planted();
    let words = "user said: ".to_owned() + &text;
    let transcript = [
        json!({"type": "user", "message": {"content": words}}),
        json!({"type": "assistant", "message": {"content": [{"type": "text", "text": words}]}}),
    ];
    let transcript: String = transcript.iter().map(|line| format!("{line}\n")).collect();
    let transcript = sandbox.write("elsewhere/t.jsonl", &transcript);
    let blocks: Vec<Value> =
        text.lines().map(|line| json!({"type": "text", "text": line})).collect();
    let id = format!("s {text}");
    let mut session = HookSession::new(&sandbox, &id).in_folder(format!("/p/{text}"));
    session.common["permission_mode"] = json!(text);
    session.common["prompt_id"] = json!(text);
    session.common["unheard_of"] = json!({"of": [text]});
    session.hook("SessionStart", json!({"source": text, "model": text, "transcript_path": text}));
    session.hook("UserPromptSubmit", json!({"prompt": words}));
    let edit = json!({"file_path": text, "old_string": text, "new_string": text});
    let patch =
        json!([{"oldStart": 1, "lines": diff("+")}, {"lines": diff("-")}, {"lines": diff(" ")}]);
    let answers = [
        ("Bash", json!({"command": text}), json!({"stdout": text, "stderr": text})),
        ("Write", json!({"file_path": text, "content": text}), json!({"structuredPatch": patch})),
        ("Edit", edit, json!({"structuredPatch": patch, "originalFile": text})),
        ("mcp__x__y", json!([text, {"a": text}]), Value::Array(blocks)),
        (
            "Bash",
            json!({"argv": ["curl", "-u", format!("ada:{}", secrets()[5]), "x"]}),
            json!(text),
        ),
        ("Bash", json!([["Authorization", format!("Basic {}", secrets()[3])]]), json!(text)),
        ("Bash", json!(["psql", "--password", secrets()[3]]), json!(null)),
    ];
    for (tool, input, response) in answers {
        let fields = json!({"tool_name": tool, "tool_input": input, "tool_response": response,
            "tool_use_id": text, "agent_id": text, "agent_type": text});
        session.hook("PostToolUse", fields);
    }
    session.hook("PostToolUseFailure", json!({"tool_name": text, "error": text}));
    session.hook("Stop", json!({"last_assistant_message": text, "last_user_message": text}));
    session.hook("Stop", json!({"transcript_path": transcript}));
    session.hook("SubagentStop", json!({"agent_transcript_path": transcript, "agent_type": text}));
    session.hook("SessionEnd", json!({"reason": text}));
    session.hook(&text, json!({}));
    sandbox.hook("save", format!("{{\"session_id\":\"{}", text.replace('\n', "\\n")));
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    assert!(sandbox.events().len() >= 15);
    assert_clean(&sandbox);
}

#[test]
fn programs_store_no_secret_from_any_field_of_the_api() {
    let site = Site::new();
    let text = planted();
    let (session, cwd) = (format!("s {text}"), format!("/p/{text}"));
    let with = |mut body: Value| {
        let common = json!({"contentSessionId": session, "cwd": cwd, "platformSource": text});
        for (name, value) in common.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    let words = format!("say {text}");
    site.post("/api/sessions/init", &with(json!({"project": text, "prompt": words})));
    let named = json!({"contentSessionId": "other", "project": text, "platformSource": text, "prompt": words});
    site.post("/api/sessions/init", &named);
    let used = json!({"tool_name": "Bash", "tool_input": {"command": text}, "tool_response": diff("+"),
        "tool_use_id": text, "agentId": text, "agentType": text});
    site.post("/api/sessions/observations", &with(used));
    let output = json!({"last_assistant_message": text, "last_user_message": text});
    site.post("/api/sessions/summarize", &with(output));
    site.post(
        "/api/sessions/complete",
        &json!({"contentSessionId": session, "reason": text, "platformSource": text}),
    );
    let note = json!({"text": words, "title": words, "project": text, "concepts": [text], "files": [text]});
    site.post("/api/memory/save", &note);
    let broken = site.ask(
        "POST",
        "/api/sessions/observations",
        Some(&with(json!({"tool_name": {"a": text}}))),
    );
    assert_eq!(broken.status, 400);
    until(|| site.get("/api/stats")["database"]["summaries"] != 0);
    assert_clean(&site.sandbox);
}

#[test]
fn programs_store_no_secret_from_any_field_of_the_socket() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    let mut lines = Lines::open(&sandbox);
    let text = planted();
    let common = json!({"session_id": format!("s {text}"), "cwd": format!("/p/{text}"), "platform": text,
        "project": text, "prompt_id": text, "model": text, "source": text, "unheard_of": [text]});
    for (kind, fields) in [
        ("session", json!({})),
        ("prompt", json!({"prompt": format!("say {text}")})),
        (
            "observation",
            json!({"tool_name": "Bash", "tool_input": diff("+"), "tool_response": {"a": diff("-")},
            "tool_use_id": text, "agent_id": text, "agent_type": text, "error": text}),
        ),
        ("summarize", json!({"last_assistant_message": text, "last_user_message": text})),
        ("finalize", json!({"last_assistant_message": text, "reason": text})),
    ] {
        let mut message = common.clone();
        message["type"] = kind.into();
        for (name, value) in fields.as_object().unwrap() {
            message[name] = value.clone();
        }
        assert_eq!(lines.ask(&message)["status"], "recorded", "{kind}");
    }
    // The name of a project is the last part of its folder.
    for folder in ["", "/p/"] {
        let folder = format!("{folder}sftp://ada:{}@files.test", secrets()[4]);
        let message = json!({"type": "session", "session_id": folder, "cwd": folder});
        assert_eq!(lines.ask(&message)["status"], "recorded");
    }
    drop(serving);
    assert_clean(&sandbox);
}

#[test]
fn notes_store_no_secret() {
    let sandbox = Sandbox::new();
    let text = planted();
    let words = format!("remember {text}");
    sandbox.run(&["remember", &words, "--title", &words, "--concept", &text, "--file", &text]).ok();
    let mut server = McpProcess::with(&sandbox);
    let note = json!({"text": words, "title": words, "concepts": [text], "files": [text]});
    server.call_ok("remember", &note);
    server.end();
    sandbox.run(&["forget", "1", "--yes", "--reason", &text]);
    assert_clean(&sandbox);
}

#[test]
fn imported_transcripts_leave_no_secret() {
    let sandbox = Sandbox::new();
    let text = planted();
    let row = |kind: &str, number: u32, message: Value| {
        json!({"type": kind, "uuid": format!("u{number}"), "sessionId": format!("s {text}"),
            "timestamp": format!("2026-01-01T00:00:0{number}Z"), "cwd": format!("/p/{text}"), "version": text,
            "gitBranch": text, "promptId": text, "message": message, "toolUseResult": {"structuredPatch":
            [{"lines": diff("+")}], "stdout": text}})
    };
    let call = json!({"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": text}});
    let result = json!({"type": "tool_result", "tool_use_id": "t1", "content": text});
    let rows = [
        row("user", 1, json!({"role": "user", "content": format!("say {text}")})),
        row("assistant", 2, json!({"role": "assistant", "content": [call]})),
        row("user", 3, json!({"role": "user", "content": [result]})),
        row(
            "assistant",
            4,
            json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
        ),
    ];
    let transcript: String = rows.iter().map(|row| format!("{row}\n")).collect();
    sandbox.write(".claude/projects/-p/s.jsonl", &transcript);
    sandbox.run(&["import", "--from", "transcripts"]).ok();
    assert!(sandbox.events().len() >= 3);
    assert_clean(&sandbox);
}

#[test]
fn the_imported_memory_of_the_other_program_leaves_no_secret() {
    let sandbox = Sandbox::new();
    left_behind(&sandbox);
    let (from, to) = (sandbox.data().join("claude-mem.db"), sandbox.home().join("theirs.db"));
    fs::rename(from, &to).unwrap();
    let connection = Connection::open(&to).unwrap();
    let sql = "select m.name, c.name from sqlite_master m join pragma_table_info(m.name) c
        where m.type = 'table' and c.type like 'text' and m.name not like 'sqlite%'";
    let columns: Vec<(String, String)> = {
        let mut statement = connection.prepare(sql).unwrap();
        let columns = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        columns.map(Result::unwrap).collect()
    };
    for (table, column) in &columns {
        // Keys stay distinct, and so do the types of values.
        let value = match column.as_str() {
            name if name.ends_with("_at") || name == "status" || name == "message_type" => continue,
            name if name.ends_with("_id") => format!("{column} || ' ' || ?1"),
            _ => "?1".to_owned(),
        };
        let sql = format!("update {table} set {column} = {value} where {column} is not null");
        connection.execute(&sql, [planted()]).unwrap();
    }
    drop(connection);
    sandbox.run(&["import", "--from", "ts", to.to_str().unwrap()]).ok();
    assert!(sandbox.events().len() >= 8);
    assert_clean(&sandbox);
}

#[test]
fn an_imported_export_leaves_no_secret() {
    const HOLE: &str = "PLANTED";
    let source = Sandbox::new();
    let word = |fields: &[&str]| {
        let mut payload = json!({"session_id": format!("s{HOLE}"), "cwd": format!("/p/{HOLE}")});
        for field in fields {
            payload[*field] = HOLE.into();
        }
        payload.to_string()
    };
    source.hook("context", word(&["source", "model", "transcript_path", "x"]));
    source.hook("new", word(&["prompt", "prompt_id", "x"]));
    let tool = [
        "tool_name",
        "tool_input",
        "tool_response",
        "error",
        "tool_use_id",
        "agent_id",
        "agent_type",
        "x",
    ];
    source.hook("save", word(&tool));
    source.hook(
        "summary",
        word(&["last_assistant_message", "last_user_message", "agent_id", "prompt_id", "x"]),
    );
    source.hook("cleanup", word(&["reason", "x"]));
    source.hook("save", format!("{{\"session_id\":\"s{HOLE}\",\"x\":\"{HOLE} "));
    source.run(&["remember", HOLE, "--title", HOLE, "--concept", HOLE, "--file", HOLE]).ok();
    let server = Server::answering(|_| {
        Answer::text(format!(
            "<observation><type>feature</type><title>{HOLE}</title></observation>"
        ))
    })
    .unwrap();
    model::run(&source, &["distill"], &provider("openai", &server)).ok();
    source.run(&["forget", "1", "--yes", "--reason", HOLE]);
    let exported = source.run(&["export"]).ok();
    let escaped = json!(planted()).to_string();
    let planted = exported.replace(HOLE, &escaped[1..escaped.len() - 1]);
    let sandbox = Sandbox::new();
    let file = sandbox.write("export.jsonl", &planted);
    sandbox.run(&["import", "--from", "export", file.to_str().unwrap()]).ok();
    assert_eq!(sandbox.events().len(), exported.lines().count());
    assert_clean(&sandbox);
}

#[test]
fn responses_of_models_are_redacted() {
    let sandbox = Sandbox::new();
    for (name, text) in [
        (
            "openai",
            format!("<observation><type>feature</type><title>{}</title></observation>", planted()),
        ),
        ("anthropic", planted()),
    ] {
        let mut session = Session::start(&sandbox, name);
        session.prompt("do it");
        session.tool();
        session.stop("done");
        let server = Server::answering(move |_| Answer::text(text.clone())).unwrap();
        model::run(&sandbox, &["distill"], &provider(name, &server));
    }
    let kinds: Vec<Value> = sandbox.events().iter().map(|event| event["kind"].clone()).collect();
    assert!(
        kinds.contains(&json!("AgentReplied")) && kinds.contains(&json!("AgentFailed")),
        "{kinds:?}"
    );
    assert_clean(&sandbox);
}

#[test]
fn redacting_the_past_finds_what_was_stored_without_redaction() {
    let sandbox = Sandbox::new();
    let text = planted().split_once("</private>\n").unwrap().1.to_owned();
    let off = [("CLAUDE_MEM_REDACT_SECRETS", "false")];
    let payload = json!({"session_id": format!("s {text}"), "cwd": format!("/p/{text}"), "prompt": text,
        "tool_name": "Bash", "tool_input": {"command": text}, "tool_response": diff("+"), "tool_use_id": text});
    sandbox.hook_with("new", &off, payload.to_string());
    sandbox.hook_with("save", &off, payload.to_string());
    assert!(sandbox.run(&["export"]).ok().contains(&secrets()[0]), "there is something to find");
    sandbox.run(&["redact", "--yes"]).ok();
    assert_clean(&sandbox);
}

#[test]
fn personal_data_is_replaced_if_the_setting_is_on() {
    let sandbox = Sandbox::new();
    let address = "jo.doe@example.org";
    let payload = json!({"session_id": "s", "cwd": "/p", "prompt": format!("write to {address}"),
        "tool_name": "Bash", "tool_input": {"command": format!("mail {address}")},
        "tool_response": {"stdout": "card 4111 1111 1111 1111", "n": 4_111_111_111_111_111_u64}});
    let record = |set: &[(&str, &str)]| {
        sandbox.hook_with("new", set, payload.to_string());
        sandbox.hook_with("save", set, payload.to_string());
    };
    record(&[]);
    assert!(sandbox.run(&["export"]).ok().contains(address), "off by default");
    sandbox.run(&["settings", "set", "REDACT_PERSONAL", "true"]).ok();
    sandbox.run(&["redact", "--yes"]).ok();
    record(&[]);
    let export = sandbox.run(&["export"]).ok();
    assert!(!export.contains(address) && !export.contains("4111"), "{export}");
    assert_eq!(export.matches(r#""prompt":"write to [redacted:email]""#).count(), 2, "{export}");
    let output = r#""output":"{\"stdout\":\"card [redacted:card]\",\"n\":\"[redacted:card]\"}""#;
    assert_eq!(export.matches(output).count(), 2, "{export}");
}
