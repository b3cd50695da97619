//! The real Codex CLI against a scripted model: installed, worked with, and its memory given to Claude Code.

use std::fs;

use claude_mem_tools::{
    client::{Client, codex},
    model::{Answer, Block, Request, Server},
};
use serde_json::{Value, json};

use crate::sandbox::{ours, real_client};

/// One turn: read, edit, a command that fails, a patch that does not apply, a command that works, an answer.
fn turn(request: &Request) -> Answer {
    let items = request.body["input"].as_array().cloned().unwrap_or_default();
    let is_result =
        |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
    let run = |command: &str| ("exec_command".to_owned(), json!({"cmd": command}));
    let patch = |file: &str| {
        let text = format!(
            "*** Begin Patch\n*** Update File: {file}\n@@\n def total(a, b):\n-    return a - b\n\
             +    return a + b\n*** End Patch\n"
        );
        ("apply_patch".to_owned(), Value::String(text))
    };
    match items.iter().filter(is_result).count() {
        0 => {
            let (name, input) = run("cat total.py");
            Answer::blocks([Block::Text("I look first.".into()), Block::Tool { name, input }])
        }
        1 => Answer::tools([patch("total.py")]),
        2 => Answer::tools([run("echo one failed; exit 3")]),
        3 => Answer::tools([patch("gone.py")]),
        4 => Answer::tools([run("echo all passed")]),
        _ => Answer::text("The total is right now."),
    }
}

#[test]
fn a_session_of_codex_is_recorded_and_told_to_the_next_session_of_claude_code() {
    let server =
        Server::answering(|request: &Request| match request.path.ends_with("/responses") {
            true => turn(request),
            false => Answer::text("Done."),
        });
    let server = server.unwrap();
    let claude = real_client(&server.url());
    let codex = codex().unwrap_or_else(|error| panic!("Codex cannot be installed here: {error}"));
    let codex = Client::with_executable(codex, &server.url()).unwrap();
    let codex = codex.env("HOME", claude.home()).env("SCRIPTED_KEY", "none");
    let codex = codex.in_directory(claude.cwd());
    fs::write(claude.cwd().join("total.py"), "def total(a, b):\n    return a - b\n").unwrap();
    for dir in [".claude", ".codex"] {
        fs::create_dir_all(claude.home().join(dir)).unwrap();
    }
    let config = format!(
        "model = \"gpt-5.5\" # scripted\nmodel_provider = \"scripted\"\n\n[model_providers.scripted]\n\
         name = \"scripted\"\nbase_url = \"{}/v1\"\nenv_key = \"SCRIPTED_KEY\"\n\
         wire_api = \"responses\"\nrequest_max_retries = 0\nstream_max_retries = 0\n",
        server.url()
    );
    let file = claude.home().join(".codex/config.toml");
    fs::write(&file, &config).unwrap();
    let claude_mem = |arguments: &[&str]| ours(&claude, arguments);

    claude_mem(&["install", "--trust"]);
    for (name, value) in [("PROVIDER", "extract"), ("WORKER_AUTOSTART", "false")] {
        claude_mem(&["settings", "set", name, value]);
    }
    let note = "Totals are kept in cents";
    claude_mem(&["remember", "--type", "rule", note]);
    let outcome = codex
        .call([
            "exec",
            "--json",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "make the total right",
        ])
        .unwrap();
    assert!(outcome.status.success(), "{outcome:?}");

    let first = server.requests().into_iter().find(|it| it.path.ends_with("/responses")).unwrap();
    let first = first.body["input"].to_string();
    assert!(first.contains(note) && first.contains("mcp__claude_mem__search"), "{first}");
    let events = claude_mem(&["log", "--json", "--raw"]);
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&Value> = events.iter().filter(|it| it["platform"] == "codex").collect();
    let tools: Vec<(String, bool)> = events
        .iter()
        .filter(|event| event["kind"] == "ToolUsed")
        .map(|event| {
            let used = &event["event"];
            (used["tool"].as_str().unwrap().to_owned(), used["has_failed"] == true)
        })
        .collect();
    let expected =
        [("Bash", false), ("Edit", false), ("Bash", true), ("Bash", false), ("Edit", true)];
    assert_eq!(tools, expected.map(|(tool, has_failed)| (tool.to_owned(), has_failed)));
    for kind in ["SessionStarted", "PromptSubmitted", "SummaryRequested", "SessionEnded"] {
        assert_eq!(events.iter().filter(|event| event["kind"] == kind).count(), 1, "{kind}");
    }

    claude_mem(&["distill"]);
    let before = server.requests().len();
    let outcome = claude.prompt("what was done here?").unwrap();
    assert!(outcome.status.success(), "{outcome:?}");
    let text: String = server
        .requests()
        .split_off(before)
        .iter()
        .map(|request| request.body.to_string())
        .collect();
    assert!(text.contains("The total is right now (total.py)"), "{text}");

    claude_mem(&["uninstall"]);
    let left = fs::read_to_string(&file).unwrap();
    assert!(left.starts_with(&config) && !left.contains("claude-mem"), "{left}");
    assert!(!claude.home().join(".codex/hooks.json").exists());
}
