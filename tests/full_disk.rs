//! A disk that fills up during an operation: a clear error, nothing lost, nothing half-done, and
//! normal operation once there is space again.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_tools::bucket::{Bucket, Faults};
use serde_json::json;

use crate::{
    database,
    model::dump,
    sandbox::{Sandbox, count_as_skipped},
    serving::{Serving, until},
};

/// The data directory of a sandbox, on a small disk of its own. Where that is not possible, the
/// check counts as skipped.
struct SmallDisk {
    sandbox: Sandbox,
}

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let sandbox = Sandbox::new();
        fs::create_dir(sandbox.data()).unwrap();
        let size = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(sandbox.data())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { sandbox }),
            refused => {
                count_as_skipped(&format!("mounting is refused: {refused:?}"));
                None
            }
        }
    }

    fn filler(&self) -> PathBuf {
        self.sandbox.data().join("filler")
    }

    /// Fills the disk up to this many bytes.
    fn fill_but(&self, left: u64) {
        let room = rustix::fs::statvfs(self.sandbox.data()).unwrap();
        let free = room.f_bavail * room.f_frsize;
        let file = fs::File::create(self.filler()).unwrap();
        rustix::fs::fallocate(
            &file,
            rustix::fs::FallocateFlags::empty(),
            0,
            free.saturating_sub(left).max(1),
        )
        .unwrap();
    }

    fn remount(&self, mode: &str) {
        let mode = format!("remount,{mode}");
        let mounted = Command::new("mount").args(["-o", &mode]).arg(self.sandbox.data()).status();
        assert!(mounted.unwrap().success());
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(self.sandbox.data()).status();
        assert!(unmounted.unwrap().success());
    }
}

/// Turns of this many kilobytes that hardly compress.
fn work(sandbox: &Sandbox, session: &str, turns: u64, kilobytes: u64) {
    for turn in 0..turns {
        let event = |name: &str| json!({"session_id": session, "cwd": sandbox.home(), "hook_event_name": name});
        let mut prompt = event("UserPromptSubmit");
        prompt["prompt"] = format!("{session} turn {turn}").into();
        sandbox.hook("new", prompt.to_string());
        let noise: String = (0..kilobytes * 64)
            .map(|n| format!("{:016x}", (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15 ^ (turn << 40))))
            .collect();
        let mut tool = event("PostToolUse");
        tool["tool_name"] = "Bash".into();
        tool["tool_use_id"] = format!("{session}-{turn}").into();
        tool["tool_input"] = json!({"command": "cargo test"});
        tool["tool_response"] = json!({"stdout": noise});
        sandbox.hook("save", tool.to_string());
        let mut stop = event("Stop");
        stop["last_assistant_message"] = "done".into();
        sandbox.hook("summary", stop.to_string());
    }
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
}

fn leftovers(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(".tmp") || name.ends_with(".part")).collect()
}

#[test]
fn a_compaction_that_finds_no_room_loses_nothing_and_is_done_later() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    work(sandbox, "kept", 6, 300);
    work(sandbox, "odd", 1, 10);
    sandbox.run(&["forget", "--session", "odd", "--yes"]).ok();
    let events = sandbox.events();
    let kept: Vec<_> = events.iter().filter(|event| event["session"] == "kept").collect();
    assert!(kept.len() >= 18, "{}", kept.len());
    // Enough space for the `LogCompacted` event and for the tables, too little for a new segment.
    disk.fill_but(400 << 10);
    let error = sandbox.run(&["compact"]).fails(1);
    assert!(error.contains("no space left to write"), "{error}");
    assert!(error.contains("nothing was lost") && error.contains("free space"), "{error}");
    assert_eq!(leftovers(&sandbox.data().join("log")), [""; 0]);
    let now = sandbox.events();
    assert_eq!(now[..events.len()], events[..], "every event is there, the forgotten ones too");
    assert_eq!(sandbox.run(&["verify"]).code, 0);
    assert!(sandbox.run(&["search", "kept", "--kind", "prompt"]).ok().contains("kept"));
    disk.make_room();
    sandbox.run(&["compact"]).ok();
    assert_eq!(sandbox.run(&["verify"]).code, 0);
    let after = sandbox.events();
    let kept_after: Vec<_> = after.iter().filter(|event| event["session"] == "kept").collect();
    assert_eq!(kept_after, kept);
    let text = serde_json::to_string(&after).unwrap();
    assert!(!text.contains("odd turn"), "what was forgotten is gone now");
}

#[test]
fn a_restore_that_finds_no_room_leaves_nothing_in_use_and_is_done_later() {
    let source = Sandbox::new();
    work(&source, "kept", 6, 300);
    let bucket = Bucket::start().unwrap();
    let variables = bucket.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    source.run_with(&["ship", "--to", "s3://memories"], &variables, "").ok();
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    // There is space when it starts. While it waits for the first part, the disk fills up.
    bucket.inject(Faults { together: Some(("/seg/".into(), usize::MAX)), ..Faults::default() });
    let mut command = sandbox.command(&["restore", "--from", "s3://memories"]);
    command.envs(variables.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    until(|| bucket.waiting() > 0);
    disk.fill_but(200 << 10);
    bucket.inject(Faults::default());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("no storage space") || error.contains("No space left"), "{error}");
    assert!(error.contains("free disk space, then run it again"), "{error}");
    assert!(!sandbox.data().join("log").exists() && !sandbox.data().join("memory.db").exists());
    // It does not start if there is visibly too little space.
    let error = sandbox.run_with(&["restore", "--from", "s3://memories"], &variables, "").fails(1);
    assert!(error.contains("free disk space, then run it again"), "{error}");
    disk.make_room();
    sandbox.run_with(&["restore", "--from", "s3://memories"], &variables, "").ok();
    assert_eq!(dump(&sandbox.data()), dump(&source.data()));
    assert!(!sandbox.data().join("restoring").exists());
}

#[test]
fn a_restore_with_space_for_the_log_only_reports_it_and_the_database_is_built_later() {
    let source = Sandbox::new();
    work(&source, "kept", 6, 300);
    let place = source.home().join("remote");
    let place = place.to_str().unwrap();
    let printed = source.run(&["ship", "--to", place, "--json"]).ok();
    let printed: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    disk.fill_but(printed["log_bytes"].as_u64().unwrap() + (150 << 10));
    let error = sandbox.run(&["restore", "--from", place]).fails(1);
    assert!(
        error.contains("the log is restored") && error.contains("claude-mem replay`"),
        "{error}"
    );
    disk.make_room();
    sandbox.run(&["replay", "--offline"]).ok();
    assert_eq!(dump(&sandbox.data()), dump(&source.data()));
}

#[test]
fn a_full_disk_can_be_read() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    database::work(sandbox, "s1", "walrus");
    disk.fill_but(0);
    let printed = database::assert_readable(sandbox, "walrus");
    assert!(printed.contains("memory.db cannot be written"), "{printed}");
    assert!(database::begin_session(sandbox).contains("walrus"));
    let error = sandbox.run(&["remember", "there is no room for this"]).fails(1);
    assert!(error.contains("space") || error.contains("full"), "{error}");
    disk.make_room();
    assert_eq!(database::assert_readable(sandbox, "walrus"), "");
}

#[test]
fn a_worker_answers_while_its_disk_is_full() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    database::work(sandbox, "s1", "walrus");
    let _serving = Serving::start(sandbox, &[]);
    disk.fill_but(0);
    database::assert_readable(sandbox, "walrus");
    assert!(database::begin_session(sandbox).contains("walrus"));
}

#[test]
fn a_read_only_disk_can_be_read() {
    let Some(disk) = SmallDisk::mount("24m") else { return };
    let sandbox = &disk.sandbox;
    database::work(sandbox, "s1", "walrus");
    disk.remount("ro");
    let printed = database::assert_readable(sandbox, "walrus");
    assert!(printed.contains("memory.db cannot be written"), "{printed}");
    assert!(database::begin_session(sandbox).contains("walrus"));
    disk.remount("rw");
    // A process was killed with rows in the write-ahead log, and the shared-memory file was
    // deleted.
    let serving = Serving::start(sandbox, &[]);
    database::work(sandbox, "s2", "narwhal");
    serving.kill();
    fs::remove_file(sandbox.data().join("memory.db-shm")).unwrap();
    disk.remount("ro");
    database::assert_readable(sandbox, "narwhal");
    // Without a database, commands read the log.
    disk.remount("rw");
    for suffix in ["", "-wal"] {
        let _ = fs::remove_file(sandbox.data().join(format!("memory.db{suffix}")));
    }
    disk.remount("ro");
    let printed = database::assert_readable(sandbox, "walrus");
    assert!(printed.contains("from the log alone"), "{printed}");
    disk.remount("rw");
}

#[test]
fn events_dropped_by_a_full_disk_are_counted_and_reported_until_acknowledged() {
    let Some(disk) = SmallDisk::mount("12m") else { return };
    let sandbox = &disk.sandbox;
    let prompt = |number: usize| {
        let text = format!("{number} {}", "unlikely to be small ".repeat(50 + number));
        let prompt = json!({"session_id": "s1", "cwd": "/p", "hook_event_name": "UserPromptSubmit", "prompt": text});
        sandbox.hook("new", prompt.to_string());
    };
    prompt(0);
    disk.fill_but(16 << 10);
    (1..400).for_each(prompt);
    let prompts = || {
        let events = sandbox.events();
        events.iter().filter(|event| event["kind"] == "PromptSubmitted").count()
    };
    let recorded = prompts();
    let status = sandbox.run(&["status", "--json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let dropped = status["dropped"]["events"].as_u64().unwrap();
    assert!(dropped > 0);
    assert_eq!(recorded as u64 + dropped, 400, "every event is recorded or counted");
    assert!(status["dropped"]["last"].as_str().unwrap().ends_with('Z'), "{status}");
    let line = format!("{dropped} events could not be recorded, the last at ");
    let shown = sandbox.run(&["status"]).ok();
    assert!(shown.contains(&line), "{shown}");
    let shown = sandbox.run(&["doctor"]).stdout;
    assert!(shown.contains(&line) && shown.contains("doctor --fix"), "{shown}");
    disk.make_room();
    prompt(400);
    assert_eq!(prompts(), recorded + 1);
    let shown = sandbox.run(&["doctor", "--fix"]).stdout;
    assert!(shown.contains("fixed   dropped events"), "{shown}");
    assert!(!sandbox.run(&["status"]).ok().contains("could not be recorded"));
}

#[test]
fn a_hook_that_gets_no_more_memory_counts_its_event_and_stays_silent() {
    let sandbox = Sandbox::new();
    let limited = |kilobytes: u32, hook: &str, stdin: &str| {
        let mut command = Command::new("/bin/sh");
        let script = format!("ulimit -v {kilobytes}; exec \"$0\" {hook}");
        command.arg("-c").arg(script).arg(sandbox.command(&[""; 0]).get_program());
        command.env_clear().env("HOME", sandbox.home());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(stdin.as_bytes());
        child.wait_with_output().unwrap()
    };
    let output = "one of many lines\n".repeat(300_000);
    let payload = json!({"session_id": "s1", "cwd": "/p", "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": {}, "tool_response": {"stdout": output}});
    let mut runs = 0;
    for kilobytes in (0..400_000).step_by(25_000).rev() {
        // Below some limit, not even the program can be loaded.
        if !limited(kilobytes, "--version", "").status.success() {
            break;
        }
        let run = limited(kilobytes, "save", &payload.to_string());
        assert!(run.status.success() && run.stderr.is_empty(), "{kilobytes}: {run:?}");
        runs += 1;
    }
    let status = sandbox.run(&["status", "--json"]).ok();
    let status: serde_json::Value = serde_json::from_str(&status).unwrap();
    let dropped = status["dropped"]["events"].as_u64().unwrap();
    assert!(dropped > 0, "a limit is too low for the payload");
    assert_eq!(sandbox.events().len() as u64 + dropped, runs, "each is recorded or counted");
}
