//! Many concurrent sessions, and hooks killed at any moment: every acknowledged event is recorded
//! exactly once.

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    process::Stdio,
    thread,
};

use claude_mem_tools::random::Random;
use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const SESSIONS: usize = 8;
const TURNS: usize = 12;
const TOOLS: usize = 4;

fn payload(session: usize, event: &str, fields: &Value) -> String {
    let mut payload =
        json!({"session_id": format!("s{session}"), "hook_event_name": event, "cwd": "/p"});
    for (name, value) in fields.as_object().unwrap() {
        payload[name] = value.clone();
    }
    payload.to_string()
}

/// Runs a hook and kills it at a random moment. Returns whether it had responded.
fn run_and_kill(sandbox: &Sandbox, hook: &str, stdin: &str, random: &mut Random) -> bool {
    let mut command = sandbox.command(&[hook]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // With a part of the input, the hook waits for the rest. With all of it, the time until the
    // kill is random.
    let cut = random.below(2 * stdin.len() as u64) as usize;
    let _ = pipe.write_all(&stdin.as_bytes()[..cut.min(stdin.len())]);
    if cut >= stdin.len() {
        drop(pipe);
        (0..random.below(2000)).for_each(|_| thread::yield_now());
    }
    child.kill().unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    child.wait().unwrap();
    answer.contains("continue")
}

/// Runs the hooks of one session; returns the ids of the acknowledged tool uses.
fn session(sandbox: &Sandbox, number: usize) -> Vec<String> {
    let mut acknowledged = Vec::new();
    let mut random = Random::new(number as u64 + 1);
    sandbox.hook("context", payload(number, "SessionStart", &json!({"source": "startup"})));
    for turn in 0..TURNS {
        let prompt = json!({"prompt": format!("turn {turn}"), "prompt_id": format!("p{turn}")});
        sandbox.hook("new", payload(number, "UserPromptSubmit", &prompt));
        let used: Vec<_> = (0..TOOLS)
            .map(|tool| (format!("s{number}-{turn}-{tool}"), random.below(4) == 0))
            .collect();
        let seeds: Vec<_> = used.iter().map(|_| random.below(u64::MAX)).collect();
        thread::scope(|scope| {
            let running: Vec<_> = used.iter().zip(seeds).map(|((id, is_killed), seed)| scope.spawn(move || {
                // Some are long enough to be compressed, and all differ.
                let output = format!("{id} ").repeat(1 + (seed % 800) as usize);
                let fields = json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {}, "tool_response": output});
                let stdin = payload(number, "PostToolUse", &fields);
                if *is_killed {
                    return run_and_kill(sandbox, "save", &stdin, &mut Random::new(seed));
                }
                sandbox.hook("save", stdin);
                true
            })).collect();
            for ((id, _), running) in used.iter().zip(running) {
                if running.join().unwrap() {
                    acknowledged.push(id.clone());
                }
            }
        });
        sandbox
            .hook("summary", payload(number, "Stop", &json!({"last_assistant_message": "done"})));
    }
    sandbox.hook("cleanup", payload(number, "SessionEnd", &json!({"reason": "other"})));
    acknowledged
}

#[test]
fn acknowledged_events_of_eight_sessions_are_recorded_exactly_once() {
    let sandbox = Sandbox::new();
    let acknowledged: Vec<String> = thread::scope(|scope| {
        let sessions: Vec<_> = (0..SESSIONS)
            .map(|number| {
                scope.spawn({
                    let sandbox = &sandbox;
                    move || session(sandbox, number)
                })
            })
            .collect();
        sessions.into_iter().flat_map(|session| session.join().unwrap()).collect()
    });
    assert!(acknowledged.len() > SESSIONS * TURNS * TOOLS / 2);
    let events = sandbox.events();
    let mut tools: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &events {
        *kinds.entry(event["kind"].as_str().unwrap()).or_default() += 1;
        if let Some(id) = event["tool_use_id"].as_str() {
            tools.entry(id).or_default().push(event);
        }
    }
    for id in &acknowledged {
        assert_eq!(tools.get(id.as_str()).map_or(0, Vec::len), 1, "{id}");
    }
    for (id, events) in &tools {
        let output = events[0]["event"]["output"].as_str().unwrap();
        assert!(events.len() == 1 && output.replace(&format!("{id} "), "").is_empty(), "{id}");
    }
    assert_eq!((kinds["SessionStarted"], kinds["SessionEnded"]), (SESSIONS, SESSIONS));
    assert_eq!(
        (kinds["PromptSubmitted"], kinds["SummaryRequested"]),
        (SESSIONS * TURNS, SESSIONS * TURNS)
    );
    let status: Value = serde_json::from_str(&sandbox.run(&["status", "--json"]).ok()).unwrap();
    assert_eq!(
        (&status["damage"]["damaged"], &status["damage"]["missing_segments"]),
        (&json!(0), &json!(0))
    );
    assert_eq!(status["sessions"], SESSIONS);
}

#[test]
fn two_processes_that_begin_a_log_together_begin_one_log() {
    for _ in 0..5 {
        let sandbox = Sandbox::new();
        thread::scope(|scope| {
            for number in 0..SESSIONS {
                let sandbox = &sandbox;
                scope.spawn(move || {
                    sandbox.hook(
                        "context",
                        payload(number, "SessionStart", &json!({"source": "startup"})),
                    )
                });
            }
        });
        assert_eq!(sandbox.events().len(), SESSIONS);
    }
}
