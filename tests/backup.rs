//! The backup of the log on this machine, and the repair from it.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use claude_mem_log::{Appender, Id, Options, Record};
use serde_json::Value;

use crate::{
    folders::{files_below, files_with},
    model::dump,
    sandbox::Sandbox,
    secrets::assert_nowhere,
    serving::{Serving, until},
    ship::{remembered, work},
};

/// Without compression, a text can be searched for in the objects.
const PLAIN: (&str, &str) = ("CLAUDE_MEM_SHIP_COMPRESS", "false");

fn status(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.run(&["status", "--json"]).ok()).unwrap()
}

fn backup(sandbox: &Sandbox) -> PathBuf {
    sandbox.data().join("backups/log")
}

/// Runs a worker until the backup contains all events.
fn back_up(sandbox: &Sandbox) {
    let _worker = Serving::start(sandbox, &[PLAIN]);
    until_backed_up(sandbox);
}

/// The same, until the daily check is done, too.
fn back_up_and_check(sandbox: &Sandbox) {
    let _worker = Serving::start(sandbox, &[PLAIN]);
    until_backed_up(sandbox);
    until(|| status(sandbox)["repair"]["checked_at"].is_string());
}

fn until_backed_up(sandbox: &Sandbox) {
    until(|| {
        let status = status(sandbox);
        status["backup"]["log_bytes"] == status["disk"]["log_bytes"]
    });
}

fn is_repaired(sandbox: &Sandbox) -> bool {
    status(sandbox)["repair"]["repaired_at"].is_string()
}

/// Flips a bit of the text `turn 2`, which is in one event of the log.
fn damage(sandbox: &Sandbox) {
    let log = sandbox.data().join("log/active.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(6).position(|window| window == b"turn 2").unwrap();
    bytes[at] ^= 1;
    fs::write(&log, &bytes).unwrap();
    sandbox.run(&["verify"]).fails(1);
}

fn assert_damage_reported(sandbox: &Sandbox) {
    let output = sandbox.run(&["status"]).ok();
    let line = output.lines().find(|line| line.trim_start().starts_with("repaired")).unwrap();
    assert!(line.contains("was repaired from") && line.contains("backups/log"), "{output}");
}

#[test]
fn a_log_that_is_not_shipped_is_backed_up_and_restored_from_the_backup() {
    let sandbox = remembered();
    back_up(&sandbox);
    let machine = Sandbox::new();
    machine.run(&["restore", "--from", backup(&sandbox).to_str().unwrap()]).ok();
    assert_eq!(machine.events(), sandbox.events());
    assert!(sandbox.run(&["status"]).ok().contains("of log in"));
    sandbox.run(&["verify", "--remote", "--from", backup(&sandbox).to_str().unwrap()]).ok();
}

#[test]
fn the_backup_is_for_its_owner_alone() {
    let sandbox = remembered();
    back_up(&sandbox);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let all = files_below(&sandbox.data().join("backups"));
    assert!(all.len() > 3);
    for file in all {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
        let dirs = file.ancestors().skip(1).take_while(|dir| dir.starts_with(sandbox.data()));
        assert!(dirs.into_iter().all(|dir| mode(dir) == 0o700), "{}", file.display());
    }
}

#[test]
fn the_backup_stays_within_its_limit() {
    let sandbox = remembered();
    let small = Options { segment_bytes_max: 256 << 10, ..Options::default() };
    let mut log = Appender::open(&sandbox.data().join("log"), small).unwrap();
    let mut random = 1_u64;
    for number in 1..=40 {
        let id = Id::new(number, number);
        // Long payloads are compressed, if that makes them smaller.
        let payload: Vec<u8> = std::iter::repeat_with(|| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (random >> 56) as u8
        })
        .take(64 << 10)
        .collect();
        log.append(&Record { id, kind: 999, schema: 1, codec: 0, payload: &payload }).unwrap();
    }
    let _worker = Serving::start(&sandbox, &[PLAIN, ("CLAUDE_MEM_BACKUP_MB", "1")]);
    until(|| status(&sandbox)["backup"]["copied_at"].is_string());
    let bytes: u64 =
        files_below(&backup(&sandbox)).iter().map(|path| fs::metadata(path).unwrap().len()).sum();
    assert!((512 << 10..=1 << 20).contains(&bytes), "{bytes}");
    let machine = Sandbox::new();
    machine.run(&["restore", "--from", backup(&sandbox).to_str().unwrap()]).ok();
    let ids = |sandbox: &Sandbox| -> Vec<Value> {
        let events = sandbox.events().into_iter().filter(|event| event["kind"] != "Damage");
        events.map(|event| event["id"].clone()).collect()
    };
    let (some, all) = (ids(&machine), ids(&sandbox));
    assert!(some.len() > 8 && some.len() < 40);
    assert_eq!(some, all[all.len() - some.len()..], "the newest");
}

#[test]
fn damage_that_the_daily_check_finds_is_repaired_from_the_backup() {
    let sandbox = remembered();
    back_up(&sandbox);
    let before = (sandbox.events(), dump(&sandbox.data()));
    damage(&sandbox);
    let _worker = Serving::start(&sandbox, &[("CLAUDE_MEM_NOW", "2100-01-01T12:00:00Z"), PLAIN]);
    until(|| is_repaired(&sandbox));
    sandbox.run(&["verify"]).ok();
    assert_eq!((sandbox.events(), dump(&sandbox.data())), before);
    assert_damage_reported(&sandbox);
}

#[test]
fn damage_found_by_the_fold_is_repaired_from_the_backup_and_folded() {
    let sandbox = remembered();
    back_up_and_check(&sandbox);
    let before = (sandbox.events(), dump(&sandbox.data()));
    damage(&sandbox);
    for name in ["memory.db", "memory.db-wal", "memory.db-shm"] {
        let _ = fs::remove_file(sandbox.data().join(name));
    }
    let _worker = Serving::start(&sandbox, &[PLAIN]);
    until(|| is_repaired(&sandbox));
    sandbox.run(&["verify"]).ok();
    assert_eq!((sandbox.events(), dump(&sandbox.data())), before);
    assert_damage_reported(&sandbox);
}

#[test]
fn a_log_that_was_rolled_back_gets_the_events_of_the_backup() {
    let sandbox = remembered();
    let log = sandbox.data().join("log/active.log");
    let older = fs::read(&log).unwrap();
    work(&sandbox, "second", 2);
    back_up_and_check(&sandbox);
    let all = sandbox.events().len();
    fs::write(&log, older).unwrap();
    assert!(sandbox.events().len() < all);
    let _worker = Serving::start(&sandbox, &[PLAIN]);
    until(|| is_repaired(&sandbox));
    assert_eq!(sandbox.events().len(), all);
    until(|| status(&sandbox)["backup"]["error"].is_null());
}

#[test]
fn forgotten_events_are_erased_from_the_backup_too() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "the walrus sleeps at noon"]).ok();
    sandbox.run(&["remember", "the otter wakes at dawn"]).ok();
    back_up(&sandbox);
    assert!(!files_with(&backup(&sandbox), "walrus").is_empty());
    let forget = |text: &str, variables: &[(&str, &str)]| {
        sandbox.run_with(&["forget", "--text", text, "--now", "--yes"], variables, "").ok();
    };
    forget("walrus", &[PLAIN]);
    assert_nowhere(&sandbox, &["walrus"]);
    assert!(!files_with(&backup(&sandbox), "otter").is_empty());
    let machine = Sandbox::new();
    machine.run(&["restore", "--from", backup(&sandbox).to_str().unwrap()]).ok();
    assert_eq!(machine.events(), sandbox.events());
    // Forgetting deletes a backup that is switched off.
    forget("otter", &[("CLAUDE_MEM_BACKUP_MB", "0")]);
    assert_nowhere(&sandbox, &["otter"]);
    assert!(!backup(&sandbox).exists());
}

#[test]
fn a_secret_that_is_redacted_later_is_gone_from_the_backup_too() {
    let sandbox = Sandbox::new();
    let secret = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let off = [("CLAUDE_MEM_REDACT_SECRETS", "false")];
    sandbox.run_with(&["remember", &format!("the token is {secret}")], &off, "").ok();
    back_up(&sandbox);
    assert!(!files_with(&backup(&sandbox), &secret).is_empty());
    sandbox.run_with(&["redact", "--yes"], &[PLAIN], "").ok();
    assert_nowhere(&sandbox, &[&secret]);
}
