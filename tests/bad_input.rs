//! Hooks with invalid payloads, in unusual directories and under limits: the session always
//! continues.

use std::{
    fs,
    io::{Read, Write},
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

use crate::sandbox::{Run, Sandbox, binary};

const HOOKS: [&str; 5] = ["context", "new", "save", "summary", "cleanup"];

fn good() -> Value {
    json!({"session_id": "s1", "hook_event_name": "PostToolUse", "cwd": "/p", "tool_name": "Bash",
        "tool_use_id": "t1", "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}})
}

#[test]
fn unparsable_payloads_are_acknowledged_logged_and_kept() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let cases: [(&str, Vec<u8>); 9] = [
        ("truncated", br#"{"session_id":"s1","tool_name":"Ba"#.to_vec()),
        ("an array", br#"[{"session_id":"s1"}]"#.to_vec()),
        ("a string", br#""session""#.to_vec()),
        ("deep array", deep.into_bytes()),
        ("binary", (0..=255).cycle().take(5000).collect()),
        ("nul", b"{\"session_id\":\"s1\",\"x\":\"\0\0\"}".to_vec()),
        ("two objects", b"{}{}".to_vec()),
        ("no session", br#"{"hook_event_name":"Stop"}"#.to_vec()),
        ("unknown event", br#"{"session_id":"s1","hook_event_name":"Eclipse"}"#.to_vec()),
    ];
    for (name, stdin) in &cases {
        let sandbox = Sandbox::new();
        for hook in HOOKS {
            sandbox.hook(hook, stdin);
        }
        let events = sandbox.events();
        assert_eq!(events.len(), HOOKS.len(), "{name}");
        for (event, hook) in events.iter().zip(HOOKS) {
            assert_eq!(
                (&event["kind"], &event["event"]["hook"]),
                (&json!("InputUnreadable"), &json!(hook))
            );
            assert_eq!(event["event"]["bytes"], stdin.len(), "{name}");
            assert_ne!(event["event"]["text"], "", "{name}");
        }
        assert_eq!(sandbox.diagnostics().lines().count(), HOOKS.len(), "{name}");
        let status: Value = serde_json::from_str(&sandbox.run(&["status", "--json"]).ok()).unwrap();
        assert_eq!(status["damage"]["unreadable_inputs"], HOOKS.len(), "{name}");
    }
}

#[test]
fn nothing_on_stdin_is_a_line_in_the_diagnostics_and_no_event() {
    for stdin in ["", " \n\t"] {
        let sandbox = Sandbox::new();
        // Without a payload, `context` is a command and no hook.
        for hook in &HOOKS[1..] {
            sandbox.hook(hook, stdin);
        }
        assert_eq!(sandbox.diagnostics().matches("nothing on stdin").count(), HOOKS.len() - 1);
        assert!(!sandbox.data().join("log").exists());
    }
}

#[test]
fn wrong_types_and_missing_fields_are_recorded_as_they_are() {
    let sandbox = Sandbox::new();
    let odd = [
        json!(5),
        json!(null),
        json!([1]),
        json!({"a": 1}),
        json!(true),
        json!("\u{fffd}\0\u{1b}"),
    ];
    let mut count = 0;
    for field in good().as_object().unwrap().keys() {
        for value in &odd {
            let mut payload = good();
            payload[field] = value.clone();
            payload["is_interrupt"] = value.clone();
            payload["duration_ms"] = value.clone();
            sandbox.hook("save", payload.to_string());
            count += 1;
        }
        let mut payload = good();
        payload.as_object_mut().unwrap().remove(field);
        sandbox.hook("save", payload.to_string());
        count += 1;
    }
    assert_eq!(sandbox.events().len(), count);
}

#[test]
fn invalid_utf8_is_replaced_and_the_rest_is_kept() {
    let sandbox = Sandbox::new();
    let text = good().to_string();
    let mut invalid = text.replace("\"x\"", "\"a?b\"").into_bytes();
    let at = invalid.iter().position(|byte| *byte == b'?').unwrap();
    invalid[at] = 0xff;
    sandbox.hook("save", invalid);
    sandbox.hook("save", text.replace("\"x\"", r#""a\ud834b""#));
    sandbox.hook("save", format!("\u{feff}{}", text.replace("\"x\"", r#""a\u0000b""#)));
    let stdouts: Vec<_> =
        sandbox.events().iter().map(|e| e["event"]["output"]["stdout"].clone()).collect();
    assert_eq!(stdouts, ["a\u{fffd}b", "a\u{fffd}b", "a\0b"]);
}

#[test]
fn a_value_of_ten_thousand_levels_is_recorded() {
    let sandbox = Sandbox::new();
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let payload = good().to_string().replace(r#"{"stdout":"x"}"#, &deep);
    sandbox.hook("save", payload);
    let listed = sandbox.run(&["log", "--json", "--raw"]).ok();
    assert!(listed.contains(&deep) && listed.contains("\"tool_use_id\":\"t1\""));
    assert!(sandbox.run(&["log", "t1"]).ok().contains("t1"));
}

/// Writes `bytes` of filler into a field, piece by piece.
fn pour(sandbox: &Sandbox, bytes: usize) -> Run {
    let mut command = sandbox.command(&["save"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let (head, tail) =
        (r#"{"session_id":"s1","hook_event_name":"PostToolUse","tool_response":""#, "\"}");
    stdin.write_all(head.as_bytes()).unwrap();
    let filling = vec![b'x'; 1 << 20];
    for _ in 0..bytes >> 20 {
        stdin.write_all(&filling).unwrap();
    }
    stdin.write_all(tail.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn ten_megabytes_are_clipped_and_more_than_is_kept_does_no_harm() {
    let sandbox = Sandbox::new();
    pour(&sandbox, 10 << 20).answer();
    // Just above the limit of 64 MB: on a busy machine a hook times out on larger input.
    pour(&sandbox, 65 << 20).answer();
    let events = sandbox.events();
    assert_eq!(events[0]["kind"], "ToolUsed");
    let output = events[0]["event"]["output"].as_str().unwrap();
    assert!(output.len() <= 256 << 10 && output.contains("[cut: "), "{} bytes", output.len());
    assert_eq!(
        (&events[1]["kind"], &events[1]["session"]),
        (&json!("InputUnreadable"), &json!("s1"))
    );
    assert!(events[1]["event"]["bytes"].as_u64().unwrap() > 65 << 20);
    let log = fs::metadata(sandbox.data().join("log/active.log")).unwrap();
    assert!(log.len() < 1 << 20);
}

#[test]
fn a_stdin_that_never_ends_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["save"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(good().to_string().as_bytes()).unwrap();
    let mut answer = String::new();
    child.stdout.take().unwrap().read_to_string(&mut answer).unwrap();
    assert!(child.wait().unwrap().success() && answer.contains("\"continue\": true"));
    drop(stdin);
    assert_eq!(sandbox.events()[0]["tool_use_id"], "t1");
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let sandbox = Sandbox::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = sandbox.command(&["save"]);
    command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(good().to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert_eq!(sandbox.events().len(), 1);
}

#[test]
fn a_transcript_may_have_any_content() {
    let sandbox = Sandbox::new();
    let huge = sandbox.write("huge.jsonl", "");
    fs::File::options().write(true).open(&huge).unwrap().set_len(1 << 30).unwrap();
    let fifo = sandbox.home().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let home = sandbox.home();
    let paths =
        [json!(huge), json!(fifo), json!(home), json!("/dev/zero"), json!("/nowhere"), json!(7)];
    for path in &paths {
        let stop = json!({"session_id": "s1", "hook_event_name": "Stop", "transcript_path": path});
        sandbox.hook("summary", stop.to_string());
    }
    let events = sandbox.events();
    assert_eq!(events.len(), paths.len());
    assert!(events.iter().all(|event| event["event"]["last_assistant_message"] == ""));
}

/// Runs `save` in its own namespaces, after these shell commands. `None` where that is not allowed.
fn in_own_world(sandbox: &Sandbox, prepare: &str) -> Option<Run> {
    let mut command = sandbox.in_own_world(&format!("{prepare} && cd / && exec \"$0\" save"))?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(good().to_string().as_bytes());
    let output = child.wait_with_output().unwrap();
    Some(Run {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    })
}

#[test]
fn full_and_read_only_disks_and_no_home_at_all_do_no_harm() {
    for prepare in [
        "mount -t tmpfs -o size=4k tmpfs \"$HOME\"",
        "mount -t tmpfs -o size=64k tmpfs \"$HOME\" && (cat /dev/zero >\"$HOME/full\" \
         2>/dev/null; true)",
        "mount -t tmpfs -o ro tmpfs \"$HOME\"",
        "mount --bind /dev/null /etc/passwd && unset HOME",
        "export HOME=/proc",
        "export HOME=relative",
    ] {
        let sandbox = Sandbox::new();
        if let Some(run) = in_own_world(&sandbox, prepare) {
            run.answer();
        }
    }
}

#[test]
fn a_data_directory_of_another_user_does_no_harm() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.data()).unwrap();
    fs::set_permissions(sandbox.data(), fs::Permissions::from_mode(0o500)).unwrap();
    // Only root can change the owner of a directory, and only root needs this case: others cannot
    // write to it anyway.
    let _ = std::os::unix::fs::chown(sandbox.data(), Some(12345), None);
    if let Some(run) = in_own_world(&sandbox, "true") {
        run.answer();
        assert_eq!(fs::read_dir(sandbox.data()).unwrap().count(), 0);
    }
}

#[test]
fn files_where_directories_should_be_do_no_harm() {
    for obstacle in [".claude-mem", ".claude-mem/log", ".claude-mem/logs", ".claude-mem/private"] {
        let sandbox = Sandbox::new();
        sandbox.write(obstacle, "in the way");
        for hook in HOOKS {
            sandbox.hook(hook, good().to_string());
        }
        let prompt = json!({"session_id": "s1", "hook_event_name": "UserPromptSubmit", "prompt": "<private>x"});
        sandbox.hook("new", prompt.to_string());
        assert_eq!(sandbox.read(obstacle), "in the way");
        if obstacle.ends_with("/log") {
            assert!(sandbox.diagnostics().contains("not recorded"), "{}", sandbox.diagnostics());
        }
        if obstacle.ends_with("/private") {
            assert!(
                sandbox.diagnostics().contains("cannot mark the turn as private"),
                "{}",
                sandbox.diagnostics()
            );
        }
    }
}

#[test]
fn without_a_home_the_data_directory_is_enough() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["save"]);
    command.env_remove("HOME").env("CLAUDE_MEM_DATA_DIR", sandbox.data());
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(good().to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.events().len(), 1);
}

#[test]
fn closed_standard_streams_are_not_reused_by_the_log() {
    let sandbox = Sandbox::new();
    let input = sandbox.write("input.json", &good().to_string());
    for streams in ["< \"$1\" >&-", "< \"$1\" >&- 2>&-", "<&- >&- 2>&-"] {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec \"$0\" save {streams}")]).arg(binary()).arg(&input);
        shell.env_clear().env("HOME", sandbox.home());
        assert!(shell.status().unwrap().success(), "{streams}");
    }
    let kinds: Vec<_> = sandbox.events().iter().map(|event| event["kind"].clone()).collect();
    assert_eq!(kinds, ["ToolUsed", "ToolUsed"]);
    sandbox.run(&["verify"]).ok();
}

#[test]
fn a_response_that_is_not_read_is_not_an_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["save"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut child = command.stdin(Stdio::piped()).stdout(writer).spawn().unwrap();
    child.stdin.take().unwrap().write_all(good().to_string().as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(sandbox.events().len(), 1);
}
