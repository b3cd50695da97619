//! `claude-mem install` and `uninstall`.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use serde_json::Value;

use crate::sandbox::{Sandbox, binary};

const SETTINGS: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\"Stop\": [{\"hooks\": \
    [{\"type\": \"command\", \"command\": \"say done\"}]}]},\n    \"cost\": 0.10\n}";
const STATE: &str =
    "{\n  \"numStartups\": 3,\n  \"lastCost\": 0.30000000000000004,\n  \"projects\": {}\n}";

fn json(sandbox: &Sandbox, path: &str) -> Value {
    serde_json::from_str(&sandbox.read(path)).unwrap()
}

fn with_claude_code() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".claude/settings.json", SETTINGS);
    sandbox.write(".claude.json", STATE);
    sandbox
}

#[test]
fn the_installed_hooks_are_those_the_client_runs() {
    let sandbox = with_claude_code();
    sandbox.run(&["install"]).ok();
    let settings = json(&sandbox, ".claude/settings.json");
    let mut events: Vec<&str> =
        settings["hooks"].as_object().unwrap().keys().map(String::as_str).collect();
    events.sort_unstable();
    assert_eq!(
        events,
        [
            "PostToolUse",
            "PostToolUseFailure",
            "PreToolUse",
            "SessionEnd",
            "SessionStart",
            "Stop",
            "SubagentStop",
            "UserPromptSubmit"
        ]
    );
    let hook = &settings["hooks"]["SessionEnd"][0]["hooks"][0];
    assert!(hook["timeout"].as_u64().unwrap() <= 10 && hook.get("async").is_none());
    let answer = Command::new("/bin/sh")
        .args(["-c", hook["command"].as_str().unwrap()])
        .env_clear()
        .env("HOME", sandbox.home())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(answer.status.success() && answer.stderr.is_empty(), "{answer:?}");
    let server = &json(&sandbox, ".claude.json")["mcpServers"]["claude-mem"];
    assert_eq!(server["command"], binary().to_str().unwrap());
    assert_eq!(server["args"][0], "mcp");
    assert!(sandbox.read(".claude.json").contains("0.30000000000000004"));
    assert!(sandbox.read(".claude/skills/mem-search/SKILL.md").contains("name: mem-search"));
}

#[test]
fn newer_events_are_registered_for_clients_that_know_them() {
    let sandbox = with_claude_code();
    let client = sandbox.write("bin/claude", "");
    fs::set_permissions(&client, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let environment = [("CLAUDE_CODE_PATH", client.to_str().unwrap())];
    for (version, is_known) in [("2.1.78", true), ("2.1.77", false), ("3.0.0", true), ("", false)] {
        fs::write(&client, format!("#!/bin/sh\necho '{version} (Claude Code)'\n")).unwrap();
        sandbox.run_with(&["install"], &environment, "").ok();
        let hooks = json(&sandbox, ".claude/settings.json")["hooks"].clone();
        assert_eq!(hooks.get("StopFailure").is_some(), is_known, "{version}");
        assert!(hooks.get("Stop").is_some(), "{version}");
    }
    fs::write(&client, "#!/bin/sh\necho 2.1.325\n").unwrap();
    sandbox.run_with(&["install"], &environment, "").ok();
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(".claude/settings.json"), SETTINGS);
}

#[test]
fn uninstalling_leaves_every_file_as_it_was_byte_for_byte() {
    let sandbox = with_claude_code();
    sandbox.run(&["install"]).ok();
    sandbox.run(&["install"]).ok();
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(".claude/settings.json"), SETTINGS);
    assert_eq!(sandbox.read(".claude.json"), STATE);
    assert!(!sandbox.home().join(".claude/skills/mem-search").exists());
    assert!(!sandbox.home().join(".claude/commands/mem.md").exists());
    assert!(!sandbox.data().join("install.json").exists());
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(".claude/settings.json"), SETTINGS);
}

#[test]
fn one_file_that_cannot_be_changed_keeps_no_entries_of_ours_in_the_others() {
    let sandbox = with_claude_code();
    let (config, hooks) = ("\u{feff}# mine\r\nmodel = \"m\"", "{\r\n  \"hooks\": {}\r\n}");
    sandbox.write(".codex/config.toml", config);
    sandbox.write(".codex/hooks.json", hooks);
    let gemini = "// mine\n{\"hooks\":{}, \"mcpServers\":{\"a\":{}}}";
    sandbox.write(".gemini/settings.json", gemini);
    sandbox.run(&["install", "--all"]).ok();
    assert_ne!(sandbox.read(".codex/config.toml"), config);
    // A file with our entries that was damaged later: the entries to remove cannot be found.
    let broken = sandbox.read(".claude/settings.json") + "}";
    sandbox.write(".claude/settings.json", &broken);
    let failed = sandbox.run(&["uninstall"]).fails(1);
    assert!(failed.contains("settings.json"), "{failed}");
    assert_eq!(sandbox.read(".claude/settings.json"), broken);
    assert_eq!(sandbox.read(".codex/config.toml"), config);
    assert_eq!(sandbox.read(".codex/hooks.json"), hooks);
    assert_eq!(sandbox.read(".gemini/settings.json"), gemini);
    assert!(!sandbox.home().join(".copilot").exists(), "{:?}", names(&sandbox.home()));
    // Once the file is repaired, the next try restores it.
    sandbox.write(".claude/settings.json", &broken[..broken.len() - 1]);
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(".claude/settings.json"), SETTINGS);
    // Broken, but not ours.
    sandbox.write(".claude/settings.json", "{\"theme\": }");
    sandbox.run(&["uninstall"]).ok();
}

/// Claude Code 2.1.325 loads nothing of such a file, so hooks in it would never run.
#[test]
fn settings_of_claude_code_with_comments_are_not_changed_and_the_doctor_names_them() {
    let sandbox = with_claude_code();
    sandbox.run(&["install"]).ok();
    for text in ["// mine\n{}\n", "{\"theme\": \"dark\",}"] {
        sandbox.write(".claude/settings.json", text);
        let failed = sandbox.run(&["install", "--client", "claude-code"]).fails(1);
        assert!(failed.contains("Claude Code does not load it"), "{failed}");
        assert_eq!(sandbox.read(".claude/settings.json"), text);
        let found = sandbox.run(&["doctor"]);
        assert!(found.stdout.contains("settings.json: Claude Code does not load it"), "{found:?}");
    }
}

#[test]
fn files_that_did_not_exist_are_deleted_again() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install"]).ok();
    sandbox.run(&["uninstall"]).ok();
    assert!(!sandbox.home().join(".claude").exists(), "not even an empty folder");
    assert!(!sandbox.home().join(".claude.json").exists());
}

#[test]
fn uninstalling_removes_only_the_folders_it_created() {
    let sandbox = with_claude_code();
    fs::create_dir(sandbox.home().join(".claude/commands")).unwrap();
    sandbox.run(&["install"]).ok();
    sandbox.run(&["install"]).ok();
    sandbox.write(".claude/skills/other/SKILL.md", "of the user");
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(names(&sandbox.home().join(".claude")), ["commands", "settings.json", "skills"]);
    assert_eq!(names(&sandbox.home().join(".claude/skills")), ["other"]);
    assert!(!sandbox.data().join("install.json").exists());
}

#[test]
fn changes_of_others_in_between_stay() {
    let sandbox = with_claude_code();
    sandbox.run(&["install"]).ok();
    let mut settings = json(&sandbox, ".claude/settings.json");
    settings["theme"] = "dark".into();
    sandbox.write(".claude/settings.json", &settings.to_string());
    sandbox.write(".claude/commands/mem.md", "my own words");
    sandbox.run(&["install"]).ok();
    sandbox.run(&["uninstall"]).ok();
    let mut expected: Value = serde_json::from_str(SETTINGS).unwrap();
    expected["theme"] = "dark".into();
    assert_eq!(json(&sandbox, ".claude/settings.json"), expected);
    assert_eq!(sandbox.read(".claude/commands/mem.md"), "my own words");
}

#[test]
fn installing_again_writes_nothing() {
    let sandbox = with_claude_code();
    sandbox.run_with(&["install"], &[("CLAUDE_MEM_NOW", "2026-03-01T12:00:00Z")], "").ok();
    let before = fs::metadata(sandbox.home().join(".claude/settings.json")).unwrap();
    sandbox.run(&["install"]).ok();
    let after = fs::metadata(sandbox.home().join(".claude/settings.json")).unwrap();
    assert_eq!(before.modified().unwrap(), after.modified().unwrap());
    let backups = ["20260301T120000Z-claude-settings.json", "20260301T120000Z-home-claude.json"];
    assert_eq!(names(&sandbox.data().join("backups")), backups);
}

#[test]
fn a_broken_file_is_explained_and_nothing_is_written_anywhere() {
    for (broken, text) in [(".claude/settings.json", "{\"a\": "), (".claude.json", "[]")] {
        let sandbox = with_claude_code();
        sandbox.write(broken, text);
        let error = sandbox.run(&["install"]).fails(1);
        assert!(error.contains(broken) && error.contains("hint: "), "{error}");
        assert_eq!(sandbox.read(broken), text);
        assert!(!sandbox.data().exists() && !sandbox.home().join(".claude/skills").exists());
        let other = if broken == ".claude.json" {
            (".claude/settings.json", SETTINGS)
        } else {
            (".claude.json", STATE)
        };
        assert_eq!(sandbox.read(other.0), other.1);
    }
}

#[test]
fn a_project_installation_uses_the_current_folder() {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("shop");
    fs::create_dir(&shop).unwrap();
    let run = |arguments: &[&str]| {
        assert!(sandbox.command(arguments).current_dir(&shop).output().unwrap().status.success());
    };
    run(&["install", "--project"]);
    assert!(sandbox.read("shop/.claude/settings.json").contains("SessionStart"));
    assert!(sandbox.read("shop/.mcp.json").contains("alwaysLoad"));
    assert!(!sandbox.home().join(".claude").exists());
    // Works from any directory, because the manifest has the paths.
    sandbox.run(&["uninstall"]).ok();
    assert!(!shop.join(".mcp.json").exists() && !shop.join(".claude/settings.json").exists());
}

#[test]
fn two_installations_from_two_places_leave_no_trace() {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("shop");
    fs::create_dir_all(&shop).unwrap();
    symlink(binary(), sandbox.home().join("claude-mem")).unwrap();
    let install = |program: &Path| {
        let mut command = Command::new(program);
        command.args(["install", "--project"]).env_clear().env("HOME", sandbox.home());
        assert!(command.current_dir(&shop).output().unwrap().status.success());
    };
    install(&sandbox.home().join("claude-mem"));
    let mut settings = json(&sandbox, "shop/.claude/settings.json");
    settings["theme"] = "dark".into();
    sandbox.write("shop/.claude/settings.json", &settings.to_string());
    install(binary());
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read("shop/.claude/settings.json"), r#"{"theme":"dark"}"#);
}

#[test]
fn the_clients_own_directory_may_be_elsewhere() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.home().join("config");
    let environment = [("CLAUDE_CONFIG_DIR", elsewhere.to_str().unwrap())];
    sandbox.run_with(&["install"], &environment, "").ok();
    assert!(elsewhere.join("settings.json").exists() && elsewhere.join(".claude.json").exists());
    assert!(!sandbox.home().join(".claude").exists());
}

#[test]
fn printing_writes_nothing() {
    let sandbox = Sandbox::new();
    let printed: Value = serde_json::from_str(&sandbox.run(&["install", "--print"]).ok()).unwrap();
    assert!(printed["hooks"]["Stop"].is_array() && printed["mcpServers"]["claude-mem"].is_object());
    assert_eq!(fs::read_dir(sandbox.home()).unwrap().count(), 0);
}

#[test]
fn hooks_call_a_link_to_the_binary() {
    let sandbox = Sandbox::new();
    let bin = sandbox.home().join("my bin");
    fs::create_dir(&bin).unwrap();
    symlink(binary(), bin.join("claude-mem")).unwrap();
    let through_path = Command::new("/bin/sh")
        .args(["-c", "claude-mem install --print"])
        .env_clear()
        .env("HOME", sandbox.home())
        .env("PATH", &bin)
        .output()
        .unwrap();
    let printed: Value = serde_json::from_slice(&through_path.stdout).unwrap();
    let command = printed["hooks"]["Stop"][0]["hooks"][0]["command"].as_str().unwrap();
    assert_eq!(command, format!("\"{}\" summary", bin.join("claude-mem").display()));
}

#[test]
fn another_memory_is_named() {
    let sandbox = with_claude_code();
    sandbox.write(
        ".claude/plugins/installed_plugins.json",
        r#"{"version":2,"plugins":{"claude-mem@thedotmack":[{"scope":"user"}]}}"#,
    );
    let run = sandbox.run(&["install"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stderr
            .contains("the TypeScript claude-mem is active as the plugin claude-mem@thedotmack")
    );
    assert!(run.stderr.contains("`claude plugin disable claude-mem@thedotmack`"), "{}", run.stderr);
}

#[test]
fn memory_is_deleted_only_on_request_and_foreign_files_stay() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install"]).ok();
    sandbox.write(".claude-mem/log/0000000000000001.seg", "memory");
    sandbox.write(".claude-mem/notes.txt", "mine");
    let error = sandbox.run(&["uninstall", "--purge"]).fails(2);
    assert!(error.contains("`--yes`"), "{error}");
    assert!(sandbox.data().join("install.json").exists(), "a refusal changes nothing");
    sandbox.run(&["uninstall"]).ok();
    assert!(sandbox.data().join("log/0000000000000001.seg").exists());
    let run = sandbox.run(&["uninstall", "--purge", "--yes"]);
    assert!(run.stdout.contains("kept ~/.claude-mem/notes.txt\n"), "{run:?}");
    assert_eq!(names(&sandbox.data()), ["notes.txt"]);
    fs::remove_file(sandbox.data().join("notes.txt")).unwrap();
    sandbox.run(&["uninstall", "--purge", "--yes"]).ok();
    assert!(!sandbox.data().exists());
}

#[test]
fn the_other_memorys_data_is_never_deleted() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/claude-mem.db", "theirs");
    sandbox.write(".claude-mem/settings.json", "{}");
    sandbox.write(".claude-mem/memory.db", "ours");
    sandbox.run(&["uninstall", "--purge", "--yes"]).ok();
    assert_eq!(names(&sandbox.data()), ["claude-mem.db", "settings.json"]);
}

fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
