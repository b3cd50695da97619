//! `claude-mem ship`, `restore`, `key` and `verify --remote`: a remote copy of the log, and its
//! restoration.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
};

use claude_mem_tools::{
    azure::AzureServer,
    bucket::{Bucket, Faults},
};
use serde_json::{Value, json};

use crate::{
    folders::files_below,
    model::dump,
    sandbox::{Run, Sandbox, binary},
    serving::{Serving, until},
};

pub(crate) const EXTRACT: [(&str, &str); 1] = [("CLAUDE_MEM_PROVIDER", "extract")];

/// Some turns of a session: prompts, tools, stops.
pub(crate) fn work(sandbox: &Sandbox, session: &str, turns: usize) {
    let cwd = sandbox.home();
    for turn in 1..=turns {
        let common = json!({"session_id": session, "cwd": cwd});
        let event = |name: &str, more: Value| {
            let mut event = common.clone();
            event["hook_event_name"] = name.into();
            for (key, value) in more.as_object().unwrap() {
                event[key] = value.clone();
            }
            event.to_string()
        };
        sandbox.hook("new", event("UserPromptSubmit", json!({"prompt": format!("turn {turn}")})));
        let tool = json!({"tool_name": "Edit", "tool_use_id": format!("{session}-{turn}"),
            "tool_input": {"file_path": "/src/a.rs", "old_string": "a", "new_string": format!("b{turn}")},
            "tool_response": {"filePath": "/src/a.rs", "success": true}});
        sandbox.hook("save", event("PostToolUse", tool));
        sandbox.hook("summary", event("Stop", json!({"last_assistant_message": "done"})));
    }
}

pub(crate) fn remembered() -> Sandbox {
    let sandbox = Sandbox::new();
    work(&sandbox, "first", 3);
    sandbox.run_with(&["distill"], &EXTRACT, "").ok();
    sandbox
}

fn remote(sandbox: &Sandbox) -> String {
    sandbox.home().join("remote").to_string_lossy().into_owned()
}

fn ship(sandbox: &Sandbox) -> Run {
    sandbox.run(&["ship", "--to", &remote(sandbox)])
}

/// Another machine, which has only the remote.
fn restore(from: &Sandbox) -> (Sandbox, Run) {
    let machine = Sandbox::new();
    let run = machine.run(&["restore", "--from", &remote(from)]);
    (machine, run)
}

#[test]
fn a_new_machine_has_everything_back_and_the_same_tables_byte_for_byte() {
    let sandbox = remembered();
    let shipped = ship(&sandbox).ok();
    let (machine, run) = restore(&sandbox);
    let restored = run.ok();
    let before = dump(&sandbox.data());
    assert!(before.contains("turn 3"), "{before}");
    assert_eq!(dump(&machine.data()), before);
    // Both name the same entry by the same hash.
    let entry = |text: &str| {
        let (_, entry) = text.split_once("entry ").unwrap();
        entry.split_inclusive(')').next().unwrap().to_owned()
    };
    assert!(entry(&shipped).starts_with("1 ("), "{shipped}");
    assert_eq!(entry(&shipped), entry(&restored));
    assert_eq!(machine.events(), sandbox.events());
    // It continues from there, and ships to the same remote.
    work(&machine, "second", 1);
    machine.run(&["ship", "--to", &remote(&sandbox)]).ok();
    // The old machine cannot continue as well: that would be two histories of one log.
    work(&sandbox, "third", 1);
    let error = ship(&sandbox).fails(1);
    assert!(error.contains("another history of this log"), "{error}");
}

#[test]
fn a_log_is_shipped_to_an_azure_container() {
    let server = AzureServer::start().unwrap_or_else(|error| panic!("{error}"));
    let place = server.place("of/ada");
    let mut variables = server.variables();
    variables.push(("CLAUDE_MEM_SHIP_TO", place.clone()));
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let sandbox = remembered();
    let run = |arguments: &[&str]| sandbox.run_with(arguments, &variables, "").ok();
    run(&["ship"]);
    work(&sandbox, "second", 2);
    sandbox.run_with(&["distill"], &EXTRACT, "").ok();
    run(&["ship"]);
    // Objects that are no longer needed are deleted there.
    run(&["forget", "--session", "first", "--now", "--yes"]);
    let printed: Value = serde_json::from_str(&run(&["ship", "--json"])).unwrap();
    assert!(printed["deleted"].as_u64() > Some(0), "{printed}");
    let again: Value = serde_json::from_str(&run(&["ship", "--json"])).unwrap();
    assert_eq!((&again["objects"], &again["put_bytes"]), (&json!(0), &json!(0)));
    run(&["verify", "--remote"]);
    let machine = Sandbox::new();
    machine.run_with(&["restore"], &variables, "").ok();
    assert_eq!(dump(&machine.data()), dump(&sandbox.data()));
    // Under the variable names of the Azure command line.
    let (account, key) = (variables[0].1, variables[1].1);
    let others = [("AZURE_STORAGE_ACCOUNT", account), ("AZURE_STORAGE_KEY", key)];
    let others = [others[0], others[1], variables[2], variables[3]];
    Sandbox::new().run_with(&["restore", "--from", &place], &others, "").ok();
    let denied = [variables[0], ("AZURE_STORAGE_ACCOUNT_KEY", "AAAA"), variables[2], variables[3]];
    let error = Sandbox::new().run_with(&["restore", "--from", &place], &denied, "").fails(1);
    assert!(error.contains("denied access") || error.contains("403"), "{error}");
}

#[test]
fn restore_never_overwrites_a_log() {
    let sandbox = remembered();
    ship(&sandbox).ok();
    let before = sandbox.events();
    let error = sandbox.run(&["restore", "--from", &remote(&sandbox)]).fails(1);
    assert!(error.contains("a data directory with a log exists"), "{error}");
    assert!(error.contains("--into DIR"), "{error}");
    assert_eq!(sandbox.events(), before);
    let restored = sandbox.home().join("restored");
    let restored = restored.to_str().unwrap();
    sandbox.run(&["restore", "--from", &remote(&sandbox), "--into", restored]).ok();
    assert_eq!(dump(restored.as_ref()), dump(&sandbox.data()));
}

#[test]
fn a_key_can_be_copied_to_another_machine_and_is_never_replaced() {
    let sandbox = remembered();
    let key = sandbox.run(&["key", "new"]).ok();
    assert_eq!(sandbox.run(&["key", "show"]).ok(), key);
    assert!(sandbox.run(&["key", "new"]).fails(1).contains("a key exists already"));
    ship(&sandbox).ok();
    let project = sandbox.home().file_name().unwrap().to_string_lossy().into_owned();
    for path in files_below(&sandbox.home().join("remote")) {
        let bytes = fs::read(&path).unwrap();
        let place = path.strip_prefix(sandbox.home().join("remote")).unwrap();
        assert!(!place.to_string_lossy().contains(&project), "{}", place.display());
        for secret in ["turn 1", "a.rs", "PromptSubmitted", "\"name\""] {
            let reveals_text =
                bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
            assert!(!reveals_text, "{secret} in {}", path.display());
        }
    }
    let (machine, run) = restore(&sandbox);
    let error = run.fails(1);
    assert!(error.contains("there is no key here") && error.contains("key import"), "{error}");
    let wrong = key.replacen('a', "b", 1);
    let error = machine.run_with(&["key", "import"], &[], wrong).fails(2);
    assert!(error.contains("that is not a key"), "{error}");
    machine.run_with(&["key", "import"], &[], &key).ok();
    machine.run(&["restore", "--from", &remote(&sandbox)]).ok();
    assert_eq!(dump(&machine.data()), dump(&sandbox.data()));
}

#[test]
fn a_host_is_selected_by_name_or_id() {
    let sandbox = remembered();
    sandbox
        .run_with(&["ship", "--to", &remote(&sandbox)], &[("CLAUDE_MEM_SHIP_NAME", "desk")], "")
        .ok();
    let other = Sandbox::new();
    work(&other, "other", 1);
    other
        .run_with(&["ship", "--to", &remote(&sandbox)], &[("CLAUDE_MEM_SHIP_NAME", "lap")], "")
        .ok();
    let (machine, run) = restore(&sandbox);
    let error = run.fails(1);
    assert!(
        error.contains("desk (") && error.contains("lap (") && error.contains("--host"),
        "{error}"
    );
    machine.run(&["restore", "--from", &remote(&sandbox), "--host", "lap"]).ok();
    assert_eq!(machine.events(), other.events());
}

#[test]
fn damage_on_either_side_is_reported_and_repaired_from_the_other() {
    let sandbox = remembered();
    let place = remote(&sandbox);
    sandbox.run(&["ship", "--to", &place, "--save"]).ok();
    sandbox.run(&["verify", "--remote"]).ok();
    // Damage at the remote.
    let part = files_below(&sandbox.home().join("remote"))
        .into_iter()
        .find(|path| path.to_string_lossy().contains("/seg/"))
        .unwrap();
    let right = fs::read(&part).unwrap();
    fs::write(&part, b"wrong").unwrap();
    let run = sandbox.run(&["verify", "--remote"]);
    let name = part.file_name().unwrap().to_string_lossy();
    assert!(run.code == 1 && run.stdout.contains(&*name), "{run:?}");
    assert!(run.stdout.contains("of segment 0000000000000001"), "{run:?}");
    sandbox.run(&["verify", "--remote", "--repair"]).ok();
    assert_eq!(fs::read(&part).unwrap(), right);
    // Damage in the local log.
    let log = sandbox.data().join("log/active.log");
    let right = fs::read(&log).unwrap();
    let mut wrong = right.clone();
    wrong[200] ^= 1;
    fs::write(&log, &wrong).unwrap();
    sandbox.run(&["verify", "--remote"]).fails(1);
    let printed = sandbox.run(&["verify", "--remote", "--repair", "--json"]).ok();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["remote"]["repaired_here"].as_array().unwrap().len(), 1, "{printed}");
    assert_eq!(fs::read(&log).unwrap(), right);
    sandbox.run(&["verify", "--remote"]).ok();
}

/// Flips a bit in the text of an event.
fn damage(sandbox: &Sandbox, text: &[u8]) {
    let log = sandbox.data().join("log/active.log");
    let mut bytes = fs::read(&log).unwrap();
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    fs::write(&log, &bytes).unwrap();
}

#[test]
fn damage_is_reported_by_every_command_that_copies_it() {
    let sandbox = remembered();
    damage(&sandbox, b"turn 2");
    let run = ship(&sandbox);
    assert!(run.stdout.contains("of log shipped"), "{run:?}");
    let error = run.fails(1);
    assert!(error.contains("in 1 place"), "{error}");
    assert!(error.contains("segment 0000000000000001 at byte"), "{error}");
    let (machine, run) = restore(&sandbox);
    assert!(run.stdout.contains("indexed"), "{run:?}");
    let error = run.fails(1);
    assert!(error.contains("in 1 place"), "{error}");
    assert!(dump(&machine.data()).contains("turn 3"));
    let error = sandbox.run(&["compact"]).fails(1);
    assert!(error.contains("in 1 place"), "{error}");
}

#[test]
fn damage_of_a_shipped_event_is_no_other_history_and_is_repaired_from_the_remote() {
    let sandbox = remembered();
    let place = remote(&sandbox);
    sandbox.run(&["ship", "--to", &place, "--save"]).ok();
    let before = sandbox.events();
    damage(&sandbox, b"turn 2");
    let error = sandbox.run(&["ship"]).fails(1);
    assert!(error.contains("the log is damaged in 1 place"), "{error}");
    assert!(error.contains("claude-mem verify --remote --repair"), "{error}");
    let doctor = sandbox.run(&["doctor"]).stdout;
    assert!(doctor.contains("another history of this log"), "{doctor}");
    sandbox.run(&["verify", "--remote", "--repair"]).ok();
    sandbox.run(&["ship"]).ok();
    assert_eq!(sandbox.events(), before);
}

#[test]
fn a_place_that_is_not_saved_is_not_behind() {
    let sandbox = remembered();
    let shipped = ship(&sandbox).ok();
    assert_eq!(shipped.matches(" of log").count(), 1, "{shipped}");
    work(&sandbox, "second", 1);
    let status = sandbox.run(&["status"]).ok();
    assert!(status.contains("shipped once") && !status.contains("behind"), "{status}");
}

#[test]
fn too_few_file_descriptors_are_an_error() {
    let sandbox = remembered();
    for descriptors in 4..16 {
        let script = format!("ulimit -n {descriptors}; exec \"$0\" ship --to \"$HOME/remote\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script]).arg(binary()).env_clear().env("HOME", sandbox.home());
        shell.env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
        let output = shell.output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!error.contains("panicked"), "{descriptors}: {error}");
        assert!(output.status.success() || error.starts_with("error: "), "{descriptors}: {error}");
    }
    ship(&sandbox).ok();
}

#[test]
fn a_remote_that_was_rolled_back_is_an_error() {
    let sandbox = remembered();
    ship(&sandbox).ok();
    work(&sandbox, "later", 1);
    ship(&sandbox).ok();
    let chain = || -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> = files_below(&sandbox.home().join("remote"))
            .into_iter()
            .filter(|path| path.parent().is_some_and(|dir| dir.ends_with("chain")))
            .collect();
        entries.sort();
        entries
    };
    let newest = chain().pop().unwrap();
    fs::remove_file(&newest).unwrap();
    let left = chain();
    work(&sandbox, "after", 1);
    let error = ship(&sandbox).fails(1);
    assert!(error.contains("is older than what was shipped"), "{error}");
    assert!(error.contains("claude-mem verify --remote --repair"), "{error}");
    assert_eq!(chain(), left, "nothing was put on top of it");
    let place = remote(&sandbox);
    let verify = ["verify", "--remote", "--from", place.as_str()];
    let printed = sandbox.run(&verify);
    assert_eq!(printed.code, 1, "{printed:?}");
    assert!(printed.stdout.contains("is older than what was shipped"), "{printed:?}");
    sandbox.run(&[&verify[..], &["--repair"]].concat()).ok();
    ship(&sandbox).ok();
    sandbox.run(&verify).ok();
    let (elsewhere, restored) = restore(&sandbox);
    restored.ok();
    assert_eq!(elsewhere.events(), sandbox.events());
}

#[test]
fn a_killed_restore_can_be_continued() {
    let sandbox = remembered();
    let bucket = Bucket::start().unwrap();
    let variables = bucket.variables();
    let variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    sandbox.run_with(&["ship", "--to", "s3://memories/of/ada"], &variables, "").ok();
    bucket.inject(Faults { silent: Some("/seg/".into()), ..Faults::default() });
    let machine = Sandbox::new();
    let mut command = machine.command(&["restore", "--from", "s3://memories/of/ada"]);
    command.envs(variables.iter().copied()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    until(|| machine.data().join("restoring/log").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!machine.data().join("log").exists() && !machine.data().join("memory.db").exists());
    bucket.inject(Faults::default());
    machine.run_with(&["restore", "--from", "s3://memories/of/ada"], &variables, "").ok();
    assert_eq!(dump(&machine.data()), dump(&sandbox.data()));
    assert!(!machine.data().join("restoring").exists());
}

#[test]
fn the_worker_ships_retries_an_unreachable_remote_and_status_reports_it() {
    let sandbox = Sandbox::new();
    work(&sandbox, "first", 1);
    let bucket = Bucket::start().unwrap();
    let variables = bucket.variables();
    let mut variables: Vec<(&str, &str)> =
        variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    variables.push(("CLAUDE_MEM_SHIP_TO", "s3://memories"));
    bucket.inject(Faults { status: Some(503), ..Faults::default() });
    let serving = Serving::start(&sandbox, &variables);
    let shipping = || {
        let status = sandbox.run_with(&["status", "--json"], &variables, "").ok();
        serde_json::from_str::<Value>(&status).unwrap()["shipping"].clone()
    };
    until(|| shipping()["error"].as_str().is_some_and(|error| error.contains("503")));
    assert_ne!(shipping()["behind_bytes"], 0);
    bucket.inject(Faults::default());
    until(|| shipping()["error"].is_null() && shipping()["behind_bytes"] == 0);
    work(&sandbox, "second", 1);
    until(|| shipping()["behind_bytes"] == 0);
    drop(serving);
    let doctor = sandbox.run_with(&["doctor", "--json"], &variables, "").stdout;
    let doctor: Value = serde_json::from_str(&doctor).unwrap();
    let findings = doctor["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["check"] == "shipping").unwrap();
    assert_eq!(finding["verdict"], "fine", "{finding}");
    let machine = Sandbox::new();
    machine.run_with(&["restore", "--from", "s3://memories"], &variables, "").ok();
    assert_eq!(machine.events(), sandbox.events());
}

#[test]
fn invalid_places_and_unmounted_disks_are_errors() {
    let sandbox = remembered();
    let error = sandbox.run(&["ship"]).fails(2);
    assert!(error.contains("no backup location is configured"), "{error}");
    let error = sandbox.run(&["ship", "--to", "ftp://host/x"]).fails(2);
    assert!(error.contains("`ftp://` is not supported"), "{error}");
    let away = sandbox.home().join("media/disk/memories");
    let error = sandbox.run(&["ship", "--to", away.to_str().unwrap()]).fails(2);
    assert!(error.contains("is the disk mounted?"), "{error}");
    assert!(!away.exists());
    let error = Sandbox::new().run(&["restore", "--from", away.to_str().unwrap()]).fails(2);
    assert!(error.contains("there is no such directory"), "{error}");
    fs::create_dir_all(&away).unwrap();
    let error = Sandbox::new().run(&["restore", "--from", away.to_str().unwrap()]).fails(1);
    assert!(error.contains("there is no log in"), "{error}");
}

// The statically linked binary must not load the system's name service modules.
#[cfg(static_libc)]
#[test]
fn names_are_resolved_without_name_service_modules() {
    let sandbox = remembered();
    sandbox.write("nsswitch.conf", "hosts: nothing_of_this_name\n");
    let script = "\
        mount --bind \"$HOME/nsswitch.conf\" /etc/nsswitch.conf && exec \"$0\" ship --to \
        s3://memories";
    let Some(mut command) = sandbox.in_own_world(script) else { return };
    let bucket = Bucket::start().unwrap();
    command.envs(bucket.variables());
    command.env("AWS_ENDPOINT_URL", bucket.endpoint().replace("127.0.0.1", "localhost"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!bucket.names().is_empty());
}

#[test]
fn an_unreachable_remote_is_reported_with_the_cause() {
    let sandbox = remembered();
    let keys = [
        ("AWS_ACCESS_KEY_ID", "someone"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "nowhere"),
    ];
    let ship = |endpoint: &str, more: &[(&str, &str)]| {
        let variables = [&keys[..], &[("AWS_ENDPOINT_URL", endpoint)], more].concat();
        sandbox.run_with(&["ship", "--to", "s3://memories"], &variables, "")
    };
    let error = ship("http://nowhere.invalid", &[]).fails(1);
    assert!(error.contains("lookup address"), "{error}");
    let error =
        ship("https://localhost", &[("SSL_CERT_FILE", "/dev/null"), ("SSL_CERT_DIR", "/dev/null")])
            .fails(2);
    assert!(error.contains("certificates"), "{error}");
}

#[test]
fn following_ships_new_events_and_stops_on_a_signal() {
    let sandbox = remembered();
    // In a container it is the first process, which a signal ends only if it has a handler.
    let script =
        "exec unshare --pid --fork --kill-child \"$0\" ship --follow --json --to \"$HOME/remote\"";
    let Some(mut command) = sandbox.in_own_world(script) else { return };
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut shipped =
        || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let before = shipped()["log_bytes"].as_u64().unwrap();
    work(&sandbox, "second", 1);
    assert!(shipped()["log_bytes"].as_u64().unwrap() > before);
    let first = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    assert!(Command::new("kill").arg(first.trim()).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
