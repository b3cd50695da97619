//! Tests of recording events.

use std::fs;

use super::*;
use crate::{HookCommand, Input, record_hook};

#[test]
fn an_event_that_is_lost_because_the_settings_are_unreadable_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let paths = Paths { home: None, data: dir.path().into() };
    fs::write(paths.settings(), "{").unwrap();
    let recorder = Recorder::new(Environment::fixed(&[]), paths);
    let text = r#"{"session_id": "s", "cwd": "/p", "hook_event_name": "PostToolUse", "tool_name": "Bash"}"#;
    record_hook(&recorder, HookCommand::alias("save").unwrap(), &Input::of(text.as_bytes()));
    assert_eq!(Dropped::look(dir.path()).unwrap().events, 1);
}

#[test]
fn beyond_the_work_limit_an_event_is_truncated_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let paths = Paths { home: None, data: data.clone() };
    let secret = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let text = serde_json::json!({
        "session_id": "s", "cwd": dir.path(), "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_response": format!("{} {secret}", "password ".repeat(10_000)),
    })
    .to_string();
    let recorder =
        Recorder { work_bytes_max: 50_000, ..Recorder::new(Environment::fixed(&[]), paths) };
    let input = Input::of(text.as_bytes());
    record_hook(&recorder, HookCommand::alias("save").unwrap(), &input);
    let log = claude_mem_log::Log::open(&data.join("log"), Options::default()).unwrap();
    let mut reader = claude_mem_events::EventReader::from(&log, claude_mem_events::Seq::START);
    let Some(claude_mem_events::EventItem::Event(met)) = reader.next().unwrap() else { panic!() };
    let Event::ToolUsed(used) = met.event else { panic!("{:?}", met.event) };
    assert_eq!(used.tool, "Bash");
    assert!(used.output.contains("[not read: "), "{}", used.output);
    assert!(!used.output.contains("16C7e42F"), "{}", used.output);
    let diagnostics = fs::read_to_string(data.join("logs/claude-mem.log")).unwrap();
    assert!(diagnostics.contains("redaction reached its work limit"), "{diagnostics}");
}

#[test]
fn the_internal_folder_is_recognized_through_links() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir_all(data.join("observer-sessions/x")).unwrap();
    std::os::unix::fs::symlink(&data, dir.path().join("link")).unwrap();
    let internal = |path: &str| is_internal(&data, &dir.path().join(path));
    assert!(internal("data/observer-sessions") && internal("link/observer-sessions/x"));
    assert!(!internal("data") && !internal("observer-sessions"));
}
