//! What a hook leaves running.

use std::{fs, path::Path};

use serde_json::json;

use crate::sandbox::Sandbox;

/// The processes whose command line names this data directory's binary and `project`, by the environment.
fn projecting(home: &Path) -> usize {
    let is_ours = |pid: &str| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let (line, environment) = (read("cmdline"), read("environ"));
        let home = format!("HOME={}", home.display());
        line.windows(12).any(|part| part == b"--background")
            && environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let pids = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    pids.filter(|pid| pid.bytes().all(|digit| digit.is_ascii_digit()) && is_ours(pid)).count()
}

/// Waits for what must come, by looking; a test that waits for nothing fails by its runner's limit.
fn until(mut holds: impl FnMut() -> bool) {
    while !holds() {
        std::thread::yield_now();
    }
}

#[test]
fn a_session_becomes_memory_without_anybody_asking_for_it() {
    let sandbox = Sandbox::new();
    let cwd = sandbox.home();
    let variables = [("CLAUDE_MEM_WORKER_AUTOSTART", "true"), ("CLAUDE_MEM_PROVIDER", "extract")];
    let send = |hook: &str, event: &str, fields: serde_json::Value| {
        let mut sent = json!({"session_id": "s1", "hook_event_name": event, "cwd": cwd});
        sent.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sandbox.hook_with(hook, &variables, sent.to_string());
    };
    send("new", "UserPromptSubmit", json!({"prompt": "Fix the rounding of the cart total"}));
    let edit = json!({"tool_name": "Edit", "tool_use_id": "t1",
        "tool_input": {"file_path": cwd.join("cart.rs"), "old_string": "round(a)", "new_string": "a"},
        "tool_response": {"filePath": cwd.join("cart.rs")}});
    send("save", "PostToolUse", edit);
    send(
        "summary",
        "Stop",
        json!({"last_assistant_message": "The total is now rounded once, at the end."}),
    );
    until(|| {
        let shown = sandbox.run(&["context", "--json"]);
        shown.stdout.contains("rounding of the cart total")
    });
    // It was a guest: it goes when it is done.
    until(|| projecting(&sandbox.home()) == 0);
    let lock = fs::File::open(sandbox.data().join("ask.lock")).unwrap();
    lock.try_lock().unwrap();
}

#[test]
fn the_hook_does_not_wait_and_its_pipes_close_with_it() {
    let sandbox = Sandbox::new();
    // `hook` returns when stdout and stderr are closed by everybody who holds them: a child that had
    // inherited them would keep it here until that child is done, and this one waits for its lock.
    fs::create_dir_all(sandbox.data()).unwrap();
    let sent = json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": sandbox.home(),
        "last_assistant_message": "done"});
    let variables = [("CLAUDE_MEM_WORKER_AUTOSTART", "true"), ("CLAUDE_MEM_PROVIDER", "extract")];
    for _ in 0..5 {
        sandbox.hook_with("summary", &variables, sent.to_string());
    }
    until(|| projecting(&sandbox.home()) == 0);
    assert_eq!(
        sandbox.events().iter().filter(|event| event["kind"] == "SummaryRequested").count(),
        5
    );
}
