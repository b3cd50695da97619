//! `claude-mem plugin`, judged by the real client.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::sandbox::{Sandbox, real_client};

/// Nobody listens there: validating and installing a plugin asks no model.
const NO_MODEL: &str = "http://127.0.0.1:9";

#[test]
fn the_real_client_accepts_the_plugin() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    let market = sandbox.home().join("market");
    let client = real_client(NO_MODEL);
    let market = market.to_str().unwrap();
    let plugin = format!("{market}/plugin");
    for arguments in [
        &["plugin", "validate", market, "--strict"][..],
        &["plugin", "validate", &plugin, "--strict"],
        &["plugin", "marketplace", "add", market],
        &["plugin", "install", "mem@mem-local"],
    ] {
        let outcome = client.call(arguments).unwrap();
        assert!(outcome.status.success(), "{arguments:?}: {outcome:?}");
    }
}

#[test]
fn the_plugin_calls_its_own_copy_of_the_binary() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    let root = sandbox.home().join("market/plugin");
    let mode = fs::metadata(root.join("bin/claude-mem")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    let hooks: serde_json::Value =
        serde_json::from_str(&sandbox.read("market/plugin/hooks/hooks.json")).unwrap();
    let command = hooks["hooks"]["PostToolUse"][0]["hooks"][0]["command"].as_str().unwrap();
    let expanded = command.replace("${CLAUDE_PLUGIN_ROOT}", root.to_str().unwrap());
    let answer = std::process::Command::new("/bin/sh")
        .args(["-c", &expanded])
        .env_clear()
        .env("HOME", sandbox.home())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(answer.status.success());
    let answer: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(answer["continue"], true);
}

#[test]
fn a_plugin_is_written_again_over_itself_and_never_over_something_else() {
    let sandbox = Sandbox::new();
    sandbox.run(&["plugin", "market"]).ok();
    sandbox.run(&["plugin", "market"]).ok();
    sandbox.write("other/file", "mine");
    let error = sandbox.run(&["plugin", "other"]).fails(1);
    assert!(error.starts_with("error: other is not empty\nnote: nothing was written\n"), "{error}");
    assert_eq!(fs::read_dir(sandbox.home().join("other")).unwrap().count(), 1);
}
