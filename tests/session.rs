//! A session of the real Claude Code with our hooks installed, against a model that follows a
//! script.

use std::collections::BTreeSet;

use claude_mem_tools::{
    client::Client,
    model::{Answer, Script, Server},
};
use serde_json::{Value, json};

use crate::sandbox::{ours, real_client};

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command, "description": "scripted"}))
}

fn events(client: &Client) -> Vec<Value> {
    let listed = ours(client, &["log", "--json", "--raw"]);
    listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_real_session_is_recorded_whole_by_the_hooks_as_installed() {
    let script = Script::new()
        .then(Answer::tools([bash("echo hi")]))
        .then(Answer::tools([bash("printf one"), bash("printf two"), bash("exit 3")]))
        .then(Answer::tools([("Read", json!({"file_path": "/etc/hostname"}))]))
        .then(Answer::text("All done."));
    let server = Server::start(script).unwrap();
    let client = real_client(&server.url());
    ours(&client, &["install"]);
    // Distilled events would be mixed with those of the hooks.
    let client = client.env("CLAUDE_MEM_WORKER_AUTOSTART", "false");

    let outcome = client.prompt("do some work").unwrap();

    assert!(outcome.status.success() && !outcome.timed_out, "{outcome:#?}");
    let events = events(&client);
    let session = outcome.result()["session_id"].clone();
    assert!(events.iter().all(|event| event["session"] == session), "{events:#?}");
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds[..2], ["SessionStarted", "PromptSubmitted"]);
    assert_eq!(kinds[kinds.len() - 2..], ["SummaryRequested", "SessionEnded"]);
    let used: BTreeSet<_> = events
        .iter()
        .filter_map(|event| {
            Some((event["tool_use_id"].as_str()?.to_owned(), event["has_failed"] == true))
        })
        .collect();
    let expected = [(0, 0, false), (1, 0, false), (1, 1, false), (1, 2, true), (2, 0, false)];
    let id = |answer: i32, tool: i32| format!("toolu_scripted_{answer:06}_{tool}");
    assert_eq!(used, expected.map(|(answer, tool, failed)| (id(answer, tool), failed)).into());
    let stop = &events[events.len() - 2]["event"];
    assert_eq!(
        (&stop["last_assistant_message"], &stop["scope"]),
        (&json!("All done."), &json!("Turn"))
    );
    let status: Value = serde_json::from_str(&ours(&client, &["status", "--json"])).unwrap();
    assert_eq!((&status["sessions"], &status["hooks"]["is_installed"]), (&json!(1), &json!(true)));
    assert_eq!(status["hooks"]["registered"][0]["missing"], json!([]));
    assert_answers_were_accepted(&outcome.messages());
}

/// The client reports the outcome of each hook at the start, and the context it took from the
/// response.
fn assert_answers_were_accepted(messages: &[Value]) {
    let answered: Vec<_> =
        messages.iter().filter(|message| message["subtype"] == "hook_response").collect();
    assert!(!answered.is_empty(), "{messages:#?}");
    for message in answered {
        assert_eq!(
            (&message["outcome"], &message["exit_code"]),
            (&json!("success"), &json!(0)),
            "{message:#}"
        );
        assert_eq!(message["stderr"], "", "{message:#}");
    }
}

#[test]
fn a_private_turn_of_a_real_session_leaves_only_that_it_was() {
    let script = Script::new()
        .then(Answer::tools([bash("echo walrus")]))
        .then(Answer::text("The walrus is safe."));
    let server = Server::start(script).unwrap();
    let client = real_client(&server.url());
    ours(&client, &["install"]);
    let client = client.env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
    let outcome = client.prompt("<private>hide the walrus</private>").unwrap();
    assert!(outcome.status.success(), "{outcome:#?}");
    let events = events(&client);
    let kinds: Vec<&str> = events.iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["SessionStarted", "PromptSubmitted", "SessionEnded"]);
    assert!(!format!("{events:?}").contains("walrus"));
}
