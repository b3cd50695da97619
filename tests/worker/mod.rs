//! The worker: real processes and real signals.

mod lines;

use std::{
    fs,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use claude_mem_tools::model::{Answer, Script, Server};
use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    model::Session,
    sandbox::{Sandbox, real_client},
    serving::{Lines, Serving, until},
};

/// Makes hooks start the worker.
const AUTOSTART: [(&str, &str); 1] = [("CLAUDE_MEM_WORKER_AUTOSTART", "true")];

/// Settings for a worker that hooks start: it does not inherit their environment.
const SETTINGS: &str = r#"{"CLAUDE_MEM_WORKER_PORT": "0", "CLAUDE_MEM_PROVIDER": "extract"}"#;

/// Stops the worker that hooks started, even if its test fails.
struct Stopped<'a>(&'a Sandbox);

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.run(&["worker", "stop"]);
    }
}

/// The processes whose home directory is this one.
fn processes(home: &Path) -> Vec<i32> {
    let home = format!("HOME={}", home.display());
    let is_ours = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
    };
    let names = fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).filter(is_ours).collect()
}

fn status(sandbox: &Sandbox) -> Value {
    serde_json::from_str(&sandbox.run(&["worker", "status", "--json"]).ok()).unwrap()
}

fn kinds(sandbox: &Sandbox) -> Vec<String> {
    let kind = |event: &Value| event["kind"].as_str().unwrap().to_owned();
    sandbox.events().iter().map(kind).collect()
}

#[test]
fn a_worker_whose_data_directory_is_deleted_ends_and_leaves_the_next_one_alone() {
    let sandbox = Sandbox::new();
    let mut first = Serving::start(&sandbox, &[]);
    // A worker may write until it notices.
    until(|| fs::remove_dir_all(sandbox.data()).is_ok() && !sandbox.data().exists());
    let second = Serving::start(&sandbox, &[]);
    until(|| first.child.try_wait().unwrap().is_some());
    let text = fs::read_to_string(sandbox.data().join("worker.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), second.presence);
    assert!(sandbox.run(&["worker", "status"]).ok().contains("ok"));
    assert!(!Lines::open(&sandbox).ask(&json!({"type": "ping"})).is_null());
}

#[test]
fn a_session_becomes_memory_without_anybody_asking_for_it() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/settings.json", SETTINGS);
    let _stopped = Stopped(&sandbox);
    let session = HookSession::new(&sandbox, "s1").with(&AUTOSTART);
    session.prompt("Fix the rounding of the cart total");
    session.edit("t1", "cart.rs", "round(a)", "a");
    session.stop("The total is now rounded once, at the end.");
    until(|| {
        let shown = sandbox.run(&["context", "--json"]);
        shown.stdout.contains("rounding of the cart total")
    });
    // It is running for the next turn, and its start does not delay a hook.
    let found = status(&sandbox);
    assert_eq!((&found["is_running"], &found["status"]), (&json!(true), &json!("ok")), "{found:#}");
    assert!(
        !sandbox.data().join("worker.attempts").exists(),
        "it works, so nothing is held against it"
    );
    assert_eq!(sandbox.run(&["worker", "stop"]).ok(), "the worker has stopped\n");
    assert!(processes(&sandbox.home()).is_empty());
    for left in ["worker.json", "worker.sock", "worker.wake"] {
        assert!(!sandbox.data().join(left).exists(), "{left}");
    }
}

#[test]
fn the_hook_does_not_wait_and_its_pipes_close_with_it() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/settings.json", SETTINGS);
    let _stopped = Stopped(&sandbox);
    let sent = json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": sandbox.home(),
        "last_assistant_message": "done"});
    // `hook` returns when stdout and stderr are closed in all processes: a worker that had
    // inherited them would block it.
    for _ in 0..5 {
        sandbox.hook_with("summary", &AUTOSTART, sent.to_string());
    }
    until(|| status(&sandbox)["is_running"] == true);
    assert_eq!(kinds(&sandbox).iter().filter(|kind| *kind == "SummaryRequested").count(), 5);
}

#[test]
fn a_worker_that_does_not_come_up_is_not_tried_again_at_once() {
    let sandbox = Sandbox::new();
    let stop = json!({"session_id": "s1", "hook_event_name": "Stop", "cwd": sandbox.home()});
    // A directory in place of the lock file prevents a worker from starting.
    fs::create_dir_all(sandbox.data().join("worker.lock")).unwrap();
    for _ in 0..3 {
        sandbox.hook_with("summary", &AUTOSTART, stop.to_string());
    }
    let attempts = fs::metadata(sandbox.data().join("worker.attempts")).unwrap();
    assert_eq!(attempts.len(), 1);
    // Tool uses do not start the worker.
    let other = Sandbox::new();
    let used = json!({"session_id": "s1", "hook_event_name": "PostToolUse", "tool_name": "Bash"});
    other.hook_with("save", &AUTOSTART, used.to_string());
    assert!(!other.data().join("worker.attempts").exists());
}

#[test]
fn there_is_one_worker_and_a_second_one_ends_at_once() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, &[]);
    let second = sandbox.run(&["worker", "run"]);
    assert_eq!((second.code, second.stderr.as_str()), (0, "a worker is already running\n"));
    let started = sandbox.run(&["worker", "start", "--json"]).ok();
    let started: Value = serde_json::from_str(&started).unwrap();
    assert_eq!((&started["is_new"], &started["pid"]), (&json!(false), &json!(serving.child.id())));
}

#[test]
fn start_stop_restart_and_logs_work() {
    let sandbox = Sandbox::new();
    let _stopped = Stopped(&sandbox);
    let port = [("CLAUDE_MEM_WORKER_PORT", "0")];
    assert_eq!(sandbox.run(&["worker", "stop"]).ok(), "no worker is running\n");
    let wrong = [("CLAUDE_MEM_WORKER_PORT", "99999")];
    let refused = sandbox.run_with(&["worker", "start"], &wrong, "").fails(2);
    assert!(refused.contains("`99999`, not a whole number from 0 to 65535"), "{refused}");
    assert_eq!(status(&sandbox), json!({"is_running": false}));
    let pid = |arguments: &[&str]| {
        let run = sandbox.run_with(arguments, &port, "").ok();
        serde_json::from_str::<Value>(&run).unwrap()["pid"].as_u64().unwrap()
    };
    let first = pid(&["worker", "start", "--json"]);
    assert_eq!(pid(&["worker", "start", "--json"]), first);
    let second = pid(&["worker", "restart", "--json"]);
    assert_ne!(first, second);
    let shown = sandbox.run(&["worker", "status"]).ok();
    assert!(shown.contains(&format!("process  {second}, for")), "{shown}");
    let shown = sandbox.run(&["status", "-v"]).ok();
    assert!(shown.contains(&format!("running (pid {second}), healthy")), "{shown}");
    sandbox.run(&["worker", "stop"]).ok();
    let logs = sandbox.run(&["worker", "logs"]).ok();
    assert_eq!(logs.matches("is listening at http://127.0.0.1:").count(), 2, "{logs}");
    assert_eq!(logs.matches("stopped on request").count(), 2, "{logs}");
    assert_eq!(sandbox.run(&["worker", "logs", "-n", "1"]).ok().lines().count(), 1);
    assert_eq!(sandbox.run(&["worker", "logs", "--level", "warn"]).ok(), "");
}

#[test]
#[cfg(target_os = "linux")]
fn the_worker_inherits_no_open_file_from_the_program_that_starts_it() {
    let sandbox = Sandbox::new();
    let _stopped = Stopped(&sandbox);
    let held = sandbox.home().join("script.lock");
    let start = sandbox.command(&["worker", "start", "--json"]);
    let mut script = Command::new("sh");
    script
        .args(["-c", "exec 9>script.lock; exec \"$0\" worker start --json"])
        .arg(start.get_program());
    script.env_clear().envs(start.get_envs().filter_map(|(name, value)| Some((name, value?))));
    script.env("CLAUDE_MEM_WORKER_PORT", "0").current_dir(sandbox.home());
    let started: Value = serde_json::from_slice(&script.output().unwrap().stdout).unwrap();
    let open = fs::read_dir(format!("/proc/{}/fd", started["pid"])).unwrap();
    let open: Vec<PathBuf> =
        open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect();
    assert!(open.len() > 3 && !open.contains(&held), "{open:?}");
}

#[test]
fn the_log_has_the_steps_of_the_work_if_the_setting_is_on() {
    let sandbox = Sandbox::new();
    let requests = |levels: &str| {
        sandbox.run(&["settings", "set", "CLAUDE_MEM_LOG", levels]).ok();
        sandbox.run_with(&["worker", "start"], &[("CLAUDE_MEM_WORKER_PORT", "0")], "").ok();
        sandbox.run(&["worker", "stop"]).ok();
        let logs = sandbox.run(&["worker", "logs"]).ok();
        logs.lines().filter(|line| line.contains(" DEBUG [") && line.contains("] indexed")).count()
    };
    assert_eq!(requests("info"), 0);
    assert!(requests("debug") > 0);
}

#[test]
fn an_idle_worker_exits() {
    let sandbox = Sandbox::new();
    let mut serving = Serving::start(&sandbox, &[("CLAUDE_MEM_WORKER_IDLE", "1")]);
    assert!(serving.child.wait().unwrap().success());
    assert!(sandbox.run(&["worker", "logs"]).ok().contains("stopped because it is idle"));
}

#[test]
fn an_older_worker_makes_room_for_a_newer_program() {
    let sandbox = Sandbox::new();
    let mut serving = Serving::start(&sandbox, &[]);
    let hook = UnixDatagram::unbound().unwrap();
    hook.send_to(b"0.0.1", sandbox.data().join("worker.wake")).unwrap();
    assert_eq!(status(&sandbox)["pid"], serving.child.id(), "an older one says nothing");
    hook.send_to(b"99.0.0", sandbox.data().join("worker.wake")).unwrap();
    assert_eq!(serving.child.wait().unwrap().code(), Some(1));

    let mut older = Serving::start(&sandbox, &[]);
    let _stopped = Stopped(&sandbox);
    let result =
        sandbox.read(".claude-mem/worker.json").replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    sandbox.write(".claude-mem/worker.json", &result);
    let port = [("CLAUDE_MEM_WORKER_PORT", "0")];
    let started = sandbox.run_with(&["worker", "start", "--json"], &port, "").ok();
    let started: Value = serde_json::from_str(&started).unwrap();
    assert_eq!(started["replaced"], "0.0.1");
    assert!(older.child.wait().unwrap().success());
}

#[test]
fn killing_the_worker_during_a_request_leaves_no_child_and_the_next_one_continues() {
    let hanging = Server::start(Script::new().otherwise(Answer::hang())).unwrap();
    let client = real_client(&hanging.url());
    let executable = claude_mem_tools::client::executable().unwrap();
    let sandbox = Sandbox::new();
    sandbox.use_gateway(&hanging.url());
    let home = sandbox.home().to_string_lossy().into_owned();
    let executable = executable.to_string_lossy().into_owned();
    let mut variables: Vec<(&str, &str)> = client
        .environment()
        .iter()
        .map(|(name, value)| (name.to_str().unwrap(), value.to_str().unwrap()))
        .collect();
    variables.extend([
        ("HOME", home.as_str()),
        ("CLAUDE_CODE_PATH", &executable),
        ("CLAUDE_MEM_PROVIDER", "claude"),
        ("CLAUDE_MEM_CLAUDE_AUTH_METHOD", "api-key"),
    ]);
    let serving = Serving::start(&sandbox, &variables);
    Session::worked(&sandbox, "s1", 1);
    hanging.wait_for_requests(1);
    assert_eq!(
        processes(&sandbox.home()).len(),
        3,
        "the worker, the client, and who watches over it"
    );
    serving.kill();
    until(|| processes(&sandbox.home()).is_empty());

    // A second worker, with another provider, sends the request again, and each event is answered
    // once.
    let _next = Serving::start(&sandbox, &[]);
    until(|| kinds(&sandbox).iter().any(|kind| kind == "AgentReplied"));
    until(|| status(&sandbox)["unanswered"]["events"] == 0);
    assert_eq!(kinds(&sandbox).iter().filter(|kind| *kind == "AgentReplied").count(), 1);
}

#[test]
fn one_that_answers_but_does_not_get_on_is_not_well() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[]);
    Session::worked(&sandbox, "s1", 1);
    until(|| status(&sandbox)["unfolded"]["events"] == 0);
    // Another process holds the write lock of the database.
    let tables = rusqlite::Connection::open(sandbox.data().join("memory.db")).unwrap();
    tables.execute_batch("begin immediate").unwrap();
    let mut lines = Lines::open(&sandbox);
    let result = json!({"type": "observation", "session_id": "s1", "tool_name": "Bash"});
    assert_eq!(
        lines.ask(&result)["status"],
        "recorded",
        "what is recorded does not depend on tables"
    );
    until(|| lines.ask(&json!({"type": "health"}))["status"] == "unhealthy");
    let refused = sandbox.run(&["worker", "status"]);
    assert!(refused.code == 1 && refused.stdout.contains("problem"), "{refused:?}");
    let doctor = sandbox.run(&["doctor"]);
    assert!(doctor.stdout.contains("problem worker"), "{doctor:?}");
    tables.execute_batch("rollback").unwrap();
    until(|| lines.ask(&json!({"type": "health"}))["status"] == "ok");
}

#[test]
fn a_provider_that_refuses_is_reported_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    let server = Server::start(Script::new().otherwise(Answer::error(
        401,
        "authentication_error",
        "no such key",
    )))
    .unwrap();
    let url = server.url();
    let variables = [
        ("CLAUDE_MEM_PROVIDER", "anthropic"),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-1"),
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", url.as_str()),
    ];
    let _serving = Serving::start(&sandbox, &variables);
    Session::worked(&sandbox, "s1", 1);
    until(|| status(&sandbox)["status"] == "degraded");
    let found = status(&sandbox);
    assert_eq!(found["provider"]["name"], "anthropic");
    assert!(
        found["provider"]["message"].as_str().unwrap().contains("authentication failed"),
        "{found:#}"
    );
    assert_eq!(server.requests().len(), 1, "one refusal is enough");
    // After a change of settings it tries again.
    sandbox.write(".claude-mem/settings.json", r#"{"CLAUDE_MEM_VERBOSITY": "minimal"}"#);
    Session::worked(&sandbox, "s2", 1);
    server.wait_for_requests(2);
}

#[test]
fn a_long_path_of_the_data_directory_works() {
    let sandbox = Sandbox::new();
    let data = sandbox.home().join("d".repeat(150));
    let data = data.to_str().unwrap();
    let variables = [("CLAUDE_MEM_DATA_DIR", data)];
    let _serving = Serving::start(&sandbox, &variables);
    let health = || {
        let run = sandbox.run_with(&["worker", "status", "--json"], &variables, "");
        serde_json::from_str::<Value>(&run.ok()).unwrap()
    };
    assert_eq!(health()["status"], "ok");
    let sent =
        json!({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "hello"});
    sandbox.hook_with("new", &variables, sent.to_string());
    until(|| Path::new(data).join("memory.db").exists() && health()["unfolded"]["events"] == 0);
    assert_eq!(
        sandbox.run_with(&["worker", "stop"], &variables, "").ok(),
        "the worker has stopped\n"
    );
}

#[test]
fn the_worker_flushes_events_of_hooks_soon() {
    let sandbox = Sandbox::new();
    let _serving = Serving::start(&sandbox, &[]);
    let synced =
        || fs::metadata(sandbox.data().join("log/synced")).and_then(|file| file.modified()).ok();
    let used = json!({"session_id": "s1", "hook_event_name": "PostToolUse", "tool_name": "Bash",
        "tool_use_id": "t1"});
    sandbox.hook("save", used.to_string());
    until(|| synced().is_some());
    let first = synced();
    sandbox.hook("save", used.to_string());
    until(|| synced() > first);
}

#[test]
fn purging_ends_the_worker_first() {
    let sandbox = Sandbox::new();
    let mut serving = Serving::start(&sandbox, &[]);
    Session::worked(&sandbox, "s1", 1);
    sandbox.run(&["uninstall", "--purge", "--yes"]).ok();
    assert!(serving.child.wait().unwrap().success());
    assert!(!sandbox.data().exists());
}

#[test]
fn signals_end_it_in_good_order() {
    for signal in ["-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let mut serving = Serving::start(&sandbox, &[]);
        let pid = serving.presence["pid"].to_string();
        let sent = Command::new("kill").args([signal, &pid]).stdin(Stdio::null()).status().unwrap();
        assert!(sent.success() && serving.child.wait().unwrap().success());
        assert!(!sandbox.data().join("worker.json").exists());
    }
}
