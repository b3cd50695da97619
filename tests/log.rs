//! `claude-mem log` and `claude-mem status`.

use std::{
    fs,
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn tool(session: &str, id: &str, command: &str) -> String {
    json!({"session_id": session, "hook_event_name": "PostToolUse", "cwd": "/work/shop", "tool_name": "Bash",
        "tool_use_id": id, "tool_input": {"command": command}, "tool_response": {"stdout": "out"}})
    .to_string()
}

fn at(sandbox: &Sandbox, now: &str, hook: &str, stdin: &str) {
    sandbox.hook_with(hook, &[("CLAUDE_MEM_NOW", now)], stdin);
}

/// Three days, two sessions, each kind of event once.
fn recorded() -> Sandbox {
    let sandbox = Sandbox::new();
    let prompt = json!({"session_id": "aaaa-1", "hook_event_name": "UserPromptSubmit", "cwd": "/work/shop",
        "prompt": "fix\nit \u{1b}[31m now"});
    at(&sandbox, "2026-03-01T10:00:00Z", "new", &prompt.to_string());
    at(&sandbox, "2026-03-02T10:00:00Z", "save", &tool("aaaa-1", "toolu_1", "cargo test"));
    at(&sandbox, "2026-03-03T10:00:00Z", "save", &tool("bbbb-2", "toolu_2", "ls"));
    sandbox
}

/// Runs with a fixed clock and time zone.
fn log(sandbox: &Sandbox, arguments: &[&str]) -> crate::sandbox::Run {
    let arguments: Vec<&str> = ["log"].iter().chain(arguments).copied().collect();
    sandbox.run_with(&arguments, &[("CLAUDE_MEM_NOW", "2026-03-03T12:00:00Z"), ("TZ", "UTC")], "")
}

/// The subjects of the listed events.
fn subjects(sandbox: &Sandbox, arguments: &[&str]) -> Vec<String> {
    let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
    let listed = log(sandbox, &arguments).ok();
    let subject = |line: &str| {
        serde_json::from_str::<Value>(line).unwrap()["subject"].as_str().unwrap().to_owned()
    };
    listed.lines().map(subject).collect()
}

/// The positions of the events. They depend on the host name, which is recorded with each.
fn places(sandbox: &Sandbox) -> Vec<String> {
    let place = |event: &Value| event["seq"].as_str().unwrap().to_owned();
    sandbox.events().iter().map(place).collect()
}

#[test]
fn events_are_listed_one_to_a_line_for_people() {
    let sandbox = recorded();
    let lines = [
        "2026-03-01 10:00:00  aaaa-1    shop            PromptSubmitted   fix it [31m now",
        "2026-03-02 10:00:00  aaaa-1    shop            ToolUsed          Bash cargo test  toolu_1",
        "2026-03-03 10:00:00  bbbb-2    shop            ToolUsed          Bash ls  toolu_2",
    ];
    let places = places(&sandbox);
    let expected: String =
        places.iter().zip(lines).map(|(place, line)| format!("{place:>9}  {line}\n")).collect();
    assert_eq!(log(&sandbox, &[]).ok(), expected);
}

#[test]
fn lists_can_be_filtered() {
    let sandbox = recorded();
    let (one, two, three) = ("fix it [31m now", "Bash cargo test", "Bash ls");
    let cases: [(&[&str], &[&str]); 12] = [
        (&[], &[one, two, three]),
        (&["--limit", "1"], &[three]),
        (&["--limit", "2"], &[two, three]),
        (&["--since", "2026-03-02"], &[two, three]),
        (&["--until", "2026-03-02"], &[one, two]),
        (&["--since", "1d"], &[three]),
        (&["--since", "yesterday", "--until", "yesterday"], &[two]),
        (&["--session", "aaaa"], &[one, two]),
        (&["--kind", "tool_used"], &[two, three]),
        (&["--kind", "ToolUsed", "--limit", "1", "--session", "a"], &[two]),
        (&["--project", "shop", "--limit", "1"], &[three]),
        (&["--project", "else"], &[]),
    ];
    for (arguments, expected) in cases {
        assert_eq!(subjects(&sandbox, arguments), expected, "{arguments:?}");
    }
    assert!(log(&sandbox, &["--kind", "tool"]).fails(2).contains("there is no kind"));
    assert!(log(&sandbox, &["--since", "soon"]).fails(2).contains("2026-03-01"));
}

#[test]
fn an_event_is_shown_in_full_by_any_of_its_ids() {
    let sandbox = recorded();
    let listed = log(&sandbox, &["--json", "--kind", "ToolUsed", "--limit", "1"]).ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let id = listed["id"].as_str().unwrap();
    for name in ["toolu_2", listed["seq"].as_str().unwrap(), id, &id[..13]] {
        let shown = log(&sandbox, &[name]).ok();
        for part in ["ToolUsed", "toolu_2", "\"command\": \"ls\"", "\"stdout\": \"out\"", "bbbb-2"]
        {
            assert!(shown.contains(part), "{name}: {part}\n{shown}");
        }
    }
    let raw = log(&sandbox, &["toolu_2", "--json"]).ok();
    let raw: Value = serde_json::from_str(&raw).unwrap();
    assert_eq!(raw["event"]["input"], json!({"command": "ls"}));
    assert!(log(&sandbox, &["toolu_3"]).fails(2).contains("there is no event `toolu_3`"));
    assert!(log(&sandbox, &["1:99"]).fails(2).contains("there is no event"));
}

#[test]
fn events_are_followed_as_they_come() {
    let sandbox = recorded();
    for arguments in [&["log", "-f", "--json", "--limit", "1"][..], &["log", "-f", "--json"]] {
        let mut command = sandbox.command(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let is = |line: String, id: &str| line.contains(&format!("\"tool_use_id\":\"{id}\""));
        assert!(lines.by_ref().map(Result::unwrap).any(|line| is(line, "toolu_2")));
        sandbox.hook("save", tool("cccc-3", "toolu_new", "pwd"));
        assert!(is(lines.next().unwrap().unwrap(), "toolu_new"));
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_dir_all(sandbox.data()).unwrap();
        sandbox.hook("save", tool("bbbb-2", "toolu_2", "ls"));
    }
}

#[test]
fn damage_is_shown_and_everything_around_it() {
    let sandbox = recorded();
    let file = sandbox.data().join("log/active.log");
    let mut bytes = fs::read(&file).unwrap();
    let place = places(&sandbox).remove(1);
    bytes[place.strip_prefix("1:").unwrap().parse::<usize>().unwrap() + 40] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    let listed = log(&sandbox, &[]).ok();
    let lines: Vec<&str> = listed.lines().collect();
    assert!(
        lines.len() == 3 && lines[1].contains("damaged: ") && lines[2].contains("toolu_2"),
        "{listed}"
    );
    let damage = log(&sandbox, &["--json"]).ok();
    let damage: Value = serde_json::from_str(damage.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&damage["kind"], &damage["seq"]), (&json!("Damage"), &json!(place)));
    let status: Value = serde_json::from_str(&sandbox.run(&["status", "--json"]).ok()).unwrap();
    assert_eq!((&status["events"], &status["damage"]["damaged"]), (&json!(2), &json!(1)));
    assert!(sandbox.run(&["status"]).ok().contains("1 damaged place"));
}

#[test]
fn an_empty_log_is_not_an_error_and_reading_it_writes_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["log"]).ok(), "");
    assert_eq!(sandbox.run(&["log", "--json"]).ok(), "");
    let status = sandbox.run(&["status", "-v"]).ok();
    assert!(status.contains("nothing yet") && status.contains("claude-mem install"), "{status}");
    assert!(!sandbox.data().exists());
}

#[test]
fn status_counts_events() {
    let sandbox = recorded();
    let now =
        [("CLAUDE_MEM_NOW", "2026-03-03T12:00:00Z"), ("TZ", "UTC"), ("CLAUDE_MEM_SYNC", "always")];
    let status: Value =
        serde_json::from_str(&sandbox.run_with(&["status", "--json"], &now, "").ok()).unwrap();
    assert_eq!(
        (&status["events"], &status["sessions"], &status["projects"]),
        (&json!(3), &json!(2), &json!(1))
    );
    let today = json!({"events": 1, "sessions": 1});
    assert_eq!(status["today"], today);
    assert_eq!(status["kinds"], json!({"PromptSubmitted": 1, "ToolUsed": 2}));
    assert_eq!(status["durability"]["tool_uses"], "when the hook returns");
    assert_eq!(status["hooks"]["is_installed"], false);
    sandbox.run(&["install"]).ok();
    let shown = sandbox.run_with(&["status"], &now, "").ok();
    assert_eq!(shown.lines().next(), Some("recording"));
    assert!(!shown.contains("3 events"), "{shown}");
    let shown = sandbox.run_with(&["status", "-v"], &now, "").ok();
    assert!(
        shown.contains("3 events in 2 sessions of 1 project, 2026-03-01 10:00 to 2026-03-03 10:00"),
        "{shown}"
    );
    assert!(shown.contains("installed in"), "{shown}");
    sandbox.run(&["distill"]).ok();
    let shown = sandbox.run(&["status"]).ok();
    assert!(
        shown.starts_with("recording · 1 memory · distilled by the built-in rules\n"),
        "{shown}"
    );
    sandbox.run_with(&["remember", "The walrus is shy"], &now, "").ok();
    let later = sandbox.run_with(&["status", "--json"], &now, "").ok();
    let later: Value = serde_json::from_str(&later).unwrap();
    assert_eq!(later["kinds"]["MemoryAdded"], 1);
    assert_eq!(later["today"], today, "a response and a note are not the work of a session");
}

#[test]
fn status_shows_a_diagnostic_for_a_day_and_then_only_with_details() {
    let sandbox = recorded();
    let line = "2026-03-02T12:00:00.000000Z ERROR [7] the disk was full\n";
    sandbox.write(".claude-mem/logs/claude-mem.log", line);
    let status = |arguments: &[&str], now: &str| {
        sandbox.run_with(arguments, &[("CLAUDE_MEM_NOW", now)], "").ok()
    };
    let soon = status(&["status"], "2026-03-03T11:59:00Z");
    assert!(soon.contains("the disk was full"), "{soon}");
    let later = status(&["status"], "2026-03-03T12:01:00Z");
    assert!(!later.contains("diagnostics"), "{later}");
    let details = status(&["status", "-v"], "2026-03-03T12:01:00Z");
    assert!(details.contains("the disk was full"), "{details}");
}
