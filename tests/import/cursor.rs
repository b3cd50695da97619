//! Transcripts of Cursor: they have no times, tool results or folder, so file times and paths are
//! used.

use std::fs::{self, File};

use jiff::Timestamp;
use serde_json::json;

use super::{
    added,
    clients::{event_lines, lines},
    import,
};
use crate::sandbox::Sandbox;

#[test]
fn prompts_and_answers_of_cursor_are_imported_once_with_the_time_of_the_file() {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("my.shop");
    fs::create_dir(&shop).unwrap();
    let row = |role: &str, content| json!({"role": role, "message": {"content": content}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let call =
        |command: &str| json!({"type": "tool_use", "name": "Shell", "input": {"command": command}});
    let rows = [
        row("user", json!([text("<user_query>\nmake the total right\n</user_query>")])),
        row("assistant", json!([text("I look."), call("ls"), call("cat total.py")])),
        row("assistant", json!([text("The total is right now.")])),
        row("user", json!([text("thanks")])),
        row("assistant", json!([text("Gladly.")])),
    ];
    let folder = |path: &str| {
        let encoded = path.trim_start_matches('/');
        encoded.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-")
    };
    let transcript = |folder: &str, session: &str| {
        let place =
            format!(".cursor/projects/{folder}/agent-transcripts/{session}/{session}.jsonl");
        sandbox.write(&place, &lines(&rows))
    };
    let file = transcript(&folder(shop.to_str().unwrap()), "past-1");
    transcript(&folder("/no/such/place"), "past-2");
    let written: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
    File::options().write(true).open(&file).unwrap().set_modified(written.into()).unwrap();

    let found = import(&sandbox, &["--from", "cursor"]);
    assert_eq!(found["left_out"], json!({"sessions without a folder": 1}));
    assert_eq!(found["tool_uses_left_out"], json!({"without a result": 2}));
    let expected = [
        "SessionStarted import",
        "PromptSubmitted make the total right",
        "SummaryRequested The total is right now. | I look.",
        "PromptSubmitted thanks",
        "SummaryRequested Gladly. | ",
    ];
    assert_eq!(event_lines(&sandbox), expected);
    let events = sandbox.events();
    assert_eq!(events[0]["event"]["extra"], json!({"dated_by": "file"}), "{}", events[0]);
    for event in &events {
        assert_eq!((&event["platform"], &event["session"]), (&json!("cursor"), &json!("past-1")));
        assert!(event["time"].as_str().unwrap().starts_with("2026-03-01T11:59:59"), "{event}");
    }
    assert_eq!(added(&import(&sandbox, &["--from", "cursor"])), 0);
    // The command-line client has no folder for each session.
    let place = folder(shop.to_str().unwrap());
    let flat = format!(".cursor/projects/{place}/agent-transcripts/past-3.jsonl");
    sandbox.write(&flat, &lines(&rows));
    assert_eq!(added(&import(&sandbox, &["--from", "cursor"])), expected.len() as u64);
    // The session continued, at an unknown time: the imported part is unchanged.
    File::options().write(true).open(&file).unwrap().set_modified(Timestamp::now().into()).unwrap();
    assert_eq!(added(&import(&sandbox, &["--from", "cursor"])), 0);
}
