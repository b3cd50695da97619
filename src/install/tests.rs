use std::fs;

use crate::*;

/// Writes a file with this text.
fn file(text: &str) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("settings.json");
    fs::write(&file, text).unwrap();
    (dir, file)
}

fn edited(text: &str, edit: impl FnOnce(&mut Document)) -> String {
    let (_dir, file) = file(text);
    let mut document = Document::open(&file).unwrap();
    edit(&mut document);
    document.text()
}

fn installed(text: &str) -> String {
    edited(text, |document| add_hooks(document, "/opt/claude-mem", None).unwrap())
}

const OTHERS: &str = r#"{
  "model": "opus",
  "hooks": {
    "Notification": [],
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "say done"
          }
        ]
      }
    ]
  },
  "permissions": {"allow": ["Bash(ls:*)"]}
}
"#;

#[test]
fn hooks_of_others_stay_where_they_are_and_come_back_byte_for_byte() {
    let with_ours = installed(OTHERS);
    let value: Value = serde_json::from_str(&with_ours).unwrap();
    assert_eq!(value["hooks"]["Stop"][0]["hooks"][0]["command"], "say done");
    assert_eq!(value["hooks"]["Stop"][1]["hooks"][0]["command"], "\"/opt/claude-mem\" summary");
    assert_eq!(value["hooks"]["PostToolUse"][0]["matcher"], "*");
    assert_eq!(edited(&with_ours, remove_hooks), OTHERS);
    assert_eq!(edited(&installed("{}\n"), remove_hooks), "{}\n");
}

#[test]
fn only_a_status_line_of_ours_is_replaced_or_removed() {
    let with_ours =
        edited(OTHERS, |document| assert!(add_status_line(document, "/opt/claude-mem")));
    let value: Value = serde_json::from_str(&with_ours).unwrap();
    let ours = json!({"type": "command", "command": "\"/opt/claude-mem\" statusline"});
    assert_eq!(value["statusLine"], ours);
    let moved =
        edited(&with_ours, |document| assert!(add_status_line(document, "/new/claude-mem")));
    assert_eq!(moved, with_ours.replace("/opt/", "/new/"));
    assert_eq!(edited(&with_ours, remove_status_line), OTHERS);
    let theirs = r#"{"statusLine":{"type":"command","command":"my-line statusline"}}"#;
    assert_eq!(edited(theirs, |document| assert!(!add_status_line(document, "/o"))), theirs);
    assert_eq!(edited(theirs, remove_status_line), theirs);
}

#[test]
fn installing_twice_changes_nothing_even_after_other_changes() {
    let once = installed(OTHERS);
    assert_eq!(installed(&once), once);
    let mut value: Value = serde_json::from_str(&once).unwrap();
    value["hooks"]["Stop"].as_array_mut().unwrap().push(json!({"hooks": []}));
    let later = serde_json::to_string_pretty(&value).unwrap();
    let (_dir, file) = file(&later);
    let mut document = Document::open(&file).unwrap();
    add_hooks(&mut document, "/opt/claude-mem", None).unwrap();
    assert!(!document.is_changed());
}

#[test]
fn an_older_place_of_the_binary_is_replaced() {
    let moved = edited(&installed(OTHERS), |document| {
        add_hooks(document, "/new/claude-mem", None).unwrap();
    });
    assert!(!moved.contains("/opt/"));
    assert_eq!(moved, installed(OTHERS).replace("/opt/", "/new/"));
}

#[test]
fn a_group_shared_with_others_loses_only_our_part() {
    let shared = r#"{"hooks":{"Stop":[{"hooks":[{"command":"\"/x/claude-mem\" summary"},{"command":"say"}]}]}}"#;
    let expected = r#"{"hooks":{"Stop":[{"hooks":[{"command":"say"}]}]}}"#;
    assert_eq!(edited(shared, remove_hooks), expected);
}

#[test]
fn only_our_own_commands_are_ours() {
    assert!(is_our_hook("\"/opt/with space/claude-mem\" save"));
    assert!(is_our_hook("\"/opt/claude-mem\" hook --client claude-code"));
    assert!(!is_our_hook("\"/opt/claude-mem\" hook --client other"));
    assert!(!is_our_hook("\"/opt/claude-mem\" search"));
    assert!(!is_our_hook("\"/opt/other\" save"));
    assert!(!is_our_hook("node /x/claude-mem/worker-service.cjs hook claude-code context"));
}

#[test]
fn a_file_with_unexpected_structure_is_rejected_and_unchanged() {
    for text in [r#"{"hooks": []}"#, r#"{"hooks": {"Stop": {}}}"#, r#"{"hooks": "none"}"#] {
        let (_dir, file) = file(text);
        let mut document = Document::open(&file).unwrap();
        assert!(add_hooks(&mut document, "/opt/claude-mem", None).is_err(), "{text}");
        assert!(!document.is_changed());
    }
}

#[test]
fn the_server_entry_keeps_other_servers_and_added_members() {
    let before = r#"{"a":0.1,"mcpServers":{"x":{"command":"y"},"claude-mem":{"command":"/old/claude-mem","args":["mcp"],"env":{"A":"1"}}}}"#;
    let added = edited(before, |document| add_server(document, "/opt/claude-mem").unwrap());
    let expected = r#"{"a":0.1,"mcpServers":{"x":{"command":"y"},"claude-mem":{"command":"/opt/claude-mem","args":["mcp"],"env":{"A":"1"},"alwaysLoad":true}}}"#;
    let compact = |text: &str| text.replace([' ', '\n'], "");
    assert_eq!(compact(&added), expected);
    let removed = edited(&added, remove_server);
    assert_eq!(compact(&removed), r#"{"a":0.1,"mcpServers":{"x":{"command":"y"}}}"#);
}

#[test]
fn a_foreign_server_with_our_name_is_neither_replaced_nor_removed() {
    let other = r#"{"mcpServers":{"claude-mem":{"command":"node","args":["mcp"]}}}"#;
    let (_dir, file) = file(other);
    let mut document = Document::open(&file).unwrap();
    assert!(add_server(&mut document, "/opt/claude-mem").is_err());
    remove_server(&mut document);
    assert!(!document.is_changed());
}

#[test]
fn a_path_means_itself_to_the_shell() {
    let program = quoted_for_shell(r#"/a b/$HOME/`x`/"q"\/claude-mem"#);
    let output = std::process::Command::new("/bin/sh")
        .args(["-c", &format!("printf %s \"{program}\"")])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), r#"/a b/$HOME/`x`/"q"\/claude-mem"#);
}

#[test]
fn hooks_that_are_in_no_group_are_registered_once_and_keep_their_place() {
    let dir = tempfile::tempdir().unwrap();
    let environment = claude_mem_core::environment::Environment::fixed(&[]);
    for before in [
        "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"say\"}]}}\n",
        "{\n  \"version\": 1,\n  \"hooks\": {} // none yet\n}",
    ] {
        let client = claude_mem_capture::clients::find("cursor").unwrap();
        let file = dir.path().join(".cursor/hooks.json");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let home = Some(dir.path());
        let place = client_config::Place { client, environment: &environment, home };
        let planned = |text: &str, program: &str| {
            fs::write(&file, text).unwrap();
            place.plan(program, false).unwrap().changes.swap_remove(0).1
        };
        let once = planned(before, "/opt/claude-mem").text;
        assert!(!planned(&once, "/opt/claude-mem").is_changed(), "{once}");
        let moved = planned(&once, "/new/claude-mem").text;
        assert_eq!(moved, once.replace("/opt/", "/new/"));
    }
}
