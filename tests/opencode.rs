//! The plugin for OpenCode, run by Node.

use std::process::Command;

use serde_json::Value;

use crate::sandbox::Sandbox;

#[test]
fn the_plugin_of_opencode_reports_each_turn_once_with_its_own_answer() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install", "--client", "opencode"]).ok();
    let plugin = sandbox.read(".config/opencode/plugins/claude-mem.js");
    sandbox.write("claude-mem.mjs", &plugin);
    let mut node = Command::new("node");
    node.args(["--input-type=module", "-e", include_str!("fixtures/opencode/session.mjs")]);
    node.env("HOME", sandbox.home()).env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
    let output = node.current_dir(sandbox.home()).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let events = sandbox.events();
    let events = events.iter().filter(|event| event["kind"] != "MemoryInjected");
    let line = |event: &Value| {
        let of = &event["event"];
        let names = ["prompt", "tool", "last_assistant_message", "source"];
        let text = names.iter().find_map(|name| of[*name].as_str()).unwrap_or_default();
        let agent = of["agent_id"].as_str().unwrap_or_default();
        let [session, kind] = ["session", "kind"].map(|name| event[name].as_str().unwrap());
        format!("{session}/{agent} {kind} {text}")
    };
    let events: Vec<String> = events.map(line).collect();
    let expected = [
        "s-1/ SessionStarted startup",
        "s-1/ PromptSubmitted make the sum right",
        "s-1/ ToolUsed Read",
        "s-1/s-2 ToolUsed Bash",
        "s-1/s-2 SummaryRequested Found it.",
        "s-1/ SummaryRequested The sum is right now.",
        "s-1/ PromptSubmitted again",
        "s-1/ SummaryRequested ",
        "s-3/ SessionStarted resume",
        "s-3/ PromptSubmitted go on",
    ];
    assert_eq!(events, expected);
}
