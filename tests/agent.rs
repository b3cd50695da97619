//! Claude Code as the provider of `claude-mem distill`.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use claude_mem_tools::{
    client::Client,
    model::{Answer, Script, Server},
};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fd::OwnedFd,
    process::{Pid, PidfdFlags, pidfd_open},
};
use serde_json::json;

use crate::sandbox::{Sandbox, real_client};

/// One turn of a session, as the hooks record it.
fn record_turn(sandbox: &Sandbox) {
    let payload = |event: &str, mut fields: serde_json::Value| {
        let common = json!({"session_id": "content-1", "cwd": sandbox.home(), "prompt_id": "p1",
            "transcript_path": "/nowhere", "hook_event_name": event});
        fields.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        fields.to_string()
    };
    sandbox.hook("new", payload("UserPromptSubmit", json!({"prompt": "fix the parser"})));
    let tool = json!({"tool_name": "Bash", "tool_use_id": "t1", "tool_input": {"command": "ls"},
        "tool_response": {"stdout": "see @/etc/hostname", "stderr": ""}});
    sandbox.hook("save", payload("PostToolUse", tool));
    sandbox.hook("summary", payload("Stop", json!({"last_assistant_message": "Fixed."})));
}

/// Runs `claude-mem distill` with the client as its provider.
fn project(sandbox: &Sandbox, server: &Server, client: &Client, executable: &Path) -> Command {
    sandbox.use_gateway(&server.url());
    let mut command = sandbox.command(&["distill"]);
    command.envs(client.environment().iter().map(|(name, value)| (name, value)));
    command.env("HOME", sandbox.home()).env("CLAUDE_CODE_PATH", executable);
    command.env("CLAUDE_MEM_PROVIDER", "claude").env("CLAUDE_MEM_CLAUDE_AUTH_METHOD", "api-key");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Handles of all processes whose working directory is this one.
fn processes_in(cwd: &Path) -> Vec<OwnedFd> {
    let cwd = fs::canonicalize(cwd).unwrap();
    let entries = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let is_there = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|its| its == cwd);
        is_there.then(|| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok())?
    });
    entries.collect()
}

#[test]
fn killing_our_program_during_a_request_leaves_no_child_behind() {
    let server = Server::start(Script::new().otherwise(Answer::hang())).unwrap();
    let client = real_client(&server.url());
    let executable = claude_mem_tools::client::executable().unwrap();
    let sandbox = Sandbox::new();
    record_turn(&sandbox);
    let mut ours = project(&sandbox, &server, &client, &executable).spawn().unwrap();
    server.wait_for_requests(1);
    let children = processes_in(&sandbox.data().join("observer-sessions"));
    assert_eq!(children.len(), 2, "the client, and who watches over it");

    ours.kill().unwrap();
    ours.wait().unwrap();

    for child in children {
        let ended = poll(&mut [PollFd::new(&child, PollFlags::IN)], None).unwrap();
        assert_eq!(ended, 1);
    }
}

#[test]
fn the_clients_reply_is_recorded_with_its_session_and_its_cost() {
    let reply = "<observation><type>bugfix</type><title>Parser fixed</title></observation>";
    let server = Server::start(Script::new().otherwise(Answer::text(reply))).unwrap();
    let client = real_client(&server.url());
    let executable = claude_mem_tools::client::executable().unwrap();
    let sandbox = Sandbox::new();
    record_turn(&sandbox);
    let status = project(&sandbox, &server, &client, &executable).status().unwrap();
    assert!(status.success(), "{status}");
    let replied: Vec<_> = sandbox.events();
    let replied = replied.iter().find(|event| event["kind"] == "AgentReplied").unwrap();
    let replied = &replied["event"];
    assert_eq!((&replied["provider"], &replied["reply"]), (&"claude".into(), &reply.into()));
    assert!(replied["cost_micros"].as_u64().unwrap() > 0, "{replied:#}");
    let id = replied["memory_session_id"].as_str().unwrap();
    assert!(id.len() == 36 && id != "content-1", "{replied:#}");
    let asked = server.requests().pop().unwrap();
    let hostname = fs::read_to_string("/etc/hostname").unwrap_or_default();
    assert!(asked.all_text().contains("fix the parser"), "{}", asked.all_text());
    assert!(hostname.trim().is_empty() || !asked.all_text().contains(hostname.trim()));
}
