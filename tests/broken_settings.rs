//! A settings file that cannot be read: nothing that was excluded or switched off is recorded.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// The name of a case, and a function that breaks the settings file.
type Break = (&'static str, fn(&Path));

const BREAKS: &[Break] = &[
    ("trailing comma", |file| edit(file, |text| text.replace("\"\n}", "\",\n}"))),
    ("missing quote", |file| edit(file, |text| text.replacen('"', "", 1))),
    ("comment", |file| edit(file, |text| text.replacen('{', "{ // mine\n", 1))),
    ("truncated", |file| edit(file, |text| text[..text.len() - 3].into())),
    ("empty", |file| edit(file, |_| String::new())),
    ("not an object", |file| edit(file, |text| format!("[{text}]"))),
    ("not UTF-8", |file| fs::write(file, b"{\"\xff\": 1}").unwrap()),
    ("a directory", |file| {
        fs::remove_file(file).unwrap();
        fs::create_dir(file).unwrap();
    }),
    ("a FIFO", |file| {
        fs::remove_file(file).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, file, 0o600.into()).unwrap();
    }),
    // Root can read it anyway, so for root it is not broken.
    ("unreadable", |file| {
        fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
    }),
];

fn edit(file: &Path, change: impl FnOnce(String) -> String) {
    fs::write(file, change(fs::read_to_string(file).unwrap())).unwrap();
}

fn prompt(sandbox: &Sandbox, dir: &str, text: &str) {
    let cwd = sandbox.home().join(dir);
    fs::create_dir_all(&cwd).unwrap();
    let event = json!({"session_id": "s", "cwd": cwd, "hook_event_name": "UserPromptSubmit", "prompt": text});
    sandbox.hook("new", event.to_string());
}

fn session_start(sandbox: &Sandbox) -> Value {
    let event = json!({"session_id": "s", "cwd": sandbox.home(), "hook_event_name": "SessionStart",
        "source": "startup"});
    sandbox.hook("context", event.to_string())
}

/// Whether a text is anywhere below the data directory.
fn is_stored(sandbox: &Sandbox, text: &str) -> bool {
    sandbox.run(&["export"]).ok().contains(text)
}

#[test]
fn with_broken_settings_exclusions_stay_and_other_events_are_recorded() {
    for (name, break_it) in BREAKS {
        let sandbox = Sandbox::new();
        sandbox.run(&["settings", "set", "EXCLUDED_PROJECTS", "~/secret"]).ok();
        prompt(&sandbox, "open", "before");
        break_it(&sandbox.data().join("settings.json"));
        prompt(&sandbox, "secret", "WALRUS");
        prompt(&sandbox, "open", "after");
        assert!(!is_stored(&sandbox, "WALRUS"), "{name}");
        assert!(is_stored(&sandbox, "before") && is_stored(&sandbox, "after"), "{name}");
    }
}

#[test]
fn with_broken_settings_disabled_capture_stays_disabled() {
    for setting in ["ENABLED=false", "DISABLED_PROJECTS="] {
        let (setting, value) = setting.split_once('=').unwrap();
        for (name, break_it) in BREAKS {
            let sandbox = Sandbox::new();
            match value {
                "" => sandbox.run(&["settings", "project", "off"]).ok(),
                value => sandbox.run(&["settings", "set", setting, value]).ok(),
            };
            break_it(&sandbox.data().join("settings.json"));
            prompt(&sandbox, ".", "WALRUS");
            assert!(!is_stored(&sandbox, "WALRUS"), "{setting} {name}");
        }
    }
}

#[test]
fn a_manual_change_is_used_by_the_next_hook_and_survives_a_later_typing_error() {
    let sandbox = Sandbox::new();
    prompt(&sandbox, "open", "before");
    let file = sandbox.write(
        ".claude-mem/settings.json",
        "{\n  \"CLAUDE_MEM_EXCLUDED_PROJECTS\": \"~/secret\"\n}\n",
    );
    prompt(&sandbox, "open", "a hook that reads it");
    edit(&file, |text| text.replace('}', "},"));
    prompt(&sandbox, "secret", "WALRUS");
    assert!(!is_stored(&sandbox, "WALRUS"));
}

#[test]
fn without_a_good_copy_nothing_is_recorded_and_it_is_reported() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/settings.json", "{\"CLAUDE_MEM_EXCLUDED_PROJECTS\": \"~/secret\",}");
    let output = session_start(&sandbox)["systemMessage"].as_str().unwrap_or_default().to_owned();
    assert!(output.contains("nothing is recorded until it can be read"), "{output}");
    prompt(&sandbox, "open", "WALRUS");
    for arguments in [&["status"][..], &["status", "--json"], &["doctor"], &["doctor", "--json"]] {
        let shown = sandbox.run(arguments).stdout;
        assert!(
            shown.contains("nothing is recorded until it can be read"),
            "{arguments:?}: {shown}"
        );
    }
    let refused = sandbox.run(&["remember", "WALRUS"]).fails(1);
    assert!(refused.contains("nothing is recorded until it can be read"), "{refused}");
    assert!(!is_stored(&sandbox, "WALRUS"));
    // After the repair everything continues.
    sandbox.write(".claude-mem/settings.json", "\u{feff}{}");
    let output = session_start(&sandbox)["systemMessage"].as_str().unwrap_or_default().to_owned();
    assert!(!output.contains("nothing is recorded"), "{output}");
    prompt(&sandbox, "open", "WALRUS");
    assert!(is_stored(&sandbox, "WALRUS"));
}

#[test]
fn invalid_privacy_values_record_nothing_and_are_reported_at_session_start() {
    for settings in [
        r#"{"CLAUDE_MEM_ENABLED": "flase"}"#,
        r#"{"CLAUDE_MEM_ENABLED": []}"#,
        r#"{"CLAUDE_MEM_EXCLUDED_PROJECTS": {"~/secret": true}}"#,
        r#"{"CLAUDE_MEM_EXCLUDED_PROJECTS": 1}"#,
        r#"{"CLAUDE_MEM_EXCLUDED_PROJECTS": "~/{secret,other}"}"#,
        r#"{"CLAUDE_MEM_EXCLUDED_PROJECTS": ["$HOME/secret"]}"#,
        r#"{"CLAUDE_MEM_DISABLED_PROJECTS": [{"key": "x"}]}"#,
        r#"{"CLAUDE_MEM_EXCLUDE_PROJECTS": "~/secret"}"#,
        r#"{"CLAUDE_MEM_ENABLD": false}"#,
        r#"{"env": "CLAUDE_MEM_ENABLED=false"}"#,
    ] {
        let sandbox = Sandbox::new();
        sandbox.write(".claude-mem/settings.json", settings);
        prompt(&sandbox, "open", "WALRUS");
        assert!(!is_stored(&sandbox, "WALRUS"), "{settings}");
        assert!(session_start(&sandbox)["systemMessage"].is_string(), "{settings}");
    }
}

#[test]
fn tools_are_not_recorded_if_the_skip_list_is_unreadable() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/settings.json", r#"{"CLAUDE_MEM_SKIP_TOOLS": {"Bash": true}}"#);
    let tool = json!({"session_id": "s", "cwd": "/p", "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": {}, "tool_response": "WALRUS"});
    sandbox.hook("save", tool.to_string());
    prompt(&sandbox, "open", "a prompt");
    assert!(!is_stored(&sandbox, "WALRUS") && is_stored(&sandbox, "a prompt"));
}

#[test]
fn without_its_mode_memory_can_be_read_and_doctor_reports_it() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "the zebra sleeps at noon"]).ok();
    let problem = "there is no mode `nothing`";
    let mode = [("CLAUDE_MEM_MODE", "nothing")];
    for arguments in [&["search", "zebra"][..], &["timeline"], &["show", "1"], &["context"]] {
        let run = sandbox.run_with(arguments, &mode, "");
        let is_read = run.stdout.contains("zebra") && run.stderr.contains(problem);
        assert!(is_read, "{arguments:?}: {run:?}");
    }
    let doctor = sandbox.run_with(&["doctor"], &mode, "");
    assert!(doctor.stdout.contains(problem), "{doctor:?}");
    let set = sandbox.run(&["settings", "set", "MODE", "nothing"]);
    assert!(set.stderr.contains(problem), "{set:?}");
    assert_eq!(sandbox.run(&["settings", "get", "MODE"]).ok().trim(), "code");
}
