//! The number of children, and that all of them end.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::process::CommandExt,
    process::Stdio,
    thread,
};

use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::*;

#[test]
fn a_child_that_dies_between_and_within_turns_is_replaced() {
    let world = responding("<skip/>");
    let claude = world.provider();
    let first = claude.send(&request("s")).unwrap();
    for process in world.processes() {
        let _ = kill_process(process.pid, Signal::KILL);
        process.assert_ends();
    }
    let next = Request { resume: first.memory_session_id, ..request("s") };
    let refusal = claude.send(&next).unwrap_err();
    assert_eq!(refusal.class, FailureClass::Transient, "{}", refusal.message);
    assert!(refusal.message.starts_with("claude exited"), "{}", refusal.message);
    assert_eq!(claude.send(&next).unwrap().text, "<skip/>");
}

#[test]
fn there_are_no_more_children_than_allowed_and_none_after_the_end() {
    let world = responding("<skip/>").with("CLAUDE_MEM_MAX_CONCURRENT_AGENTS", "2");
    let cwd = world.data().join("observer-sessions");
    let claude = world.provider();
    thread::scope(|scope| {
        for session in ["s1", "s2", "s3", "s4"] {
            let claude = &claude;
            scope.spawn(move || claude.send(&request(session)).unwrap());
        }
    });
    let children = processes_in(&cwd);
    assert_eq!(children.len(), 4, "two clients and their supervisors");
    drop(claude);
    for child in children {
        assert!(!child.is_alive(), "gone before drop returns");
    }
    world.assert_no_process_is_left();
}

#[test]
fn a_request_without_a_free_child_fails_at_its_time_limit() {
    let gate = model::Gate::new();
    let script = Script::new().otherwise(model::Answer::text("<skip/>").held_by(&gate));
    let world = Fixture::new(script).with("CLAUDE_MEM_MAX_CONCURRENT_AGENTS", "1");
    let claude = world.provider();
    thread::scope(|scope| {
        let first = scope.spawn(|| claude.send(&request("s1")));
        world.await_request();
        for session in ["s1", "s2"] {
            let limits = Limits { time_max: Duration::from_millis(50), ..request("").limits };
            let refusal = claude.send(&Request { limits, ..request(session) }).unwrap_err();
            assert_eq!(refusal.class, FailureClass::Transient);
            assert!(refusal.message.starts_with("all agents are busy"), "{}", refusal.message);
        }
        gate.open();
        assert_eq!(first.join().unwrap().unwrap().text, "<skip/>");
    });
    assert_eq!(world.requests().len(), 1);
    assert_eq!(claude.send(&request("s2")).unwrap().text, "<skip/>");
}

#[test]
fn an_idle_child_is_ended() {
    let world = responding("<skip/>");
    let brief = Duration::from_millis(200);
    let claude = world.setup(|setup| Claude::new(setup, installed(), built(), brief).unwrap());
    let first = claude.send(&request("s")).unwrap();
    for process in world.processes() {
        process.assert_ends();
    }
    let second = claude.send(&Request { resume: first.memory_session_id.clone(), ..request("s") });
    assert_ne!(second.unwrap().memory_session_id, first.memory_session_id);
}

/// A shell that runs the client as our program does, in the middle of a turn.
fn shell_with_client(world: &Fixture) -> (std::process::Child, Vec<Process>) {
    let cwd = world.data().join("observer-sessions");
    fs::create_dir_all(&cwd).unwrap();
    let message = world.client.home().join("message");
    let content = json!([{"type": "text", "text": "hello"}]);
    let line = json!({"type": "user", "message": {"role": "user", "content": content}});
    let mut file = fs::File::create(&message).unwrap();
    writeln!(file, "{line}").unwrap();
    let mut shell = Command::new("sh");
    shell.args([
        "-c",
        "launcher=$1; shift; message=$1; shift; \"$launcher\" __agent-child watch \
        $$ \"$@\" <\"$message\" & wait",
        "sh",
    ]);
    shell.arg(built()).arg(&message).arg(installed());
    shell.args(launch::arguments("claude-haiku-4-5", "You observe."));
    shell.env_clear().envs(world.setup(launch::environment)).current_dir(&cwd);
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let shell = shell.spawn().unwrap();
    world.await_request();
    let own = Pid::from_child(&shell);
    let below = processes_in(&cwd).into_iter().filter(|process| process.pid != own).collect();
    (shell, below)
}

#[test]
fn no_process_survives_the_death_of_our_program() {
    let world = Fixture::new(Script::new().otherwise(model::Answer::hang()));
    let (mut shell, below) = shell_with_client(&world);
    assert_eq!(below.len(), 2);
    assert!(below.iter().all(Process::is_alive));
    shell.kill().unwrap();
    shell.wait().unwrap();
    for process in below {
        process.assert_ends();
    }
}

#[test]
fn no_process_survives_when_the_supervisor_is_killed_as_well() {
    let world = Fixture::new(Script::new().otherwise(model::Answer::hang()));
    let (mut shell, below) = shell_with_client(&world);
    let supervisor = below.iter().min_by_key(|process| process.pid.as_raw_nonzero()).unwrap();
    shell.kill().unwrap();
    kill_process(supervisor.pid, Signal::KILL).unwrap();
    shell.wait().unwrap();
    for process in below {
        process.assert_ends();
    }
}

/// A client with a child in its own session. Each prints its pid first.
const WITH_DESCENDANT: &str = "setsid sh -c 'echo $$; exec sleep 1000' & echo $$; wait";

/// Reads the two pids.
fn both(child: &mut std::process::Child) -> Vec<Process> {
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let pids = lines.take(2).map(|line| Pid::from_raw(line.unwrap().parse().unwrap()).unwrap());
    pids.map(|pid| Process::of(pid).unwrap()).collect()
}

#[test]
fn descendants_of_the_client_end_with_it() {
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$1\" __agent-child watch $$ sh -c \"$2\" & wait", "sh"]);
    shell.arg(built()).arg(WITH_DESCENDANT).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    let below = both(&mut shell);
    shell.kill().unwrap();
    shell.wait().unwrap();
    for process in below {
        process.assert_ends();
    }
}

#[test]
fn descendants_in_a_separate_session_end_too() {
    let mut shell = Command::new("sh");
    shell.args(["-c", WITH_DESCENDANT]).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut shell = shell.process_group(0).spawn().unwrap();
    let both = both(&mut shell);
    claude_mem_core::os::ProcessTree::of(&shell).end();
    shell.wait().unwrap();
    for process in both {
        process.assert_ends();
    }
}
