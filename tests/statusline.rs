//! `claude-mem statusline`: one line for the client's status line.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::{hook_session::HookSession, sandbox::Sandbox};

const RULES: &[(&str, &str)] = &[("CLAUDE_MEM_PROVIDER", "extract")];

/// The status line for a session in this folder, as Claude Code requests it.
fn line(sandbox: &Sandbox, session: &str, folder: &Path) -> String {
    let input = json!({
        "session_id": session,
        "transcript_path": "/nowhere",
        "cwd": folder.join("deeper"),
        "model": {"id": "m", "display_name": "M"},
        "workspace": {"current_dir": folder.join("deeper"), "project_dir": folder},
        "version": "2.1.325",
    });
    let run = sandbox.run_with(&["statusline"], RULES, input.to_string());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    run.stdout
}

fn turn(sandbox: &Sandbox, session: &str, folder: &Path) {
    let session_id = format!("t-{session}");
    let session = HookSession::new(sandbox, session).in_folder(folder).with(RULES);
    session.prompt("We use integers for cents in RoundingMode, because floats were off by one.");
    session.edit(&session_id, "cart.rs", "f64", "i64");
    session.stop("RoundingMode now counts cents as integers, because floats were off.");
}

fn shop(sandbox: &Sandbox) -> std::path::PathBuf {
    let folder = sandbox.home().join("shop");
    fs::create_dir(&folder).unwrap();
    folder
}

fn number_before(line: &str, word: &str) -> usize {
    let part = line.trim().split(" · ").find(|part| part.ends_with(word)).unwrap_or("0 x");
    part.trim_start_matches("claude-mem ").split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn the_line_counts_memories_pending_events_and_received_memories() {
    let sandbox = Sandbox::new();
    let folder = shop(&sandbox);
    assert_eq!(line(&sandbox, "a", &folder), "claude-mem 0 memories\n");
    assert!(!sandbox.data().exists(), "it creates nothing");

    // Without a worker nothing is indexed: the events are counted in the log.
    turn(&sandbox, "a", &folder);
    assert_eq!(line(&sandbox, "a", &folder), "claude-mem 0 memories · 2 pending\n");

    sandbox.run_with(&["distill"], RULES, "").ok();
    let known = sandbox.run(&["search", "--json", "--kind", "observation"]).ok().lines().count();
    assert!(known > 0);
    let shown = line(&sandbox, "a", &folder);
    assert_eq!(number_before(&shown, "memories").max(number_before(&shown, "memory")), known);
    assert!(!shown.contains("pending") && !shown.contains("given"), "{shown}");

    let session = HookSession::new(&sandbox, "b").in_folder(&folder).with(RULES);
    session.prompt("Why does RoundingMode count cents as integers?");
    let given: usize = sandbox
        .events()
        .iter()
        .filter(|event| event["kind"] == "MemoryInjected")
        .map(|event| event["event"]["observations"].as_array().unwrap().len())
        .sum();
    assert!(given > 0, "the prompt brought no memory");
    assert_eq!(number_before(&line(&sandbox, "b", &folder), "given"), given);
    assert_eq!(number_before(&line(&sandbox, "a", &folder), "given"), 0);

    let other = sandbox.home().join("other");
    fs::create_dir(&other).unwrap();
    assert!(line(&sandbox, "c", &other).starts_with("claude-mem 0 memories"));
}

#[test]
fn it_names_one_problem() {
    let sandbox = Sandbox::new();
    let folder = shop(&sandbox);
    turn(&sandbox, "a", &folder);
    let off = [("CLAUDE_MEM_ENABLED", "false")];
    let input = json!({"session_id": "a", "cwd": folder}).to_string();
    let shown = sandbox.run_with(&["statusline"], &off, input).ok();
    assert_eq!(shown, "claude-mem 0 memories · 2 pending · not recorded\n");
}

#[test]
fn nothing_that_is_wrong_is_more_than_an_empty_line() {
    let sandbox = Sandbox::new();
    let folder = shop(&sandbox);
    turn(&sandbox, "a", &folder);
    sandbox.run_with(&["distill"], RULES, "").ok();
    for input in ["{", "7", "{\"session_id\":7}", "\u{1b}[31m"] {
        let run = sandbox.run_with(&["statusline"], RULES, input);
        assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "\n", ""), "{input}");
    }
    fs::write(sandbox.data().join("memory.db"), "not a database").unwrap();
    let run = sandbox.run_with(&["statusline"], RULES, json!({"cwd": folder}).to_string());
    assert_eq!((run.code, run.stdout.as_str(), run.stderr.as_str()), (0, "\n", ""));
    let damaged = fs::read_to_string(sandbox.data().join("memory.db")).unwrap();
    assert_eq!(damaged, "not a database", "it repairs nothing");
}

#[test]
fn without_input_the_current_directory_counts() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["statusline"]).ok(), "claude-mem 0 memories\n");
    assert!(sandbox.run(&["statusline", "--help"]).ok().contains("install --statusline"));
}

#[test]
fn install_sets_a_status_line_only_on_request_and_if_there_is_none() {
    let sandbox = Sandbox::new();
    let settings = ".claude/settings.json";
    sandbox.write(settings, "{}\n");
    let of_settings = || {
        let settings: Value = serde_json::from_str(&sandbox.read(settings)).unwrap();
        settings["statusLine"].clone()
    };
    sandbox.run(&["install"]).ok();
    assert_eq!(of_settings(), Value::Null);
    sandbox.run(&["install", "--statusline"]).ok();
    let command = of_settings()["command"].as_str().unwrap().to_owned();
    assert!(command.ends_with("claude-mem\" statusline"), "{command}");
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(settings), "{}\n");

    let theirs = "{\"statusLine\": {\"type\": \"command\", \"command\": \"date\"}}\n";
    sandbox.write(settings, theirs);
    let output = sandbox.run(&["install", "--statusline"]).ok();
    assert!(output.contains("you have another status line, which is kept"), "{output}");
    assert_eq!(of_settings()["command"], "date");
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(settings), theirs);
}
