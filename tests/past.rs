//! A log whose history differs from that of memory.db: power loss, an older copy, another log, one
//! directory on two machines.

use std::{collections::BTreeSet, fs, path::PathBuf, thread};

use claude_mem_projections::Store;
use serde_json::json;

use crate::{
    folders::copy_folder,
    hook_session::HookSession,
    sandbox::Sandbox,
    serving::{Lines, Serving, until},
    ship::{EXTRACT, work},
};

fn prompt(sandbox: &Sandbox, text: &str) {
    HookSession::new(sandbox, "z").prompt(text);
}

fn active(sandbox: &Sandbox) -> PathBuf {
    sandbox.data().join("log/active.log")
}

/// Cuts off the end of the log, as a power loss does with unsynced data.
fn cut(sandbox: &Sandbox, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(active(sandbox)).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

/// The ids of the events in the log, each only once.
fn log_ids(sandbox: &Sandbox) -> BTreeSet<String> {
    let simple = |id: &str| id.replace('-', "").to_uppercase();
    let mut events = sandbox.events();
    // The rest of a truncated record is not an event.
    events.retain(|event| event["reason"].is_null());
    let ids: BTreeSet<String> =
        events.iter().map(|event| simple(event["id"].as_str().unwrap())).collect();
    assert_eq!(ids.len(), events.len(), "an event is in the log twice");
    ids
}

/// The tables contain the events of the log, each once.
#[track_caller]
fn assert_equal(sandbox: &Sandbox) {
    let store = Store::open_read_only(&sandbox.data().join("memory.db")).unwrap().unwrap();
    let in_tables = store.dump("select hex(event) from events").unwrap();
    let lines = in_tables.lines().count();
    let in_tables: BTreeSet<String> = in_tables.lines().map(str::to_owned).collect();
    assert_eq!(in_tables.len(), lines, "an event is in the tables twice");
    assert_eq!(in_tables, log_ids(sandbox));
}

/// Status and doctor report the change, and no other problem.
#[track_caller]
fn assert_reported(sandbox: &Sandbox, what: &str) {
    for command in ["status", "doctor"] {
        let run = sandbox.run(&[command]);
        assert_eq!(run.stdout.matches(what).count(), 1, "{run:?}");
    }
    sandbox.run(&["verify"]).ok();
}

const AHEAD: &str = "memory.db was rebuilt because it was ahead of the log";
const REPLACED: &str = "memory.db was rebuilt because the log was replaced";

#[test]
fn events_after_a_power_loss_are_found_and_the_loss_is_reported() {
    for bytes in [1, 200, 700] {
        let sandbox = Sandbox::new();
        work(&sandbox, "first", 4);
        sandbox.run(&["search", "x"]).ok();
        assert_equal(&sandbox);
        cut(&sandbox, bytes);
        let status = sandbox.run(&["status"]).ok();
        assert!(status.contains("memory.db has events that the log does not"), "{status}");
        prompt(&sandbox, "zebra crossing");
        sandbox.run_with(&["distill"], &EXTRACT, "").ok();
        let found = sandbox.run(&["search", "zebra"]).ok();
        assert!(found.contains("zebra crossing"), "{bytes}: {found}");
        assert_equal(&sandbox);
        // What was cut was never acknowledged, so nothing is missing from an export.
        assert_eq!(sandbox.run(&["export"]).stderr, "");
        assert_reported(&sandbox, AHEAD);
    }
}

#[test]
fn a_record_over_the_place_of_the_last_indexed_one_is_found() {
    const HEADER_BYTES: u64 = 64;
    let sandbox = Sandbox::new();
    (1..=5).for_each(|number| prompt(&sandbox, &format!("prompt {number}")));
    sandbox.run(&["search", "x"]);
    let (data, backup) = (sandbox.data(), sandbox.home().join("backup"));
    copy_folder(&data, &backup);
    let record = (fs::metadata(active(&sandbox)).unwrap().len() - HEADER_BYTES) / 5;
    // Longer than two records, and hard to compress.
    let letter = |number: u64| char::from(b'a' + (number * number * 7919 % 10_007 % 26) as u8);
    let long: String = (0..600).map(letter).collect();
    for bytes in (1..record).step_by(12) {
        fs::remove_dir_all(&data).unwrap();
        copy_folder(&backup, &data);
        cut(&sandbox, record + bytes);
        prompt(&sandbox, &format!("zebra {long}"));
        let found = sandbox.run(&["search", "zebra"]);
        assert!(found.stdout.contains("zebra"), "{bytes}: {found:?}");
        assert_equal(&sandbox);
    }
}

#[test]
fn a_worker_detects_an_earlier_power_loss_and_continues() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    work(&sandbox, "first", 2);
    until(|| {
        let health = Lines::open(&sandbox).ask(&json!({"type": "health"}));
        health["unfolded"]["events"] == 0 && health["unanswered"]["events"] == 0
    });
    drop(serving);
    cut(&sandbox, 300);
    prompt(&sandbox, "zebra crossing");
    let _serving = Serving::start(&sandbox, &[]);
    until(|| sandbox.run(&["search", "zebra"]).ok().contains("zebra crossing"));
    until(|| sandbox.run(&["status"]).ok().contains(AHEAD));
}

#[test]
fn an_older_log_under_a_newer_database_loses_and_doubles_nothing() {
    for added in [1, 60] {
        let sandbox = Sandbox::new();
        work(&sandbox, "first", 2);
        sandbox.run(&["search", "x"]).ok();
        let (log, backup) = (sandbox.data().join("log"), sandbox.home().join("backup"));
        copy_folder(&log, &backup);
        work(&sandbox, "second", 4);
        sandbox.run(&["search", "x"]).ok();
        fs::remove_dir_all(&log).unwrap();
        copy_folder(&backup, &log);
        for number in 0..added {
            prompt(&sandbox, &format!("zebra number {number}"));
        }
        sandbox.run_with(&["distill"], &EXTRACT, "").ok();
        for command in [&["search", "zebra"][..], &["context"], &["export"]] {
            sandbox.run(command).ok();
        }
        let found = sandbox.run(&["search", "zebra", "--json", "--limit", "100"]).ok();
        assert_eq!(found.lines().count(), added, "{found}");
        assert_equal(&sandbox);
        assert_reported(&sandbox, AHEAD);
    }
}

#[test]
fn a_replaced_log_directory_is_reported_and_folded() {
    let (sandbox, other) = (Sandbox::new(), Sandbox::new());
    work(&sandbox, "first", 3);
    sandbox.run(&["search", "x"]).ok();
    prompt(&other, "zebra crossing");
    fs::remove_dir_all(sandbox.data().join("log")).unwrap();
    copy_folder(&other.data().join("log"), &sandbox.data().join("log"));
    let found = sandbox.run(&["search", "zebra"]).ok();
    assert!(found.contains("zebra crossing"), "{found}");
    assert_equal(&sandbox);
    assert_reported(&sandbox, REPLACED);
}

#[test]
fn one_data_directory_on_two_machines_that_ship_to_one_place_loses_and_doubles_nothing() {
    let (one, two) = (Sandbox::new(), Sandbox::new());
    work(&one, "first", 2);
    one.run_with(&["distill"], &EXTRACT, "").ok();
    copy_folder(&one.data(), &two.data());
    work(&one, "of one", 2);
    work(&two, "of two", 3);
    let remote = one.home().join("remote");
    let ship = ["ship", "--to", remote.to_str().unwrap()];
    let repair = ["verify", "--remote", "--from", remote.to_str().unwrap(), "--repair"];
    one.run(&ship).ok();
    let error = two.run(&ship).fails(1);
    assert!(error.contains("holds another history of this log"), "{error}");
    assert!(error.contains("neither side loses events"), "{error}");
    let (of_one, of_two) = (log_ids(&one), log_ids(&two));
    assert!(!of_one.is_subset(&of_two) && !of_two.is_subset(&of_one));
    // Each imports the missing events: nothing is lost, nothing is duplicated.
    two.run(&repair).ok();
    assert_eq!(log_ids(&two), &of_one | &of_two);
    let error = one.run(&ship).fails(1);
    assert!(error.contains("holds another history of this log"), "{error}");
    one.run(&repair).ok();
    assert_eq!(log_ids(&one), &of_one | &of_two);
    for sandbox in [&one, &two] {
        sandbox.run_with(&["distill"], &EXTRACT, "").ok();
        assert_equal(sandbox);
    }
}

#[test]
fn a_storm_of_socket_events_ends_with_log_and_tables_equal() {
    const CLIENTS: usize = 8;
    const BATCHES: usize = 20;
    const BATCH: usize = 64;
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    let send = |client: usize| {
        let mut lines = Lines::open(&sandbox);
        for batch in 0..BATCHES {
            let prompt = |number: usize| {
                // Some are longer than several memory pages, which makes a partial read likely.
                let repeats = if number % 32 == 7 { 1000 } else { 1 + number % 20 };
                let text = format!("prompt {batch}.{number} of {client} ").repeat(repeats);
                let session = format!("storm-{client}-{batch}");
                let line = json!({"type": "prompt", "session_id": session, "prompt": text});
                format!("{line}\n")
            };
            lines.say(&(0..BATCH).map(prompt).collect::<String>());
            for _ in 0..BATCH {
                assert_eq!(lines.answer().unwrap()["status"], "recorded");
            }
        }
    };
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || send(client));
        }
    });
    let mut lines = Lines::open(&sandbox);
    until(|| lines.ask(&json!({"type": "health"}))["unfolded"]["events"] == 0);
    drop(serving);
    sandbox.run(&["index"]).ok();
    let prompts = sandbox.events().into_iter().filter(|it| it["kind"] == "PromptSubmitted");
    assert_eq!(prompts.count(), CLIENTS * BATCHES * BATCH);
    assert_equal(&sandbox);
}
