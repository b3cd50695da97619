//! `claude-mem doctor`.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use crate::{hook_session::HookSession, sandbox::Sandbox};

fn findings(sandbox: &Sandbox, arguments: &[&str], code: i32) -> Vec<Value> {
    let mut all = vec!["doctor", "--json"];
    all.extend(arguments);
    let run = sandbox.run(&all);
    assert_eq!(run.code, code, "{run:?}");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["is_healthy"], code == 0);
    report["findings"].as_array().unwrap().clone()
}

/// The checks that fail, as `check: verdict`.
fn wrong(findings: &[Value]) -> Vec<String> {
    let is_wrong = |finding: &&Value| finding["verdict"] != "fine";
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let shown =
        |finding: &Value| format!("{}: {}", text(&finding["check"]), text(&finding["verdict"]));
    findings.iter().filter(is_wrong).map(shown).collect()
}

fn prompt(sandbox: &Sandbox) {
    HookSession::new(sandbox, "s").prompt("hello");
}

#[test]
fn a_missing_installation_is_a_problem_with_a_remedy() {
    let sandbox = Sandbox::new();
    assert_eq!(wrong(&findings(&sandbox, &[], 1)), ["hooks: problem"]);
    let run = sandbox.run(&["doctor"]);
    assert!(run.stdout.contains("`claude-mem install`"), "{run:?}");
    assert!(run.stderr.contains("1 problem was found"), "{run:?}");
    sandbox.run(&["install"]).ok();
    prompt(&sandbox);
    assert_eq!(wrong(&findings(&sandbox, &[], 0)), [""; 0]);
    let transcript = include_str!("fixtures/transcripts/tools_basic.0.jsonl");
    sandbox.write(".claude/projects/-shop/s.jsonl", transcript);
    assert_eq!(wrong(&findings(&sandbox, &[], 0)), ["transcripts: warning"]);
    sandbox.run(&["import", "--from", "transcripts"]).ok();
    assert_eq!(wrong(&findings(&sandbox, &[], 0)), [""; 0]);
    sandbox.write(
        ".claude/projects/-shop/t.jsonl",
        &transcript.replace("sessionId\":\"", "sessionId\":\"x"),
    );
    let settings = sandbox.read(".claude/settings.json");
    let kept = settings.replacen('{', "{\n  \"cleanupPeriodDays\": 3650,", 1);
    sandbox.write(".claude/settings.json", &kept);
    assert_eq!(wrong(&findings(&sandbox, &[], 0)), [""; 0]);
}

#[test]
fn a_readable_data_directory_with_foreign_files_is_closed_on_request() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install"]).ok();
    let shared = sandbox.write("shared/notes.txt", "mine").parent().unwrap().to_path_buf();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o755)).unwrap();
    let doctor = |arguments: &[&str]| {
        let data = [("CLAUDE_MEM_DATA_DIR", shared.to_str().unwrap())];
        sandbox.run_with(&[&["doctor"], arguments].concat(), &data, "").ok()
    };
    let mode = || fs::metadata(&shared).unwrap().permissions().mode() & 0o777;
    assert!(doctor(&[]).contains("can be read by other users"));
    assert_eq!(mode(), 0o755, "it only looks");
    assert!(doctor(&["--fix"]).contains("is now readable only by you"));
    assert_eq!(mode(), 0o700);
}

#[test]
fn damage_and_settings_that_are_not_accepted_are_found() {
    let sandbox = Sandbox::new();
    sandbox.run(&["install"]).ok();
    prompt(&sandbox);
    prompt(&sandbox);
    let file = sandbox.data().join("log/active.log");
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.windows(5).position(|window| window == b"hello").unwrap();
    bytes[at] ^= 1;
    fs::write(&file, bytes).unwrap();
    fs::write(sandbox.data().join("memory.db"), "no database").unwrap();
    sandbox.write(".claude-mem/settings.json", "{\"CLAUDE_MEM_SYNC\": \"sometimes\"}");
    let found = findings(&sandbox, &[], 1);
    assert_eq!(wrong(&found), ["settings: warning", "log: problem", "memory: problem"]);
    sandbox.write(".claude-mem/settings.json", "{\"CLAUDE_MEM_SYNC\": oops");
    let found = findings(&sandbox, &[], 1);
    assert_eq!(wrong(&found), ["settings: problem", "log: problem", "memory: problem"]);
}

#[test]
fn the_server_of_a_client_without_hooks_is_started_and_checked() {
    let sandbox = Sandbox::new();
    let files = [("kilo", ".config/kilo/kilo.json"), ("zed", ".config/zed/settings.json")];
    for (client, _) in files {
        sandbox.run(&["install", "--client", client]).ok();
    }
    let doctor = || sandbox.run(&["doctor"]).stdout;
    let report = doctor();
    assert_eq!(report.matches("ok      MCP servers: ").count(), 2, "{report}");
    assert!(!sandbox.data().join("log").exists(), "it only asks");

    let silent = sandbox.write("silent/claude-mem", "#!/bin/sh\nread request\n");
    fs::set_permissions(&silent, fs::Permissions::from_mode(0o755)).unwrap();
    let program = crate::sandbox::binary().to_str().unwrap();
    let [kilo, zed] = files.map(|(_, path)| sandbox.read(path));
    sandbox.write(files[0].1, &kilo.replace(program, "/nowhere/claude-mem"));
    sandbox.write(files[1].1, &zed.replace(program, silent.to_str().unwrap()));
    let report = doctor();
    sandbox.write(files[0].1, &kilo.replace("\"claude-mem\"", "\"other\""));
    for (report, wrong, client) in [
        (&report, "is /nowhere/claude-mem, which does not exist", "kilo"),
        (&report, "which answers something else", "zed"),
        (&doctor(), "no longer has our entry", "kilo"),
    ] {
        let (_, rest) = report.split_once(wrong).unwrap_or_else(|| panic!("{wrong}: {report}"));
        let remedy = rest.lines().nth(1).unwrap();
        assert!(remedy.contains(&format!("`claude-mem install --client {client}`")), "{report}");
    }
    for (client, _) in files {
        sandbox.run(&["uninstall", "--client", client]).ok();
    }
    assert!(!doctor().contains("MCP servers"), "removed from the list");
}
