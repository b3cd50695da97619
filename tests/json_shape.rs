//! JSON output is consistent: ids are strings, and times are RFC 3339 under names that end in
//! `_at`.

use serde_json::{Value, json};

use crate::{http::Site, sandbox::Sandbox};

const RULES: &[(&str, &str)] =
    &[("CLAUDE_MEM_PROVIDER", "extract"), ("CLAUDE_MEM_WORKER_AUTOSTART", "false")];

/// Every place in a value that violates the rules.
fn violations(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| violations(path, item, found)),
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = format!("{path}.{name}");
                let is_id = name == "id" || name.ends_with("_id");
                let is_time = name == "at" || name.ends_with("_at");
                let is_ok = match value {
                    Value::Null => true,
                    _ if is_id => value.is_string(),
                    _ if is_time => {
                        value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())
                    }
                    // Repeats `created_at` for scripts that sort.
                    _ if name == "at_us" => fields.contains_key("created_at"),
                    _ => !name.ends_with("_us"),
                };
                if !is_ok {
                    found.push(format!("{path} = {value}"));
                }
                violations(&path, value, found);
            }
        }
        _ => {}
    }
}

#[test]
fn the_check_finds_numbers_as_ids_and_times_that_are_not_rfc_3339() {
    let mut found = Vec::new();
    let wrong = json!({"id": 12, "items": [{"session_id": 3, "created_at": 5, "shipped_us": 7,
        "last_at": "yesterday"}], "at_us": 9, "name": "x", "ended_at": null});
    violations("", &wrong, &mut found);
    assert_eq!(found.len(), 6, "{found:#?}");
}

#[test]
fn every_command_prints_string_ids_and_rfc_3339_times() {
    let sandbox = Sandbox::new();
    let cwd = sandbox.home().join("shop");
    std::fs::create_dir(&cwd).unwrap();
    let file = cwd.join("cart.rs");
    let hook = |name: &str, mut fields: Value| {
        fields["session_id"] = json!("aaaa-1");
        fields["cwd"] = json!(cwd);
        sandbox.hook_with(name, RULES, fields.to_string());
    };
    hook("new", json!({"hook_event_name": "UserPromptSubmit", "prompt": "fix the cart"}));
    hook(
        "save",
        json!({"hook_event_name": "PostToolUse", "tool_name": "Edit", "tool_use_id": "t",
            "tool_input": {"file_path": file, "old_string": "a", "new_string": "b"},
            "tool_response": {"filePath": file}}),
    );
    hook(
        "summary",
        json!({"hook_event_name": "Stop", "last_assistant_message": "The cart is fixed."}),
    );
    sandbox.run_with(&["distill"], RULES, "").ok();
    let remote = sandbox.home().join("remote");
    let remote = remote.to_str().unwrap();
    let commands: &[&[&str]] = &[
        &["search", "cart", "--json", "--explain"],
        &["search", "--json"],
        &["timeline", "1", "--json"],
        &["show", "1", "S1", "P1", "--json", "--raw"],
        &["context", "--project", "shop", "--json"],
        &["remember", "the till is closed at eight", "--json"],
        &["log", "--json"],
        &["status", "--json"],
        &["doctor", "--json"],
        &["costs", "--json"],
        &["report", "--format", "json"],
        &["why", "shop/cart.rs", "--json"],
        &["settings", "--json"],
        &["verify", "--json"],
        &["ship", "--to", remote, "--json"],
        &["verify", "--remote", "--from", remote, "--json"],
        &["compact", "--dry-run", "--json"],
        &["forget", "1", "--yes", "--json"],
        &["replay", "--json"],
        &["worker", "status", "--json"],
        &["export"],
    ];
    for command in commands {
        let run = sandbox.run_with(command, RULES, "");
        let mut objects = 0;
        let mut found = Vec::new();
        for line in run.stdout.lines().filter(|line| line.starts_with('{')) {
            let value: Value = serde_json::from_str(line).unwrap();
            objects += 1;
            violations("", &value, &mut found);
        }
        assert!(objects > 0, "{command:?} printed no JSON: {} {}", run.stdout, run.stderr);
        assert!(found.is_empty(), "{command:?}: {found:#?}");
    }
}

#[test]
fn every_reading_route_answers_string_ids_and_rfc_3339_times() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    for route in [
        "/api/feed",
        "/api/observations",
        "/api/summaries",
        "/api/prompts",
        "/api/search?query=cart",
        "/api/timeline?anchor=1",
        "/api/sessions",
        "/api/observation/1",
        "/api/projects",
        "/api/stats",
        "/api/costs",
        "/api/replays",
        "/api/forgettings",
        "/api/health",
        "/api/session/s1",
        "/api/observation/1/provenance",
        "/api/memory/1/related",
        "/api/stats/daily",
        "/api/health/log",
    ] {
        let mut found = Vec::new();
        violations(route, &site.get(route), &mut found);
        assert!(found.is_empty(), "{found:#?}");
    }
}
