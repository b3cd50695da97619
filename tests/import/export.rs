//! Exports, and their import on another machine.

use std::{collections::HashMap, fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::{added, import, rows, store};
use crate::sandbox::Sandbox;

/// Two sessions with memories, one note, one forgotten memory.
fn lived_in() -> Sandbox {
    let sandbox = Sandbox::new();
    for session in ["one", "two"] {
        let call = |event: &str| {
            json!({"session_id": session, "hook_event_name": event, "cwd": sandbox.home(),
                "prompt": format!("fix {session} \u{1F389}\u{0}"), "tool_name": "Edit", "tool_use_id": session,
                "tool_input": {"file_path": "/src/main.rs", "old_string": "a", "new_string": "b"},
                "tool_response": {"filePath": "/src/main.rs"}, "last_assistant_message": "done"})
        };
        for (hook, event) in
            [("new", "UserPromptSubmit"), ("save", "PostToolUse"), ("summary", "Stop")]
        {
            sandbox.hook(hook, call(event).to_string());
        }
    }
    let extract = [("CLAUDE_MEM_PROVIDER", "extract")];
    sandbox.run_with(&["distill"], &extract, "").ok();
    sandbox.run(&["remember", "the otter swims", "--title", "Otters"]).ok();
    sandbox.run(&["remember", "the walrus sleeps"]).ok();
    let last = rows(&sandbox, "select max(id) from observations");
    sandbox.run(&["forget", last.trim(), "--yes"]).ok();
    sandbox
}

/// The database dump without the identity of the log.
fn dump(sandbox: &Sandbox) -> String {
    let mut dump = Vec::new();
    store(sandbox).write_dump(&mut dump).unwrap();
    let dump = String::from_utf8(dump).unwrap();
    let (before, rest) = dump.split_once("-- checkpoint\n").unwrap();
    let (_, after) = rest.split_once('\n').unwrap();
    format!("{before}{after}")
}

/// The same, with events numbered instead of by position: a tombstone is shorter than its event.
fn dump_in_order(sandbox: &Sandbox) -> String {
    let places = rows(sandbox, "select seq from events order by seq");
    let name = |(order, place): (usize, &str)| (place.to_owned(), format!("#{order}"));
    let names: HashMap<String, String> = places.lines().enumerate().map(name).collect();
    let line = |line: &str| {
        let fields = line.split('|').map(|field| names.get(field).map_or(field, String::as_str));
        fields.collect::<Vec<_>>().join("|")
    };
    dump(sandbox).lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_export_imported_elsewhere_is_the_same_memory() {
    let sandbox = lived_in();
    let file = sandbox.home().join("all.jsonl");
    let file = file.to_str().unwrap();
    sandbox.run(&["export", "-o", file]).ok();
    assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let elsewhere = Sandbox::new();
    let report = import(&elsewhere, &[file]);
    assert_eq!(added(&report), sandbox.events().len() as u64);
    assert_eq!(dump(&elsewhere), dump(&sandbox));
    assert!(dump(&sandbox).contains("the otter swims"));
    assert_eq!(elsewhere.run(&["export"]).ok(), fs::read_to_string(file).unwrap());
    assert_eq!(added(&import(&elsewhere, &[file])), 0);
    assert_eq!(added(&import(&sandbox, &[file])), 0);
}

#[test]
fn tombstones_are_exported_with_their_memories() {
    let sandbox = lived_in();
    let first = rows(&sandbox, "select min(id) from observations");
    sandbox.run(&["forget", first.trim(), "--yes"]).ok();
    sandbox.run(&["compact", "--raw-older-than", "0d"]).ok();
    let before = dump_in_order(&sandbox);
    assert!(before.contains("the otter swims") && before.contains("/src/main.rs"), "{before}");
    let file = sandbox.home().join("all.jsonl");
    let file = file.to_str().unwrap();
    sandbox.run(&["export", "-o", file]).ok();
    let elsewhere = Sandbox::new();
    let report = import(&elsewhere, &[file]);
    assert_eq!(added(&report), sandbox.events().len() as u64);
    assert_eq!(dump_in_order(&elsewhere), before);
    assert_eq!(elsewhere.run(&["export"]).ok(), fs::read_to_string(file).unwrap());
    assert_eq!(added(&import(&elsewhere, &[file])), 0);
    let markdown = elsewhere.run(&["export", "--format", "markdown"]).ok();
    assert!(markdown.contains("the otter swims"), "{markdown}");
}

#[test]
fn part_of_it_can_be_exported() {
    let sandbox = lived_in();
    let lines = |arguments: &[&str]| -> Vec<Value> {
        let mut all = vec!["export"];
        all.extend(arguments);
        let printed = sandbox.run(&all).ok();
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let of_one = lines(&["--session", "one"]);
    assert!(of_one.len() >= 4, "{of_one:?}");
    assert!(of_one.iter().all(|line| line["envelope"]["session"] == "one"));
    assert!(lines(&[]).len() > of_one.len());
    assert_eq!(lines(&["--project", "home"]).len(), lines(&[]).len());
    assert_eq!(lines(&["--until", "2020-01-01"]), [""; 0].map(Value::from));
    let error = sandbox.run(&["export", "--session", "three"]).fails(2);
    assert!(error.contains("there is no recorded session `three`"), "{error}");
}

#[test]
fn memories_can_be_read_as_markdown() {
    let sandbox = lived_in();
    let text = sandbox.run(&["export", "--format", "markdown"]).ok();
    assert!(text.starts_with("# home\n\n## 20"), "{text}");
    assert!(text.contains("### Otters (note, ") && text.contains("the otter swims"), "{text}");
    assert!(text.contains("### Summary (") && !text.contains("walrus"), "{text}");
}

#[test]
fn bad_lines_are_reported_and_the_others_are_imported() {
    let sandbox = lived_in();
    let mut text = sandbox.run(&["export"]).ok();
    let count = text.lines().count() as u64;
    text.insert_str(0, "{\"envelope\": 1}\n\n");
    let elsewhere = Sandbox::new();
    elsewhere.write("all.jsonl", &text);
    let run = elsewhere.run(&["import", "--json", "all.jsonl"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("line 1: it is not an exported event"), "{run:?}");
    assert_eq!(added(&serde_json::from_str(&run.stdout).unwrap()), count);
    assert_eq!(dump(&elsewhere), dump(&sandbox));
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_behind() {
    let sandbox = lived_in();
    let error = sandbox.run(&["export", "-o", "nowhere/all.jsonl"]).fails(1);
    assert!(error.contains("nowhere/all.jsonl cannot be written"), "{error}");
    fs::create_dir(sandbox.home().join("folder")).unwrap();
    sandbox.run(&["export", "-o", "folder"]).fails(1);
    let left = fs::read_dir(sandbox.home()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().ends_with(".part")));
}
