//! `claude-mem compact`, `forget` for good, and `redact`.

use std::{fs, process::Stdio, time::Duration};

use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    model::dump,
    sandbox::{Run, Sandbox},
    secrets::assert_nowhere,
    vectors::{SEMANTIC, assert_no_vector_of},
};

/// The text that is forgotten.
const SECRET: &str = "xyzzy-plugh";
/// The rules distill, without a model.
const EXTRACT: [(&str, &str); 1] = [("CLAUDE_MEM_PROVIDER", "extract")];

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run_with(arguments, &EXTRACT, "")
}

fn json_of(printed: &str) -> Value {
    serde_json::from_str(printed).unwrap()
}

/// One turn: a prompt, a written file, a command with long output, a stop.
fn turn(sandbox: &Sandbox, id: &str, number: u32, word: &str) {
    let session = HookSession::new(sandbox, id);
    session.prompt(&format!("make {word} number {number} work"));
    let tool = |tool: &str, input: Value, output: String| {
        session.tool(&format!("{id}-{number}-{tool}"), tool, &input, &json!({"stdout": output}));
    };
    let file = sandbox.home().join(format!("src/{word}.rs"));
    tool("Write", json!({"file_path": file, "content": format!("// {word}")}), "ok".into());
    let lines = format!("test {word} ... ok in line {number}\n").repeat(400);
    tool("Bash", json!({"command": format!("cargo test {word}")}), lines);
    session.stop(&format!("Made {word} number {number} work; all tests pass."));
}

/// Two sessions with memories, one of them about the secret, and one memory written by hand.
fn remembered() -> Sandbox {
    let sandbox = Sandbox::new();
    turn(&sandbox, "plain", 1, "walrus");
    turn(&sandbox, "odd", 1, SECRET);
    turn(&sandbox, "plain", 2, "otter");
    run(&sandbox, &["distill"]).ok();
    run(&sandbox, &["remember", "the", SECRET, "is", "mine"]).ok();
    sandbox.run_with(&["index"], &[SEMANTIC], "").ok();
    let found = run(&sandbox, &["search", SECRET]).ok();
    assert!(found.contains(SECRET), "{found}");
    sandbox
}

/// Puts the text into leftovers of a crash.
fn plant(sandbox: &Sandbox) {
    let data = sandbox.data();
    fs::create_dir_all(data.join("logs")).unwrap();
    fs::create_dir_all(data.join("log/quarantine")).unwrap();
    for place in [
        "logs/claude-mem.log",
        "logs/worker.log.1",
        "log/quarantine/spill-01",
        "log/quarantine/0000000000000001-64",
        "memory.db.broken-17",
        "memory.db.broken-17-wal",
        "memory.db.new",
    ] {
        fs::write(data.join(place), format!("something about {SECRET}")).unwrap();
    }
}

#[test]
fn erased_events_are_in_no_file() {
    let sandbox = remembered();
    plant(&sandbox);
    let run =
        run(&sandbox, &["forget", "--text", &SECRET.to_uppercase(), "--now", "--yes", "--json"]);
    let result = json_of(&run.ok());
    assert!(
        result["forgotten"].as_u64() >= Some(3) && result["events"].as_u64() >= Some(4),
        "{result}"
    );
    assert_nowhere(&sandbox, &[SECRET]);
    let note = format!("the {SECRET} is mine");
    assert_no_vector_of(&sandbox.data(), &[&note]);
    // The rest is unchanged, also after a rebuild from the log.
    let found = sandbox.run(&["search", "walrus"]).ok();
    assert!(found.contains("walrus"), "{found}");
    let before = dump(&sandbox.data());
    sandbox.delete_database();
    sandbox.run_with(&["replay", "--offline"], &EXTRACT, "").ok();
    assert_eq!(dump(&sandbox.data()), before);
    assert_nowhere(&sandbox, &[SECRET]);
}

#[test]
fn a_forgetting_can_be_undone_until_the_log_is_compacted() {
    let sandbox = remembered();
    let before = run(&sandbox, &["search", SECRET]).ok();
    let forget = || {
        let result = run(&sandbox, &["forget", "--session", "odd", "--yes", "--json"]).ok();
        json_of(&result)["undo"].as_str().unwrap().to_owned()
    };
    let id = forget();
    let shown = run(&sandbox, &["search", SECRET]).ok();
    assert!(!shown.contains("number 1 work"), "{shown}");
    run(&sandbox, &["forget", "--undo", &id]).ok();
    assert_eq!(run(&sandbox, &["search", SECRET]).ok(), before);
    let id = forget();
    run(&sandbox, &["compact"]).ok();
    let error = run(&sandbox, &["forget", "--undo", &id]).fails(1);
    assert!(error.contains("deleted it permanently"), "{error}");
}

#[test]
fn compaction_keeps_every_row_and_reports_the_saved_space() {
    let sandbox = remembered();
    run(&sandbox, &["forget", "--file", &format!("src/{SECRET}.rs"), "--yes"]).ok();
    let planned = json_of(&run(&sandbox, &["compact", "--dry-run", "--json"]).ok());
    let before = dump(&sandbox.data());
    assert!(planned["erased_events"].as_u64() > Some(0) && planned["dry_run"] == true, "{planned}");
    let done = json_of(&run(&sandbox, &["compact", "--json"]).ok());
    assert_eq!(done["left_segments"], json!([]));
    assert!(done["erased_events"].as_u64() > Some(0), "{done}");
    assert!(done["log"]["bytes_after"].as_u64() < done["log"]["bytes_before"].as_u64(), "{done}");
    let after = dump(&sandbox.data());
    // The `LogCompacted` event moves the checkpoint; all other rows are unchanged.
    let is_point = |line: &str| line.contains("|bugfix,feature,");
    for line in before.lines().filter(|line| !is_point(line)) {
        assert!(after.lines().any(|other| other == line), "{line}");
    }
    sandbox.delete_database();
    run(&sandbox, &["replay", "--offline"]).ok();
    assert_eq!(dump(&sandbox.data()), after);
    assert_eq!(run(&sandbox, &["verify"]).code, 0);
    // There is nothing left to erase.
    let again = json_of(&run(&sandbox, &["compact", "--json"]).ok());
    assert_eq!(again["erased_events"], 0, "{again}");
}

#[test]
fn raw_tool_text_is_removed_only_on_request_and_memories_stay() {
    let sandbox = remembered();
    let line = "test walrus ... ok in line 1";
    run(&sandbox, &["compact"]).ok();
    assert!(sandbox.events().iter().any(|event| event.to_string().contains(line)));
    let before = run(&sandbox, &["search", "walrus"]).ok();
    run(&sandbox, &["compact", "--raw-older-than", "0d"]).ok();
    assert!(!sandbox.events().iter().any(|event| event.to_string().contains(line)));
    assert_eq!(run(&sandbox, &["search", "walrus"]).ok(), before);
    let after = dump(&sandbox.data());
    sandbox.delete_database();
    run(&sandbox, &["replay", "--offline"]).ok();
    assert_eq!(dump(&sandbox.data()), after);
}

#[test]
fn a_killed_compaction_loses_nothing_and_is_finished_by_the_next() {
    const ROUNDS: u64 = 10;
    let sandbox = remembered();
    run(&sandbox, &["forget", "--session", "odd", "--yes"]).ok();
    run(&sandbox, &["forget", "--text", SECRET, "--yes"]).ok();
    let events = sandbox.events().len();
    for round in 0..ROUNDS {
        let mut command = sandbox.command(&["compact"]);
        command.envs(EXTRACT).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1 + round * 6));
        let _ = child.kill();
        child.wait().unwrap();
        turn(&sandbox, "plain", 10 + round as u32, "walrus");
    }
    let now = sandbox.events();
    let kept = |kind: &str| now.iter().filter(|event| event["kind"] == kind).count();
    assert!(now.len() as u64 >= events as u64 + ROUNDS * 4, "{} of {events}", now.len());
    assert!(kept("ToolUsed") as u64 >= ROUNDS * 2, "{}", kept("ToolUsed"));
    run(&sandbox, &["distill"]).ok();
    run(&sandbox, &["compact"]).ok();
    assert_nowhere(&sandbox, &[SECRET]);
    assert_eq!(run(&sandbox, &["verify"]).code, 0);
    let after = dump(&sandbox.data());
    sandbox.delete_database();
    run(&sandbox, &["replay", "--offline"]).ok();
    assert_eq!(dump(&sandbox.data()), after);
}

#[test]
fn only_one_compacts_and_an_empty_log_is_fine() {
    let sandbox = Sandbox::new();
    run(&sandbox, &["compact"]).ok();
    let sandbox = remembered();
    let lock = fs::File::create(sandbox.data().join("log/compact.lock")).unwrap();
    lock.lock().unwrap();
    let error = run(&sandbox, &["compact"]).fails(1);
    assert!(error.contains("being compacted already"), "{error}");
}

#[test]
fn forgetting_confirms_first_and_reports_no_matches() {
    let sandbox = remembered();
    let error = run(&sandbox, &["forget", "--project", "home"]).fails(2);
    assert!(error.contains("would be forgotten") && error.contains("--yes"), "{error}");
    let error = run(&sandbox, &["forget", "--text", "no such thing", "--yes"]).fails(1);
    assert!(error.contains("no memories match") && !error.contains("--project"), "{error}");
    let folder = sandbox.home().join("zebra-crossing");
    fs::create_dir(&folder).unwrap();
    let mut remember = sandbox.command(&["remember", "stripes"]);
    assert!(remember.current_dir(folder).stdout(Stdio::null()).status().unwrap().success());
    let error = run(&sandbox, &["forget", "--text", "zebra", "--yes"]).fails(1);
    assert!(error.contains("`claude-mem forget --project ") && error.contains("zebra"), "{error}");
    run(&sandbox, &["forget", "--since", "2000-01-01", "--until", "2001-01-01", "--yes"]).fails(1);
    let result = run(&sandbox, &["forget", "--since", "1d", "--yes", "--json"]).ok();
    assert!(json_of(&result)["events"].as_u64() >= Some(12), "{result}");
    assert!(!run(&sandbox, &["search", "walrus"]).ok().contains("number 1"));
}

#[test]
fn redact_applies_current_rules_to_all_events() {
    let sandbox = Sandbox::new();
    let key = format!("AKIA{}", "Q7ZP3M5R8T2V6W4X");
    let old = [("CLAUDE_MEM_REDACT_SECRETS", "false"), EXTRACT[0]];
    let prompt = json!({"session_id": "s", "hook_event_name": "UserPromptSubmit",
        "cwd": sandbox.home(), "prompt": format!("deploy with {key} please")});
    sandbox.hook_with("new", &old, prompt.to_string());
    let tool = json!({"session_id": "s", "hook_event_name": "PostToolUse", "cwd": sandbox.home(),
        "tool_name": "Bash", "tool_input": {"command": format!("export KEY={key}")},
        "tool_response": {"stdout": "done"}, "tool_use_id": "t"});
    sandbox.hook_with("save", &old, tool.to_string());
    sandbox.run_with(&["distill"], &old, "").ok();
    assert!(sandbox.events().iter().any(|event| event.to_string().contains(&key)));
    let looked = run(&sandbox, &["redact", "--dry-run", "--json"]).ok();
    let count = json_of(&looked)["events"].as_u64().unwrap();
    assert!(count >= 2, "{looked}");
    assert!(json_of(&looked)["by_rule"]["aws-access-key"].as_u64() >= Some(2), "{looked}");
    let table = run(&sandbox, &["redact", "--dry-run"]).ok();
    let lines: Vec<Vec<&str>> =
        table.lines().map(|line| line.split_whitespace().collect()).collect();
    let day = json_of(&looked)["by_day"].as_object().unwrap().keys().next().unwrap().clone();
    let secrets = json_of(&looked)["by_rule"]["aws-access-key"].to_string();
    assert_eq!(lines[0], ["day", "rule", "secrets"]);
    assert_eq!(lines[1], [day.as_str(), "aws-access-key", &secrets]);
    assert_eq!(table.lines().last(), Some(format!("secrets in {count} events").as_str()));
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    assert!(!table.contains(&key), "{table}");
    run(&sandbox, &["redact"]).fails(2);
    run(&sandbox, &["redact", "--yes"]).ok();
    assert_nowhere(&sandbox, &[&key]);
    let found = run(&sandbox, &["search", "deploy"]).ok();
    assert!(found.contains("redacted"), "{found}");
    assert_eq!(json_of(&run(&sandbox, &["redact", "--dry-run", "--json"]).ok())["events"], 0);
}
