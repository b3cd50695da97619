//! The MCP tools.

use std::{fs, process::Command};

use serde_json::{Value, json};

use super::process::McpProcess;
use crate::sandbox::Sandbox;

/// A turn in the home directory, distilled by rules.
fn worked(sandbox: &Sandbox, prompt: &str, file: &str) {
    let cwd = sandbox.home();
    let file = cwd.join(file);
    let call = |name: &str, more: Value| {
        let mut input = json!({"session_id": "5e551011-0000", "cwd": cwd});
        input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        sandbox.hook(name, input.to_string());
    };
    call("new", json!({"hook_event_name": "UserPromptSubmit", "prompt": prompt}));
    call(
        "save",
        json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": prompt,
            "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
            "tool_response": {"filePath": file}}),
    );
    call(
        "summary",
        json!({"hook_event_name": "Stop", "last_assistant_message": format!("Done: {prompt}.")}),
    );
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
}

#[test]
fn memory_is_found_in_three_steps() {
    let sandbox = Sandbox::new();
    worked(&sandbox, "repair the torn walrus log", "src/walrus.rs");
    worked(&sandbox, "teach the otter to swim", "src/otter.rs");
    let mut server = McpProcess::with(&sandbox);
    let table = server.call_ok("search", &json!({"query": "walrus"}));
    let mut lines = table.lines();
    assert!(lines.next().unwrap().starts_with("home: "), "{table}");
    assert_eq!(lines.next(), Some("ID | time | type | title | tokens"), "{table}");
    assert!(lines.next().unwrap().starts_with("### 20"), "{table}");
    assert_eq!(lines.next(), Some("**src/walrus.rs**"), "{table}");
    let id = lines.next().unwrap().split(' ').next().unwrap().to_owned();
    assert!(table.contains("P1") && !table.contains("otter"), "{table}");

    let around =
        server.call_ok("timeline", &json!({"anchor": id, "depth_before": 1, "depth_after": 9}));
    assert!(around.contains("← anchor") && around.contains("P2 | "), "{around}");
    let lately = server.call_ok("timeline", &json!({}));
    assert!(lately.contains("P1 | ") && lately.contains("P2 | "), "{lately}");
    let best =
        server.call_ok("timeline", &json!({"query": "otter", "depth_before": 0, "depth_after": 0}));
    assert!(best.contains("otter") && best.contains("← anchor"), "{best}");

    let full = server.call_ok("get_observations", &json!({"ids": [1, "P2", "S99"]}));
    assert!(full.starts_with("# 1 ") && full.contains("src/walrus.rs"), "{full}");
    assert!(full.contains("from: extract"), "{full}");
    assert!(full.contains("# P2 prompt\n") && full.contains("the user's prompt"), "{full}");
    assert!(full.contains("There is no memory S99"), "{full}");

    let usage = |id: &str| {
        let shown = sandbox.run(&["show", id, "--json"]).ok();
        serde_json::from_str::<Value>(&shown).unwrap()["usage"].clone()
    };
    assert_eq!(usage("1"), json!({"sessions": 0, "fetches": 1}));
    assert_eq!(usage("P2"), Value::Null, "only observations are counted");
    let shown = sandbox.run(&["show", "1"]).ok();
    assert!(shown.ends_with("given to 0 sessions, fetched 1 time\n"), "{shown}");
    server.call_ok("get_observations", &json!({"ids": [1, 2]}));
    assert_eq!(usage("1")["fetches"], 2);
    server.call_ok("get_observations", &json!({"ids": ["P1"]}));
    let fetches = sandbox.events().iter().filter(|e| e["event"]["moment"] == "Fetch").count();
    assert_eq!(fetches, 2, "searching and reading prompts are no fetches of observations");

    let context = server.call_ok("session_start_context", &json!({"budget": 1000}));
    assert!(context.contains("walrus") && context.contains("otter"), "{context}");
    server.end();
}

#[test]
fn filters_narrow_and_pages_follow_each_other() {
    let sandbox = Sandbox::new();
    let at = |time: &str, arguments: &[&str]| {
        sandbox.run_with(arguments, &[("CLAUDE_MEM_NOW", time)], "").ok();
    };
    at("2026-03-01T10:00:00Z", &["remember", "the otter swims", "--type", "discovery"]);
    at("2026-03-02T10:00:00Z", &["remember", "the otter dives", "--file", "src/sea.rs"]);
    at("2026-03-03T10:00:00Z", &["remember", "the otter sleeps", "--concept", "rest"]);
    let mut server = McpProcess::with(&sandbox);
    let mut ids = |arguments: Value| -> String {
        let table = server.call_ok("search", &arguments);
        let rows = table.lines().filter(|line| line.contains(" | the otter "));
        rows.map(|row| row.split(' ').next().unwrap()).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(ids(json!({"query": "otter", "orderBy": "date_asc"})), "1 2 3");
    assert_eq!(ids(json!({"query": "otter", "orderBy": "date_desc", "limit": 2})), "3 2");
    assert_eq!(
        ids(json!({"query": "otter", "orderBy": "date_desc", "limit": 2, "offset": 2})),
        "1"
    );
    assert_eq!(ids(json!({"limit": 2})), "3 2");
    assert_eq!(ids(json!({"obs_type": "discovery"})), "1");
    assert_eq!(ids(json!({"type": ["discovery"], "query": "otter"})), "1");
    assert_eq!(
        ids(json!({"type": "observations", "query": "otter", "orderBy": "date_asc"})),
        "1 2 3"
    );
    assert_eq!(ids(json!({"type": "prompts", "query": "otter"})), "");
    assert_eq!(ids(json!({"files": "sea.rs"})), "2");
    assert_eq!(ids(json!({"concepts": ["rest"]})), "3");
    assert_eq!(ids(json!({"dateStart": "2026-03-02", "dateEnd": "2026-03-02"})), "2");
    assert_eq!(ids(json!({"dateEnd": 1_772_380_800})), "1");
    let paged = server.call_ok("search", &json!({"query": "otter", "limit": 2}));
    assert!(paged.starts_with("home: 3 matches; 1-2 shown, more: offset=2\n"), "{paged}");
    let nothing = server.call_ok("search", &json!({"query": "?!"}));
    assert!(nothing.contains("no letters or digits"), "{nothing}");
    let misspelled = server.call_ok("search", &json!({"query": "ottre"}));
    assert_eq!(misspelled, "No match in home or any other project: did you mean `otter`?");
    let (error, is_error) = server.call("search", &json!({"dateStart": "soon"}));
    assert!(is_error && error.contains("`dateStart` is not a time: `soon`"), "{error}");
    let (error, is_error) = server.call("timeline", &json!({"anchor": "soon"}));
    assert!(is_error && error.contains("neither an ID nor a time"), "{error}");
    let (error, is_error) = server.call("timeline", &json!({"anchor": 99}));
    assert!(is_error && error.contains("there is no memory `99`"), "{error}");
    server.end();
}

/// Runs our binary in this folder below the home directory.
fn remember_in(sandbox: &Sandbox, folder: &str, text: &str) {
    let dir = sandbox.home().join(folder);
    fs::create_dir_all(&dir).unwrap();
    let output = sandbox.command(&["remember", text]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

pub(crate) fn talk_in(sandbox: &Sandbox, folder: &str) -> McpProcess {
    let mut command: Command = sandbox.command(&["mcp"]);
    command.current_dir(sandbox.home().join(folder));
    McpProcess::start(&mut command)
}

#[test]
fn results_of_this_project_come_first_and_others_are_never_hidden() {
    let sandbox = Sandbox::new();
    remember_in(&sandbox, "sea", "the otter swims");
    remember_in(&sandbox, "zoo", "the otter sleeps");
    remember_in(&sandbox, "zoo", "the walrus eats");
    let mut server = talk_in(&sandbox, "sea");
    let here = server.call_ok("search", &json!({"query": "otter"}));
    assert!(here.contains("swims") && !here.contains("sleeps"), "{here}");
    assert!(here.ends_with("Other projects have 1 more: project=\"*\""), "{here}");
    let all = server.call_ok("search", &json!({"query": "otter", "project": "*"}));
    assert!(
        all.contains("| project | title | tokens") && all.contains("| sea | the otter swims"),
        "{all}"
    );
    assert!(all.contains("| zoo | the otter sleeps") && !all.contains("Other projects"), "{all}");
    let zoo = server.call_ok("search", &json!({"query": "otter", "project": "zoo"}));
    assert!(zoo.contains("sleeps") && !zoo.contains("swims"), "{zoo}");
    let elsewhere = server.call_ok("search", &json!({"query": "walrus"}));
    assert!(elsewhere.starts_with("No match in sea. other projects: 1 match\n"), "{elsewhere}");
    let nowhere = server.call_ok("search", &json!({"query": "narwhal"}));
    assert!(nowhere.starts_with("No match in sea or any other project: "), "{nowhere}");
    let unknown = server.call_ok("search", &json!({"query": "otter", "project": "moon"}));
    assert!(unknown.contains("no project is called `moon`"), "{unknown}");
    let context = server.call_ok("session_start_context", &json!({"project": "zoo"}));
    assert!(context.contains("walrus") && !context.contains("swims"), "{context}");
    server.end();
}

#[test]
fn each_call_sees_what_others_have_added() {
    let sandbox = Sandbox::new();
    let (mut one, mut two) = (McpProcess::with(&sandbox), McpProcess::with(&sandbox));
    assert!(one.call_ok("search", &json!({"query": "otter"})).starts_with("No match"));
    let kept = two.call_ok(
        "remember",
        &json!({"text": "the otter uses AKIAIOSFODNN7EXAMPLQ", "title": "otter", "type": "decision",
            "concepts": "keys, otters", "files": ["src/otter.rs"]}),
    );
    let expected = "Remembered as 1 in home. Private text or secrets were removed.";
    assert_eq!(kept, expected);
    sandbox.run(&["remember", "the otter dives"]).ok();
    let found = one.call_ok("search", &json!({"query": "otter"}));
    assert!(found.contains("1 | ") && found.contains("2 | "), "{found}");
    let full = one.call_ok("get_observations", &json!({"ids": [1]}));
    assert!(full.starts_with("# 1 decision: otter\n") && !full.contains("AKIA"), "{full}");
    assert!(full.contains("concepts: keys, otters\nfiles read: src/otter.rs\n"), "{full}");
    assert!(full.ends_with("from: written by Claude"), "{full}");
    assert_eq!(sandbox.events()[0]["event"]["via"], "mcp");
    let (error, is_error) = two.call("remember", &json!({"text": "x", "type": "decison"}));
    assert!(is_error && error.contains("did you mean `decision`?"), "{error}");
    one.end();
    two.end();
}

#[test]
fn forgetting_takes_two_steps_and_a_confirmation_word() {
    let sandbox = Sandbox::new();
    for text in ["the otter swims", "the otter dives"] {
        sandbox.run(&["remember", text]).ok();
    }
    let (mut server, mut other) = (McpProcess::with(&sandbox), McpProcess::with(&sandbox));
    let word = |text: &str| {
        assert!(text.contains("Nothing is forgotten yet"), "{text}");
        text.split("confirm=\"").nth(1).unwrap().split('"').next().unwrap().to_owned()
    };
    let shown = server.call_ok("forget", &json!({"ids": [1]}));
    assert!(shown.contains("1 | note | home | the otter swims"), "{shown}");
    let confirm = word(&shown);
    for (ids, confirm) in
        [(json!([2]), confirm.as_str()), (json!([1, 2]), &confirm), (json!([1]), "x")]
    {
        let refused = server.call_ok("forget", &json!({"ids": ids, "confirm": confirm}));
        assert!(refused.contains("does not match the current memories"), "{refused}");
    }
    // A confirmation is valid only for the process that issued it.
    assert_ne!(word(&other.call_ok("forget", &json!({"ids": [1]}))), confirm);
    let forgot =
        server.call_ok("forget", &json!({"ids": [1], "confirm": confirm, "reason": "wrong"}));
    assert!(forgot.starts_with("Forgot 1 memory. The user can undo it with"), "{forgot}");
    let left = other.call_ok("search", &json!({"query": "otter"}));
    assert!(left.starts_with("home: 1 match\n") && left.contains("dives"), "{left}");
    let (gone, is_error) = server.call("forget", &json!({"ids": [1], "confirm": confirm}));
    assert!(is_error && gone.contains("there is no memory 1"), "{gone}");
    let undo = forgot.split('`').nth(1).unwrap().split(' ').next_back().unwrap();
    sandbox.run(&["forget", "--undo", undo]).ok();
    let back = other.call_ok("search", &json!({"query": "otter"}));
    assert!(back.starts_with("home: 2 matches\n"), "{back}");
    server.end();
    other.end();
}
