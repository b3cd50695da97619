//! The ranking of memories for a prompt: by the worker if it responds in time, else by the hook.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixListener,
    thread,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{
    context::Past,
    serving::{Lines, Serving},
};

const PROMPT: &str = "why did we move off Postgres, and when do carts expire?";

fn past() -> Past {
    let mut past = Past::new();
    past.observe("one", "decision", "Moved off Postgres to SQLite for simple backups", "db.rs");
    for title in ["Prices are in cents", "Images shrink on upload", "Carts expire at night"] {
        past.observe("one", "discovery", title, "cart.rs");
    }
    past.sandbox.run(&["distill"]).ok();
    past
}

#[test]
fn a_prompt_is_given_the_same_without_a_worker_with_one_and_with_one_that_hangs() {
    let past = past();
    let alone = past.prompt("alone", PROMPT).unwrap();
    assert!(alone.contains("off Postgres") && alone.contains("Carts expire"), "{alone}");
    let worker = Serving::start(&past.sandbox, &[]);
    let root = past.root();
    let asked = json!({"type": "recall", "prompt": PROMPT, "project": root, "root": root,
        "session": "s", "until_us": i64::MAX, "limit": 9});
    let answer = Lines::open(&past.sandbox).ask(&asked);
    assert_eq!(answer["observations"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(past.prompt("with", PROMPT).unwrap(), alone);
    let pid = Pid::from_child(&worker.child);
    kill_process(pid, Signal::STOP).unwrap();
    assert_eq!(past.prompt("hanging", PROMPT).unwrap(), alone);
}

/// Plays a worker that responds to one request, and returns the request.
fn answering(past: &Past, answer: &'static str) -> thread::JoinHandle<Value> {
    let path = past.sandbox.data().join("worker.sock");
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(path).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = String::new();
        BufReader::new(stream.try_clone().unwrap()).read_line(&mut line).unwrap();
        // The hook may have stopped waiting.
        let _ = writeln!(stream, "{answer}");
        serde_json::from_str(&line).unwrap()
    })
}

#[test]
fn the_ranking_of_the_worker_replaces_that_of_the_hook() {
    let past = past();
    let alone = past.prompt("alone", PROMPT).unwrap();
    // On a busy machine a response may be late, and then the hook's own ranking counts.
    let given = (0..100).find_map(|number| {
        let worker = answering(&past, r#"{"observations":[2]}"#);
        let given = past.prompt(&format!("two-{number}"), PROMPT).unwrap();
        let asked = worker.join().unwrap();
        assert_eq!((&asked["prompt"], &asked["project"]), (&json!(PROMPT), &json!(past.root())));
        (given != alone).then_some(given)
    });
    let given = given.expect("no response counted");
    assert!(given.contains("in cents") && !given.contains("Postgres"), "{given}");
    let worker = answering(&past, r#"{"status":"error","error":"there is no type `recall`"}"#);
    assert_eq!(past.prompt("older", PROMPT).unwrap(), alone);
    worker.join().unwrap();
}
