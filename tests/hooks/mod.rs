//! Payloads of Claude Code become events: every payload captured from the real client, and the
//! rules on what is recorded.

mod stops;

use std::{
    collections::BTreeSet,
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// The command that is registered for `PreToolUse`.
pub(crate) const PRE_TOOL_USE: [&str; 3] = ["hook", "--client", "claude-code"];

/// Every payload of this client version, in the order in which they were sent.
fn fixtures(dir: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks").join(dir);
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some()).collect();
    files.retain(|file| file.is_file());
    files.sort();
    files
}

/// The command registered for an event; for an unregistered one, any.
fn hook_of(event: &str) -> &'static str {
    match event {
        "SessionStart" => "context",
        "UserPromptSubmit" => "new",
        "Stop" | "SubagentStop" => "summary",
        "SessionEnd" => "cleanup",
        _ => "save",
    }
}

fn kind_of(event: &str) -> &'static str {
    match event {
        "SessionStart" => "SessionStarted",
        "UserPromptSubmit" => "PromptSubmitted",
        "PostToolUse" | "PostToolUseFailure" => "ToolUsed",
        "Stop" | "SubagentStop" => "SummaryRequested",
        "SessionEnd" => "SessionEnded",
        _ => "InputUnreadable",
    }
}

/// Where each field of a payload is found in the event.
const SAME: [(&str, &str); 17] = [
    ("source", "source"),
    ("model", "model"),
    ("prompt", "prompt"),
    ("prompt_id", "prompt_id"),
    ("cwd", "cwd"),
    ("tool_name", "tool"),
    ("tool_input", "input"),
    ("tool_response", "output"),
    ("tool_use_id", "tool_use_id"),
    ("duration_ms", "duration_ms"),
    ("error", "error"),
    ("is_interrupt", "is_interrupt"),
    ("agent_id", "agent_id"),
    ("agent_type", "agent_type"),
    ("last_assistant_message", "last_assistant_message"),
    ("stop_hook_active", "is_stop_hook_active"),
    ("reason", "reason"),
];

fn assert_nothing_is_lost(file: &Path, sent: &Value, recorded: &Value) {
    let name = file.display();
    assert_eq!(recorded["session"], sent["session_id"], "{name}");
    let event = &recorded["event"];
    if recorded["kind"] == "InputUnreadable" {
        let kept: Value = serde_json::from_str(event["text"].as_str().unwrap()).unwrap();
        assert_eq!(kept["hook_event_name"], sent["hook_event_name"], "{name}");
        return;
    }
    for (field, value) in sent.as_object().unwrap() {
        let place = SAME.iter().find(|(known, _)| known == field).map(|(_, place)| *place);
        let place = place.filter(|place| event.get(*place).is_some());
        match (field.as_str(), place) {
            // The project has the working directory at the end of the session.
            ("session_id" | "hook_event_name", _) | ("cwd", None) => {}
            (_, Some(place)) => assert_eq!(event[place], *value, "{name}: {field}"),
            ("transcript_path", None) if event.get("transcript_path").is_some() => {
                assert_eq!(event["transcript_path"], *value, "{name}");
            }
            (_, None) => assert_eq!(event["extra"][field], *value, "{name}: {field}"),
        }
    }
}

#[test]
fn every_payload_of_the_real_client_becomes_its_event_with_nothing_lost() {
    for version in ["", "2.0.76"] {
        let sandbox = Sandbox::new();
        let mut files = fixtures(version);
        assert!(files.len() >= 40, "the fixtures are there");
        let home = sandbox.home();
        let read = |file: &Path| {
            let text = fs::read_to_string(file).unwrap();
            text.replace("/scratch/home", home.to_str().unwrap())
        };
        for file in &files {
            let text = read(file);
            let sent: Value = serde_json::from_str(&text).unwrap();
            // A compaction is recorded if the transcript shows that nothing was private.
            let transcript = Path::new(sent["transcript_path"].as_str().unwrap());
            fs::create_dir_all(transcript.parent().unwrap()).unwrap();
            fs::write(transcript, "").unwrap();
            sandbox.hook(hook_of(sent["hook_event_name"].as_str().unwrap()), &text);
        }
        // Before a tool use, memories are given and nothing is recorded.
        files.retain(|file| !file.to_string_lossy().contains(".PreToolUse."));
        let events = sandbox.events();
        assert_eq!(events.len(), files.len());
        for (file, recorded) in files.iter().zip(&events) {
            let sent: Value = serde_json::from_str(&read(file)).unwrap();
            let event_name = sent["hook_event_name"].as_str().unwrap();
            assert_eq!(recorded["kind"], kind_of(event_name), "{}", file.display());
            assert_nothing_is_lost(file, &sent, recorded);
        }
        let ids: BTreeSet<_> = events.iter().map(|event| event["id"].to_string()).collect();
        assert_eq!(ids.len(), events.len());
    }
}

fn payload(event: &str, fields: Value) -> String {
    let mut payload = json!({"session_id": "s1", "hook_event_name": event, "cwd": "/p"});
    let Value::Object(fields) = fields else { panic!("fields are an object") };
    payload.as_object_mut().unwrap().extend(fields);
    payload.to_string()
}

fn tool(id: &str) -> String {
    payload(
        "PostToolUse",
        json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "ls"}, "tool_response": {}}),
    )
}

fn prompt(text: &str, prompt_id: &str) -> String {
    payload("UserPromptSubmit", json!({"prompt": text, "prompt_id": prompt_id}))
}

/// Kind and subject of everything recorded.
fn subjects(sandbox: &Sandbox) -> Vec<String> {
    let subject = |event: &Value| {
        let id = event["tool_use_id"].as_str().unwrap_or_default();
        format!("{} {}{id}", event["kind"].as_str().unwrap(), event["subject"].as_str().unwrap())
    };
    sandbox.events().iter().map(subject).collect()
}

#[test]
fn prompts_of_the_client_are_distinguished_from_the_users() {
    let sandbox = Sandbox::new();
    let notification = "<task-notification>\n<task-id>a</task-id>\n</task-notification>";
    for text in ["fix it", " \n", notification, "see <task-notification>x</task-notification>"] {
        sandbox.hook("new", prompt(text, "p1"));
    }
    let events = sandbox.events();
    let of = |name: &str| events.iter().map(|e| e["event"][name].clone()).collect::<Vec<_>>();
    assert_eq!(of("submitter"), ["User", "UserMedia", "TaskNotification", "User"]);
    assert_eq!(of("prompt")[..2], ["fix it", "[media prompt]"]);
}

#[test]
fn excluded_and_private_text_leaves_no_trace() {
    let observer =
        payload("PostToolUse", json!({"tool_name": "Bash", "cwd": "DATA/observer-sessions/x"}));
    let cases: [(&[(&str, &str)], &str); 7] = [
        (&[("CLAUDE_MEM_SKIP", "1")], &tool("t")),
        (&[("CLAUDE_MEM_INTERNAL", "1")], &tool("t")),
        (&[("CLAUDE_MEM_ENABLED", "false")], &tool("t")),
        (&[("CLAUDE_MEM_EXCLUDED_PROJECTS", "/p")], &tool("t")),
        (&[("CLAUDE_MEM_DISABLED_PROJECTS", "/p")], &tool("t")),
        (&[("CLAUDE_MEM_SKIP_TOOLS", "Read, Bash")], &tool("t")),
        (&[], &observer),
    ];
    for (environment, stdin) in cases {
        let sandbox = Sandbox::new();
        let stdin = stdin.replace("DATA", sandbox.data().to_str().unwrap());
        for hook in ["context", "new", "save", "summary", "cleanup"] {
            sandbox.hook_with(hook, environment, &stdin);
        }
        assert!(!sandbox.data().exists(), "{environment:?}");
        // An unparsable payload is not recorded either, if its folder or session is excluded.
        let is_by_tool = environment.iter().any(|(name, _)| name.ends_with("TOOLS"));
        sandbox.hook_with("save", environment, &stdin[..stdin.len() - 1]);
        assert_eq!(sandbox.data().exists(), is_by_tool, "{environment:?}");
    }
}

#[test]
fn a_project_is_identified_by_the_folder_of_the_client() {
    let sandbox = Sandbox::new();
    sandbox.write("shop/.git/HEAD", "ref: refs/heads/main\n");
    sandbox.write(
        "shop/.git/config",
        "[remote \"origin\"]\nurl = https://k:v@example.com/Ada/Shop.git\n",
    );
    let shop = sandbox.home().join("shop");
    let environment = [("CLAUDE_PROJECT_DIR", shop.to_str().unwrap())];
    sandbox.hook_with("save", &environment, tool("t1"));
    let event = &sandbox.events()[0];
    assert_eq!(
        (&event["project"], &event["project_key"]),
        (&json!("shop"), &json!("example.com/ada/shop"))
    );
    assert_eq!(event["event"]["cwd"], "/p");
}

#[test]
fn a_private_prompt_makes_its_turn_private_and_no_more() {
    let sandbox = Sandbox::new();
    let stop = payload("Stop", json!({"last_assistant_message": "hush"}));
    let broken = &tool("hush")[..60];
    sandbox.hook("new", prompt("before", "p1"));
    sandbox.hook("new", prompt("<private>hush</private>", "p2"));
    sandbox.hook("save", tool("hush"));
    sandbox.hook("save", broken);
    sandbox.hook("summary", &stop);
    sandbox.hook("new", prompt("<task-notification>hush</task-notification>", "p3"));
    sandbox.hook("save", tool("hush"));
    let other = tool("other").replace("s1", "s2");
    sandbox.hook("save", other);
    sandbox.hook("new", prompt("after", "p4"));
    sandbox.hook("save", tool("t1"));
    sandbox.hook("new", prompt("<private>hush", "p5"));
    sandbox.hook("cleanup", payload("SessionEnd", json!({"reason": "other"})));
    assert_eq!(
        subjects(&sandbox),
        [
            "PromptSubmitted before",
            "PromptSubmitted (private)",
            "PromptSubmitted (private)",
            "ToolUsed Bash lsother",
            "PromptSubmitted after",
            "ToolUsed Bash lst1",
            "PromptSubmitted (private)",
            "SessionEnded other",
        ]
    );
    assert_eq!(fs::read_dir(sandbox.data().join("private")).unwrap().count(), 0);
    crate::secrets::assert_nowhere(&sandbox, &["hush"]);
}

#[test]
fn a_prompt_queued_into_a_private_turn_does_not_make_it_public() {
    let sandbox = Sandbox::new();
    sandbox.hook("new", prompt("<private>hush</private>", "p1"));
    sandbox.hook("new", prompt("and this", "p1"));
    sandbox.hook("save", tool("hush"));
    assert_eq!(subjects(&sandbox), ["PromptSubmitted (private)", "PromptSubmitted and this"]);
    sandbox.hook("new", prompt("next", "p2"));
    sandbox.hook("save", tool("t1"));
    assert_eq!(subjects(&sandbox)[2..], ["PromptSubmitted next", "ToolUsed Bash lst1"]);
}

#[test]
fn hooks_sync_prompts_and_sync_tools_if_configured_or_without_a_worker() {
    let sandbox = Sandbox::new();
    let synced = || fs::read(sandbox.data().join("log/synced")).unwrap();
    sandbox.hook("new", prompt("one", "p1"));
    let socket = sandbox.data().join("worker.wake");
    let worker = UnixDatagram::bind(&socket).unwrap();
    let long_ago = SystemTime::now() - Duration::from_secs(60);
    let age = || {
        let file = fs::File::options().write(true).open(sandbox.data().join("log/synced"));
        file.unwrap().set_modified(long_ago).unwrap();
    };
    let mut before = synced();
    let mut is_synced_by = |hook: &str, environment: &[(&str, &str)], stdin: &str| {
        sandbox.hook_with(hook, environment, stdin);
        let after = synced();
        std::mem::replace(&mut before, after.clone()) != after
    };
    age();
    assert!(!is_synced_by("save", &[], &tool("t1")), "the worker sees to it");
    assert!(is_synced_by("save", &[("CLAUDE_MEM_SYNC", "always")], &tool("t2")));
    assert!(is_synced_by("summary", &[], &payload("Stop", json!({}))));
    assert!(is_synced_by("cleanup", &[], &payload("SessionEnd", json!({}))));
    drop(worker);
    age();
    assert!(is_synced_by("save", &[], &tool("t3")), "there is no worker");
}

#[test]
fn context_is_an_answer_the_client_accepts() {
    let sandbox = Sandbox::new();
    let answer = sandbox.hook("context", payload("SessionStart", json!({"source": "startup"})));
    assert_eq!(answer["hookSpecificOutput"]["hookEventName"], "SessionStart");
    assert!(answer["hookSpecificOutput"]["additionalContext"].is_string());
    assert_eq!(subjects(&sandbox), ["SessionStarted startup in /p"]);
}

/// The fields that do not depend on when and where an event is recorded.
fn comparable(mut event: Value) -> Value {
    for name in ["id", "seq", "time"] {
        event.as_object_mut().unwrap().remove(name);
    }
    event
}

#[test]
fn one_command_records_every_payload_as_the_older_five_do() {
    for version in ["", "2.0.76"] {
        let (aliases, one) = (Sandbox::new(), Sandbox::new());
        for file in fixtures(version) {
            let text = fs::read(file).unwrap();
            let sent: Value = serde_json::from_slice(&text).unwrap();
            let alias = hook_of(sent["hook_event_name"].as_str().unwrap());
            let answer = aliases.hook(alias, &text);
            let run = one.run_with(&["hook", "--client", "claude-code"], &[], &text);
            assert_eq!(run.answer(), answer, "{sent}");
        }
        let (by_aliases, by_one) = (aliases.events(), one.events());
        assert_eq!(by_aliases.len(), by_one.len());
        for (by_alias, mut by_one) in by_aliases.into_iter().zip(by_one) {
            if by_one["kind"] == "InputUnreadable" {
                // The called command is one of them.
                assert_eq!(by_one["event"]["hook"], "hook");
                by_one["event"]["hook"] = by_alias["event"]["hook"].clone();
                by_one["subject"] = by_alias["subject"].clone();
            }
            let (by_alias, by_one) = (comparable(by_alias), comparable(by_one));
            assert_eq!(by_one.to_string(), by_alias.to_string());
        }
    }
}

#[test]
fn the_payload_decides_which_event_it_is() {
    let sandbox = Sandbox::new();
    let start = payload("SessionStart", json!({"source": "startup"}));
    let answer = sandbox.hook("save", start);
    assert!(answer["hookSpecificOutput"]["additionalContext"].is_string(), "{answer}");
    let answer = sandbox.hook("context", tool("t1"));
    assert!(answer.get("hookSpecificOutput").is_none(), "{answer}");
    assert_eq!(subjects(&sandbox), ["SessionStarted startup in /p", "ToolUsed Bash lst1"]);
    let nameless = r#"{"session_id": "s1", "cwd": "/p"}"#;
    sandbox.run_with(&["hook", "--client=claude-code"], &[], nameless).answer();
    let event = &sandbox.events()[2];
    assert_eq!(
        (&event["kind"], &event["event"]["error"]),
        (&json!("InputUnreadable"), &json!("it names no event"))
    );
}

#[test]
fn a_hook_without_a_known_client_is_silent_and_leaves_a_line_in_the_diagnostics() {
    let cases: [&[&str]; 4] =
        [&["--client", "nobody"], &["--client=nobody"], &[], &["--client", "claude-code", "x"]];
    for arguments in cases {
        let sandbox = Sandbox::new();
        let arguments = [&["hook"], arguments].concat();
        let run = sandbox.run_with(&arguments, &[], tool("t1"));
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "", ""), "{run:?}");
        assert!(!sandbox.data().join("log").exists());
        let diagnostics = sandbox.diagnostics();
        assert_eq!(diagnostics.matches("name no known client").count(), 1, "{diagnostics}");
        assert!(diagnostics.contains("takes claude-code"), "{diagnostics}");
    }
    let sandbox = Sandbox::new();
    sandbox.run_with(&["hook"], &[("CLAUDE_MEM_SKIP", "1")], tool("t1"));
    assert!(!sandbox.data().exists(), "not even a line, if the session is left out");
    let help = sandbox.run(&["hook", "--help"]).ok();
    assert!(help.contains("--client <NAME>"), "{help}");
}
