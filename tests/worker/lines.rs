//! JSON lines over `worker.sock`.

use std::{collections::HashSet, fs, io::Write, thread};

use serde_json::{Value, json};

use crate::{
    sandbox::Sandbox,
    serving::{Lines, Serving, until},
};

#[test]
fn programs_send_lines_and_an_invalid_line_is_harmless() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[]);
    let mut lines = Lines::open(&sandbox);
    let key = format!("sk-ant-api03-{}", "aB3".repeat(20));
    let result = json!({"type": "observation", "content_session_id": "s1", "cwd": sandbox.home(),
        "tool_name": "Bash", "tool_use_id": "t1", "tool_input": r#"{"command": "<private>x</private>ls"}"#,
        "tool_output": key});
    assert_eq!(lines.ask(&result)["status"], "recorded");
    for wrong in ["{\"type\": ", "[]", "{}", "{\"type\":\"observation\"}", "{\"type\":\"dance\"}"] {
        lines.say(&format!("{wrong}\n"));
        let answer = lines.answer().unwrap();
        assert_eq!(answer["status"], "error", "{wrong}");
        assert!(answer["error"].as_str().is_some_and(|error| !error.is_empty()), "{answer}");
    }
    lines.say(&format!("{{\"type\":\"{}\"}}\n", "x".repeat(9 << 20)));
    assert!(lines.answer().unwrap()["error"].as_str().unwrap().contains("bytes"));
    let skipped = json!({"type": "observation", "session_id": "s1", "tool_name": "Skill"});
    assert_eq!(lines.ask(&skipped), json!({"status": "skipped", "reason": "tool_excluded"}));
    // Several lines at once are answered in order; an empty line is ignored.
    let done = json!({"type": "finalize", "session_id": "s1", "last_assistant_message": "done", "reason": "over"});
    lines.say(&format!("{}\n\n{done}\n", json!({"type": "ping"})));
    assert_eq!(lines.answer().unwrap()["status"], "ok");
    assert_eq!(lines.answer().unwrap()["events"].as_array().unwrap().len(), 2);
    let events = sandbox.events();
    assert_eq!(events[0]["event"]["input"]["command"], "[redacted:private]ls", "{:#}", events[0]);
    assert!(!events[0].to_string().contains("aB3aB3"));
    let kinds: Vec<_> = events[..3].iter().map(|event| event["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["ToolUsed", "SummaryRequested", "SessionEnded"]);
    // It is distilled without a request.
    until(|| sandbox.events().iter().any(|event| event["kind"] == "AgentReplied"));
}

/// Sends this many observations over one connection, and returns the acknowledged tool uses.
fn send_lines(sandbox: &Sandbox, client: usize, count: usize) -> Vec<String> {
    let mut lines = Lines::open(sandbox);
    let output = "x".repeat(4096);
    let mut acknowledged = Vec::new();
    for number in 0..count {
        let id = format!("t{client}-{number}");
        let result = json!({"type": "observation", "session_id": format!("s{client}"), "tool_name": "Bash",
            "tool_use_id": id, "tool_input": {"command": "ls"}, "tool_response": output});
        if writeln!(lines.stream(), "{result}").is_err() {
            break;
        }
        match lines.answer() {
            Some(answer) => assert_eq!(answer["status"], "recorded", "{answer}"),
            None => break,
        }
        acknowledged.push(id);
    }
    acknowledged
}

fn recorded_tool_uses(sandbox: &Sandbox) -> Vec<String> {
    let events = sandbox.events();
    let ids = events.iter().filter_map(|event| event["event"]["tool_use_id"].as_str());
    ids.map(str::to_owned).collect()
}

#[test]
fn pipelined_lines_are_answered_in_order_and_share_a_flush() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[]);
    let mut lines = Lines::open(&sandbox);
    let before = lines.ask(&json!({"type": "health"}))["syncs"].as_u64().unwrap();
    let line = |id: &str| {
        json!({"type": "observation", "session_id": "s1", "tool_name": "Bash", "tool_use_id": id,
            "tool_input": {"command": "ls"}, "tool_response": "x".repeat(4096)})
    };
    let ids: Vec<String> = (0..200).map(|number| format!("t{number}")).collect();
    let response: String = ids.iter().map(|id| format!("{}\n", line(id))).collect();
    lines.say(&response);
    let recorded: Vec<Value> =
        ids.iter().map(|_| lines.answer().unwrap()["events"][0].clone()).collect();
    let syncs = lines.ask(&json!({"type": "health"}))["syncs"].as_u64().unwrap() - before;
    assert!(syncs < 100, "{syncs} syncs for {} lines", ids.len());
    let events = sandbox.events();
    let uses: Vec<&Value> = events.iter().filter(|event| event["kind"] == "ToolUsed").collect();
    let of = |field: fn(&Value) -> &Value| -> Vec<&Value> {
        uses.iter().map(|use_| field(use_)).collect()
    };
    assert_eq!(of(|event| &event["event"]["tool_use_id"]), ids.iter().collect::<Vec<_>>());
    assert_eq!(of(|event| &event["id"]), recorded.iter().collect::<Vec<_>>());
}

#[test]
fn acknowledged_events_survive_a_kill() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    let acknowledged: HashSet<String> = thread::scope(|scope| {
        let clients: Vec<_> = (0..8)
            .map(|client| {
                let sandbox = &sandbox;
                scope.spawn(move || send_lines(sandbox, client, 10_000))
            })
            .collect();
        until(|| {
            fs::metadata(sandbox.data().join("log/active.log")).is_ok_and(|log| log.len() > 1 << 20)
        });
        serving.kill();
        clients.into_iter().flat_map(|client| client.join().unwrap()).collect()
    });
    let recorded = recorded_tool_uses(&sandbox);
    let once: HashSet<String> = recorded.iter().cloned().collect();
    assert_eq!(recorded.len(), once.len(), "none is there twice");
    assert!(acknowledged.len() > 100 && acknowledged.is_subset(&once), "{}", acknowledged.len());
}

#[test]
fn connections_that_are_left_open_block_neither_commands_nor_programs() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[]);
    let ping = json!({"type": "ping"});
    let mut oldest = Lines::open(&sandbox);
    oldest.say("{\"type\":");
    let idle: Vec<_> = (0..100).map(|_| Lines::open(&sandbox)).collect();
    sandbox.run(&["worker", "status"]).ok();
    assert!(oldest.answer().is_none(), "half a line does not count");
    assert_eq!(Lines::open(&sandbox).ask(&ping)["status"], "ok");
    drop(idle);
}
