//! Third-party MCP clients: Claude Code, and the official SDK for JavaScript.

use std::{fs, os::unix::fs::symlink, process::Command};

use claude_mem_tools::{
    client::{Client, mcp_sdk},
    model::{Answer, Request, Script, Server},
};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, binary, ours, real_client};

/// The real client, without distilling: only its requests are tested here.
fn quiet_client(server: &Server) -> Client {
    real_client(&server.url()).env("CLAUDE_MEM_WORKER_AUTOSTART", "false")
}

/// The kinds of the recorded events.
fn kinds(client: &Client) -> Vec<Value> {
    let listed = ours(client, &["log", "--json"]);
    let kind = |line| serde_json::from_str::<Value>(line).unwrap()["kind"].clone();
    listed.lines().map(kind).collect()
}

/// A model that calls each tool once, and forgets the first memory.
fn next_call(request: &Request) -> Answer {
    let call =
        |tool: &str, input: Value| Answer::tools([(format!("mcp__claude-mem__{tool}"), input)]);
    let Some((_, last)) = request.tool_results().pop() else {
        return call("remember", json!({"text": "the walrus prefers tabs"}));
    };
    if last.starts_with("Remembered as 1") {
        return call("search", json!({"query": "walrus"}));
    }
    if last.contains("← anchor") {
        return call("get_observations", json!({"ids": [1]}));
    }
    if last.contains("ID | time | type | title") {
        return call("timeline", json!({"anchor": 1}));
    }
    if last.starts_with("# 1 note") {
        return call("session_start_context", json!({}));
    }
    if let Some(confirm) = last.split("confirm=\"").nth(1) {
        let confirm = confirm.split('"').next().unwrap();
        return call("forget", json!({"ids": [1], "confirm": confirm}));
    }
    if last.starts_with("Forgot 1 memory") {
        return Answer::text("It never was.");
    }
    if last.contains("walrus") {
        return call("forget", json!({"ids": [1]}));
    }
    Answer::text(format!("LOST: {last}"))
}

#[test]
fn a_real_session_uses_every_tool_and_records_none_of_their_results() {
    let server = Server::answering(next_call).unwrap();
    let mut client = quiet_client(&server);
    let tools =
        ["search", "timeline", "get_observations", "remember", "forget", "session_start_context"];
    for tool in tools {
        client = client.allow(&format!("mcp__claude-mem__{tool}"));
    }
    ours(&client, &["install"]);

    let outcome = client.prompt("what do you know about the walrus?").unwrap();

    assert!(outcome.status.success() && !outcome.timed_out, "{outcome:#?}");
    assert_eq!(outcome.result()["result"], "It never was.", "{outcome:#?}");
    let messages = outcome.messages();
    let servers = messages.iter().find_map(|message| message.get("mcp_servers")).unwrap();
    assert_eq!(
        (&servers[0]["name"], &servers[0]["status"]),
        (&json!("claude-mem"), &json!("connected"))
    );
    let asked = server.requests();
    let first = asked.iter().find(|request| !request.tool_names().is_empty()).unwrap();
    for tool in tools {
        let name = format!("mcp__claude-mem__{tool}");
        assert!(first.tool_names().contains(&name.as_str()), "{:?}", first.tool_names());
    }
    assert!(first.all_text().contains("Memory of earlier Claude Code sessions on this machine"));
    let kinds = kinds(&client);
    let expected = [
        "SessionStarted",
        "PromptSubmitted",
        "MemoryAdded",
        "MemoryInjected",
        "Forgotten",
        "SummaryRequested",
    ];
    assert_eq!(kinds[..6], expected);
    assert!(!kinds.contains(&json!("ToolUsed")), "{kinds:?}");
}

#[test]
fn as_a_plugin_it_has_the_tools_under_other_names() {
    let remember = json!({"text": "the walrus prefers tabs"});
    let script = Script::new()
        .then(Answer::tools([("mcp__plugin_mem_claude-mem__remember", remember)]))
        .then(Answer::text("Kept."));
    let server = Server::start(script).unwrap();
    let client = quiet_client(&server);
    let market = client.home().join("market");
    ours(&client, &["plugin", market.to_str().unwrap()]);
    let client = client.plugin(market.join("plugin")).allow("mcp__plugin_mem_claude-mem__remember");

    let outcome = client.prompt("keep it").unwrap();

    assert_eq!(outcome.result()["result"], "Kept.", "{outcome:#?}");
    let kinds = kinds(&client);
    assert!(kinds.contains(&json!("MemoryAdded")), "{kinds:?}");
    assert!(!kinds.contains(&json!("ToolUsed")), "{kinds:?}");
}

#[test]
fn the_slash_command_and_the_skill_reach_the_model() {
    let server = Server::start(Script::new().otherwise(Answer::text("Nothing yet."))).unwrap();
    let client = quiet_client(&server);
    ours(&client, &["install"]);
    let outcome = client.prompt("/mem the torn walrus").unwrap();
    assert_eq!(outcome.result()["result"], "Nothing yet.", "{outcome:#?}");
    let asked = server.requests();
    let is_sent = |text: &str| asked.iter().any(|request| request.all_text().contains(text));
    assert!(is_sent("The user asks memory: the torn walrus"), "{asked:#?}");
    assert!(is_sent("Search memory of earlier Claude Code sessions"), "{asked:#?}");
}

#[test]
fn the_official_client_of_another_language_agrees() {
    let modules = mcp_sdk().unwrap_or_else(|error| panic!("{error}"));
    let sandbox = Sandbox::new();
    let dir = sandbox.home().join("client");
    fs::create_dir(&dir).unwrap();
    symlink(modules, dir.join("node_modules")).unwrap();
    fs::write(dir.join("client.mjs"), include_str!("../fixtures/mcp/sdk_client.mjs")).unwrap();
    let mut node = Command::new("node");
    node.arg(dir.join("client.mjs")).arg(binary()).arg("mcp").env("HOME", sandbox.home());
    let output = node.env_remove("CLAUDE_MEM_DATA_DIR").current_dir(&dir).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["complaints"], json!([]), "{report:#}");
    assert_eq!(report["version"]["name"], "claude-mem");
    assert!(report["instructions"].as_str().unwrap().contains("Three steps"));
    assert_eq!(report["tools"].as_array().unwrap().len(), 7);
    let text = |tool: &str| {
        assert_eq!(report[tool]["isError"], tool == "wrong", "{report:#}");
        report[tool]["text"].as_str().unwrap()
    };
    assert_eq!(text("remember"), "Remembered as 1 in client.");
    assert!(text("search").starts_with("client: 1 match\n"), "{report:#}");
    assert!(text("timeline").contains("← anchor"), "{report:#}");
    assert!(text("get_observations").contains("# 1 decision"), "{report:#}");
    assert!(text("context").contains("the walrus prefers tabs"), "{report:#}");
    assert!(text("wrong").contains("did you mean `query`?"), "{report:#}");
    assert!(text("forgotten").starts_with("Forgot 1 memory."), "{report:#}");
    assert_eq!(report["unknown"], -32602);
}
