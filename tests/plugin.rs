//! `claude-mem generate plugin`, validated by the real client.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    process::{Command, Stdio},
};

use claude_mem_tools::{
    client::Client,
    model::{Answer, Script, Server},
};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, binary, ours, real_client};

/// A closed port: validating and installing a plugin calls no model.
const NO_MODEL: &str = "http://127.0.0.1:9";

#[test]
fn the_real_client_accepts_the_plugin() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    sandbox.run(&["plugin", "npm", "--npm", "@scope/claude-mem"]).ok();
    let market = sandbox.home().join("market");
    let client = real_client(NO_MODEL);
    let market = market.to_str().unwrap();
    let plugin = format!("{market}/plugin");
    let of_npm = sandbox.home().join("npm/plugin");
    for arguments in [
        &["plugin", "validate", market, "--strict"][..],
        &["plugin", "validate", &plugin, "--strict"],
        &["plugin", "validate", of_npm.to_str().unwrap(), "--strict"],
        &["plugin", "marketplace", "add", market],
        &["plugin", "install", "mem@mem-local"],
    ] {
        let outcome = client.call(arguments).unwrap();
        assert!(outcome.status.success(), "{arguments:?}: {outcome:?}");
    }
}

/// Has the client run the commands that `claude-mem generate plugin DIR` prints, and returns the
/// marketplace's path.
fn install_as_printed(client: &Client, dir: &str) -> String {
    let mut command = Command::new(binary());
    command.args(["plugin", dir]).env_clear().env("HOME", client.home()).current_dir(client.cwd());
    let result = String::from_utf8(command.output().unwrap().stderr).unwrap();
    let commands: Vec<&str> =
        result.lines().filter_map(|line| line.strip_prefix("  claude ")).collect();
    assert_eq!(commands.len(), 2, "{result}");
    for command in &commands {
        let arguments: Vec<&str> = command.split(' ').map(|word| word.trim_matches('"')).collect();
        let outcome = client.call(&arguments).unwrap();
        assert!(outcome.status.success(), "{command}: {outcome:?}");
    }
    client.cwd().join(dir).to_str().unwrap().to_owned()
}

#[test]
fn the_client_accepts_the_commands_as_printed() {
    let client = real_client(NO_MODEL);
    install_as_printed(&client, "plug");
}

/// Both are registered: each event is recorded once, and memory is given once.
#[test]
fn the_plugin_next_to_an_installation_records_nothing_twice() {
    let script = Script::new()
        .then(Answer::tools([("Bash", json!({"command": "echo hi", "description": "scripted"}))]))
        .then(Answer::text("All done."))
        .then(Answer::text("Nothing to do."));
    let server = Server::start(script).unwrap();
    let client = real_client(&server.url()).env("CLAUDE_MEM_WORKER_AUTOSTART", "false");
    let events = || -> Vec<String> {
        let listed = ours(&client, &["log", "--json"]);
        let kind = |line: &str| serde_json::from_str::<Value>(line).unwrap()["kind"].to_string();
        listed.lines().map(|line| kind(line).trim_matches('"').to_owned()).collect()
    };
    install_as_printed(&client, "plug");
    ours(&client, &["install"]);
    ours(&client, &["remember", "The walrus sleeps at noon"]);
    assert!(client.prompt("do some work").unwrap().status.success());
    let once = [
        "SessionStarted",
        "MemoryInjected",
        "PromptSubmitted",
        "ToolUsed",
        "SummaryRequested",
        "SessionEnded",
    ];
    assert_eq!(events()[1..], once);
    let printed = server.requests()[0].all_text();
    assert_eq!(printed.matches("<claude-mem-context>").count(), 1, "{printed}");
    // Without the installation the plugin records again.
    ours(&client, &["uninstall"]);
    assert!(client.prompt("once more").unwrap().status.success());
    let once =
        ["SessionStarted", "MemoryInjected", "PromptSubmitted", "SummaryRequested", "SessionEnded"];
    assert_eq!(events()[7..], once);
}

#[test]
fn the_plugin_calls_its_own_copy_of_the_binary() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    let root = sandbox.home().join("market/plugin");
    let mode = fs::metadata(root.join("bin/claude-mem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let hooks: Value =
        serde_json::from_str(&sandbox.read("market/plugin/hooks/hooks.json")).unwrap();
    let command = hooks["hooks"]["PostToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    let expanded = command.replace("${CLAUDE_PLUGIN_ROOT}", root.to_str().unwrap());
    let answer = Command::new("/bin/sh")
        .args(["-c", &expanded])
        .env_clear()
        .env("HOME", sandbox.home())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(answer.status.success());
    let answer: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["continue"], true);
}

#[test]
fn a_plugin_overwrites_itself_and_nothing_else() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    sandbox.run(&["plugin", "market"]).ok();
    sandbox.write("other/file", "mine");
    let error = sandbox.run(&["plugin", "other"]).fails(1);
    assert!(error.starts_with("error: other is not empty\nnote: nothing was written\n"), "{error}");
    assert_eq!(fs::read_dir(sandbox.home().join("other")).unwrap().count(), 1);
}
