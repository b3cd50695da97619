//! `claude-mem settings`.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::sandbox::Sandbox;

#[test]
fn a_setting_can_be_set_shown_and_reset() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.run(&["settings", "get", "provider"]).ok(), "auto\n");
    let set = sandbox.run(&["settings", "set", "provider", "EXTRACT"]);
    assert_eq!(set.stderr, "CLAUDE_MEM_PROVIDER is `extract` (from settings.json)\n");
    assert_eq!(
        sandbox.read(".claude-mem/settings.json"),
        "{\n  \"CLAUDE_MEM_PROVIDER\": \"extract\"\n}\n"
    );
    assert_eq!(sandbox.run(&["settings", "get", "CLAUDE_MEM_PROVIDER"]).ok(), "extract\n");
    let in_environment = [("CLAUDE_MEM_PROVIDER", "claude")];
    let run = sandbox.run_with(&["settings", "get", "provider", "--json"], &in_environment, "");
    let described: serde_json::Value = serde_json::from_str(&run.ok()).unwrap();
    assert_eq!(
        (&described["value"], &described["source"]),
        (&"claude".into(), &"environment".into())
    );
    let unset = sandbox.run(&["settings", "unset", "provider"]);
    assert_eq!(unset.stderr, "CLAUDE_MEM_PROVIDER is `auto`, the default\n");
    assert_eq!(sandbox.run(&["settings", "get", "provider"]).ok(), "auto\n");
    let mode = fs::metadata(sandbox.data()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn looking_at_settings_writes_nothing() {
    let sandbox = Sandbox::new();
    assert!(sandbox.run(&["settings"]).ok().contains("CLAUDE_MEM_SYNC=default"));
    assert!(!sandbox.data().exists());
}

#[test]
fn settings_are_listed_by_group_with_their_units() {
    let sandbox = Sandbox::new();
    let listed = sandbox.run(&["settings"]).ok();
    let headings: Vec<&str> = listed.lines().filter(|line| line.starts_with('#')).collect();
    assert_eq!(
        headings,
        [
            "# Recording",
            "# Distilling",
            "# Context",
            "# Search",
            "# Backup and sync",
            "# Retention",
            "# Worker"
        ]
    );
    let idle = "\
        CLAUDE_MEM_WORKER_IDLE=1800  # Idle timeout (seconds): The worker stops after this long \
        without work. 0 means never.";
    assert_eq!(listed.lines().last(), Some(idle));
    let values = "Accepts one of `auto`, `claude`, `anthropic`, `openai`, `extract`.\n";
    assert!(listed.contains(values), "{listed}");
    let described = sandbox.run(&["settings", "get", "daily_cost_max", "--json"]).ok();
    let described: serde_json::Value = serde_json::from_str(&described).unwrap();
    assert_eq!(
        ["group", "label", "unit", "default"].map(|field| described[field].as_str().unwrap()),
        ["Distilling", "Daily cost limit", "US dollars", "2"]
    );
}

#[test]
fn a_list_without_changes_reports_it() {
    let sandbox = Sandbox::new();
    // The sandbox itself sets these.
    let list = |arguments: &[&str]| {
        let mut command = sandbox.command(arguments);
        command.env_remove("CLAUDE_MEM_WORKER_AUTOSTART").env_remove("CLAUDE_MEM_SEMANTIC");
        let output = command.output().unwrap();
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let none = "all settings have their default values\n";
    assert_eq!(list(&["settings", "--changed"]), ["", none]);
    assert_eq!(list(&["settings", "--changed", "--json"]), ["", ""]);
    sandbox.run(&["settings", "set", "sync", "always"]).ok();
    let [changed, more] = list(&["settings", "--changed"]);
    assert!(changed.contains("CLAUDE_MEM_SYNC=always") && more.is_empty(), "{changed}{more}");
}

#[test]
fn wrong_keys_and_values_are_explained_and_change_nothing() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.run(&["settings", "set", "CLAUDE_MEM_PROVIDR", "x"]).fails(2),
        "error: there is no setting `CLAUDE_MEM_PROVIDR`\n\
         hint: did you mean `CLAUDE_MEM_PROVIDER`?\n"
    );
    assert_eq!(
        sandbox.run(&["settings", "set", "sync", "often"]).fails(2),
        "error: CLAUDE_MEM_SYNC cannot be `often`: expected one of `default`, `always`\n\
         note: nothing was changed\n"
    );
    assert!(!sandbox.data().join("settings.json").exists());
}

#[test]
fn a_broken_file_is_reported_and_never_overwritten() {
    let sandbox = Sandbox::new();
    sandbox.write(".claude-mem/settings.json", "{\"CLAUDE_MEM_MODEL\": oops");
    let run = sandbox.run(&["settings", "get", "model"]);
    assert!(run.stderr.contains("nothing is recorded until it can be read"), "{run:?}");
    assert_eq!(run.ok(), "claude-haiku-4-5\n");
    assert!(sandbox.run(&["settings", "set", "model", "x"]).fails(1).contains("not valid JSON"));
    assert_eq!(sandbox.read(".claude-mem/settings.json"), "{\"CLAUDE_MEM_MODEL\": oops");
}

#[test]
fn keys_are_never_shown() {
    let sandbox = Sandbox::new();
    let key = "sk-0123456789-abcdef";
    sandbox.run(&["settings", "set", "openai_api_key", key]).ok();
    for arguments in [&["settings", "list"][..], &["settings", "list", "--json"]] {
        let listed = sandbox.run(arguments).ok();
        assert!(!listed.contains(key) && listed.contains("…cdef"), "{listed}");
    }
    assert!(!sandbox.data().join("settings.json").exists());
}

#[test]
fn without_a_home_directory_there_is_a_clear_error() {
    let sandbox = Sandbox::new();
    let output = sandbox.command(&["settings", "get", "sync"]).env_remove("HOME").output().unwrap();
    let is_answered = output.status.success() && output.stdout == b"default\n";
    let is_explained = String::from_utf8_lossy(&output.stderr).contains("CLAUDE_MEM_DATA_DIR");
    assert!(is_answered || is_explained, "{output:?}");
}

#[test]
fn the_current_project_can_be_disabled_and_enabled() {
    let sandbox = Sandbox::new();
    let key = fs::canonicalize(sandbox.home()).unwrap().display().to_string();
    assert_eq!(sandbox.run(&["settings", "project"]).ok(), format!("home ({key}): recorded\n"));
    sandbox.run(&["settings", "project", "off"]).ok();
    sandbox.run(&["settings", "project", "off"]).ok();
    assert!(sandbox.run(&["settings", "project"]).ok().ends_with("CLAUDE_MEM_DISABLED_PROJECTS\n"));
    assert_eq!(sandbox.run(&["settings", "get", "disabled_projects"]).ok(), format!("{key}\n"));
    sandbox.run(&["settings", "project", "on"]).ok();
    assert_eq!(sandbox.read(".claude-mem/settings.json"), "{}\n");
    let excluded_by = |pattern| {
        let excluded = [("CLAUDE_MEM_EXCLUDED_PROJECTS", pattern)];
        let shown = sandbox.run_with(&["settings", "project", "--json"], &excluded, "").ok();
        serde_json::from_str::<serde_json::Value>(&shown).unwrap()["excluded_by"].clone()
    };
    assert_eq!(excluded_by("~/*"), serde_json::Value::Null, "what is below, not home itself");
    assert_eq!(excluded_by("~/**"), "CLAUDE_MEM_EXCLUDED_PROJECTS");
}

#[test]
fn a_pattern_that_would_exclude_nothing_is_refused_and_a_missing_folder_reported() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.home().join("here")).unwrap();
    let set = |patterns| sandbox.run(&["settings", "set", "EXCLUDED_PROJECTS", patterns]);
    assert_eq!(
        set("~/here,~/[s]ecret").fails(2),
        "error: CLAUDE_MEM_EXCLUDED_PROJECTS cannot be `~/here,~/[s]ecret`: expected folders such \
         as `~/clients/*`: in `~/[s]ecret`, `[` has no meaning; write `?` for any character\n\
         note: nothing was changed\n"
    );
    let run = set("~/here, ~/gone, */any");
    assert_eq!(run.stderr.lines().nth(1), Some("warning: there is no folder `~/gone` yet"));
    let value = sandbox.run(&["settings", "get", "EXCLUDED_PROJECTS"]).ok();
    assert_eq!(value, "~/here,~/gone,*/any\n");
    let invalid = [("CLAUDE_MEM_EXCLUDED_PROJECTS", "$HOME/secret")];
    let listed = sandbox.run_with(&["settings"], &invalid, "").stderr;
    assert!(listed.contains("until that is corrected, nothing is recorded"), "{listed}");
}
