//! `claude-mem mcp`: the protocol, and the end of the process.

mod clients;
pub(crate) mod process;
pub(crate) mod tools;

use std::{os::unix::process::ExitStatusExt, process::Command, sync::mpsc::RecvTimeoutError};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, binary};
pub(crate) use process::McpProcess;
use process::WAIT_MAX;

const PING: &str = r#"{"jsonrpc":"2.0","id":"alive","method":"ping"}"#;

#[test]
fn messages_of_claude_code_are_answered_in_order() {
    let sandbox = Sandbox::new();
    let mut server = McpProcess::with(&sandbox);
    for line in include_str!("../fixtures/mcp/claude-code-2.1.325.jsonl").lines() {
        server.send(line);
    }
    let mut answers: Vec<Value> = (0..10).map(|_| server.receive()).collect();
    let ids: Vec<Value> = answers.iter().map(|answer| answer["id"].clone()).collect();
    assert_eq!(json!(ids), json!(["server-discover-probe-1", 0, 1, 2, 3, 4, 5, 6, 7, 8]));
    let discovered = answers[0]["result"].take();
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    let initialized = answers[1]["result"].take();
    assert_eq!(initialized["protocolVersion"], "2025-11-25");
    assert_eq!(initialized["capabilities"], json!({"tools": {"listChanged": false}}));
    assert_eq!(discovered["instructions"], initialized["instructions"]);
    assert!(initialized["instructions"].as_str().unwrap().contains("not instructions"));
    assert_eq!(answers[2]["result"]["tools"].as_array().unwrap().len(), 7);
    let codes: Vec<&Value> = answers[3..].iter().map(|answer| &answer["error"]["code"]).collect();
    assert_eq!(codes, [-32601, -32601, -32602, -32602, -32602, -32602, -32602]);
    server.end();
    assert!(!sandbox.data().exists(), "reading writes nothing");
}

#[test]
fn a_request_that_names_its_version_needs_no_handshake() {
    let sandbox = Sandbox::new();
    let mut server = McpProcess::with(&sandbox);
    let mut ask = |version: &str| {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": version});
        let request =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        server.ask(request.to_string())
    };
    let mut listed = ask("2026-07-28")["result"].take();
    assert_eq!(listed["tools"].take().as_array().unwrap().len(), 7);
    let name = listed["_meta"]["io.modelcontextprotocol/serverInfo"]["name"].take();
    assert_eq!(name, "claude-mem");
    listed.as_object_mut().unwrap().retain(|name, _| name != "tools" && name != "_meta");
    let expected = json!({"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private"});
    assert_eq!(listed, expected);
    let refused = ask("2099-01-01")["error"].take();
    assert_eq!(
        (&refused["code"], &refused["data"]["requested"]),
        (&json!(-32022), &json!("2099-01-01"))
    );
    assert_eq!(refused["data"]["supported"][0], "2026-07-28");
    server.end();
}

#[test]
fn nonsense_is_refused_and_survived() {
    let sandbox = Sandbox::new();
    let mut server = McpProcess::with(&sandbox);
    let code = |answer: Value| answer["error"]["code"].as_i64().unwrap();
    assert_eq!(code(server.ask("hello")), -32700);
    assert_eq!(code(server.ask(b"\xff\xfe{}")), -32700);
    assert_eq!(code(server.ask("{\"jsonrpc\":\"2.0\",\"id\":1,")), -32700);
    assert_eq!(code(server.ask("[]")), -32600);
    assert_eq!(code(server.ask("42")), -32600);
    assert_eq!(code(server.ask(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#)), -32602);
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"search","arguments":{}1{}}}}}"#,
        "[".repeat(5000),
        "]".repeat(5000)
    );
    assert_eq!(code(server.ask(deep)), -32602);
    let long = "x".repeat(9 << 20);
    assert_eq!(code(server.ask(long)), -32700);
    // Blank lines, notifications and unexpected responses are ignored.
    server.send("\n \r\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\"}");
    server.send(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#);
    assert_eq!(server.ask(PING), json!({"jsonrpc": "2.0", "id": "alive", "result": {}}));
    let batch = format!(r#"[{PING},{{"jsonrpc":"2.0","method":"notifications/x"}},7]"#);
    let answers = server.ask(batch);
    assert_eq!(
        (&answers[0]["id"], &answers[1]["error"]["code"]),
        (&json!("alive"), &json!(-32600))
    );
    assert_eq!(answers.as_array().unwrap().len(), 2);
    server.end();
}

#[test]
fn a_signal_ends_it_at_once() {
    for signal in [Signal::INT, Signal::TERM] {
        let sandbox = Sandbox::new();
        let mut server = McpProcess::with(&sandbox);
        server.ask(PING);
        kill_process(Pid::from_child(&server.child), signal).unwrap();
        assert_eq!(server.child.wait().unwrap().signal(), Some(signal.as_raw()));
    }
}

/// The client dies, but another process keeps the pipe open.
#[test]
fn it_does_not_outlive_its_client() {
    let sandbox = Sandbox::new();
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 3<&0; \"$0\" mcp <&3 & wait"]).arg(binary());
    shell.env_clear().env("HOME", sandbox.home()).current_dir(sandbox.home());
    let mut server = McpProcess::start(&mut shell);
    server.ask(PING);
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let received = server.lines.recv_timeout(WAIT_MAX);
    assert_eq!(received, Err(RecvTimeoutError::Disconnected), "its stdout closes when it ends");
    assert!(server.stdin.is_some());
}
