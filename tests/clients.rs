//! Coding agents other than Claude Code: their payloads become the same events, memory is rendered
//! in their own form, and their configuration is changed and restored.

use std::{collections::BTreeMap, fs, path::PathBuf};

use claude_mem_capture::{
    Client,
    clients::{CLIENTS, config::HooksForm, find},
};
use claude_mem_projections::Store;
use claude_mem_tools::client_fixtures::{missing, run, table};
use serde_json::{Value, json};

use crate::sandbox::{Run, Sandbox, binary};

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn fixtures(client: &str) -> PathBuf {
    repository("tests/fixtures/clients").join(client)
}

/// All clients but Claude Code.
fn others() -> impl Iterator<Item = &'static Client> {
    CLIENTS.iter().copied().filter(|client| client.name != "claude-code")
}

pub(crate) fn hook(sandbox: &Sandbox, client: &str, payload: &Value) -> Run {
    let run = sandbox.run_with(&["hook", "--client", client], &[], payload.to_string());
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    run
}

/// Stdout and stderr of a command that succeeded.
fn output(run: Run) -> String {
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout + &run.stderr
}

/// Parses one JSON object per line.
pub(crate) fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// One payload of a client, in our own project.
pub(crate) fn payload(sandbox: &Sandbox, client: &str, event: &str) -> Value {
    let files = fs::read_dir(fixtures(client)).unwrap().map(|entry| entry.unwrap().path());
    let is_it = |file: &PathBuf| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.split('.').nth(1) == Some(event) && name.ends_with(".json")
    };
    let mut files: Vec<PathBuf> = files.filter(is_it).collect();
    files.sort();
    let text = fs::read_to_string(&files[0]).unwrap();
    let text = text.replace("/scratch/project", sandbox.home().to_str().unwrap());
    serde_json::from_str(&text).unwrap()
}

#[test]
fn every_payload_of_every_client_becomes_the_event_in_its_table() {
    for client in others() {
        let folder = fixtures(client.name);
        let rows = run(binary(), client.name, &folder).unwrap();
        for row in &rows {
            assert_eq!(row.problem, None, "{} {}", client.name, row.file);
            assert_eq!(row.stdout, "", "{} {}: there is no memory to give", client.name, row.file);
            assert_eq!(missing(row), [""; 0], "{} {}", client.name, row.file);
        }
        let expected = fs::read_to_string(folder.join("expected.txt")).unwrap();
        assert_eq!(table(&rows), expected, "{}", client.name);
    }
}

/// A new client needs its file with a line in `CLIENTS`, payloads, and a row in the page of
/// clients.
#[test]
fn every_client_has_payloads_a_way_to_install_it_and_a_row_in_the_page() {
    let page = fs::read_to_string(repository("docs/clients.md")).unwrap();
    let listed = Sandbox::new().run(&["install", "--list"]).ok();
    for client in CLIENTS {
        let word = if client.is_tested { "tested" } else { "untested" };
        let row = listed.lines().find(|line| line.contains(client.title)).unwrap();
        assert!(row.contains(client.name) && row.ends_with(&format!(" {word}")), "{row}");
        let row = page.lines().find(|line| line.starts_with(&format!("| {} |", client.title)));
        let row = row.unwrap_or_else(|| panic!("docs/clients.md has no row for {}", client.title));
        assert_eq!(row.contains("untested"), !client.is_tested, "{row}");
    }
    for client in others() {
        assert!(fixtures(client.name).join("expected.txt").exists(), "{}", client.name);
        let is_plugin = matches!(client.config.hooks, HooksForm::Plugin { .. });
        assert!(is_plugin || !client.hooks.is_empty(), "{}", client.name);
        let owner = client.config.registered_as.unwrap_or(client.name);
        let command = format!("hook --client {owner}");
        let is_stable = |hook| client.hook_command(hook) == command;
        assert!(client.hooks.iter().all(is_stable), "{}", client.name);
        assert!(client.config.server.is_some(), "{}", client.name);
    }
}

#[test]
fn a_session_may_end_three_times_and_all_clients_share_a_project() {
    let sandbox = Sandbox::new();
    for client in ["gemini", "codex", "qwen"] {
        let prompt = if client == "gemini" { "BeforeAgent" } else { "UserPromptSubmit" };
        hook(&sandbox, client, &payload(&sandbox, client, prompt));
    }
    for _ in 0..3 {
        hook(&sandbox, "gemini", &payload(&sandbox, "gemini", "SessionEnd"));
    }
    sandbox.run(&["distill"]).ok();
    let projects = lines(&sandbox.run(&["projects", "--json"]).ok());
    assert_eq!(projects.len(), 1, "{projects:?}");
    let ended: Vec<Value> =
        sandbox.events().into_iter().filter(|event| event["kind"] == "SessionEnded").collect();
    assert_eq!(ended.len(), 3);
    let store = Store::open_read_only(&sandbox.data().join("memory.db")).unwrap().unwrap();
    let sessions = "select platform, ended_at_us is not null from sessions order by platform";
    assert_eq!(store.dump(sessions).unwrap(), "codex|0\ngemini|1\nqwen|0\n");
}

/// A note that every session of the project is given.
pub(crate) const NOTE: &str = "Cents are stored as integers";

pub(crate) fn with_note() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", "--type", "rule", NOTE]).ok();
    sandbox
}

#[test]
fn memory_comes_in_the_form_and_with_the_tool_names_of_each_client() {
    let start = |client: &str| {
        let sandbox = with_note();
        let event = if client == "cursor" { "sessionStart" } else { "SessionStart" };
        hook(&sandbox, client, &payload(&sandbox, client, event)).stdout
    };
    let nested = ["codex", "gemini", "qwen", "droid", "vscode", "opencode", "antigravity"];
    for client in nested {
        let answer: Value = serde_json::from_str(&start(client)).unwrap();
        let output = &answer["hookSpecificOutput"];
        assert_eq!(output["hookEventName"], "SessionStart", "{client}");
        let text = output["additionalContext"].as_str().unwrap();
        let tool = format!("`{}search`", find(client).unwrap().tool_prefix);
        assert!(text.contains(NOTE) && text.contains(&tool), "{client}: {text}");
        let has_tags = text.contains('<');
        assert_eq!(has_tags, !["gemini", "antigravity"].contains(&client), "{client}: {text}");
        let known = ["hookSpecificOutput", "systemMessage"];
        assert!(answer.as_object().unwrap().keys().all(|key| known.contains(&&**key)), "{answer}");
    }
    let copilot: Value = serde_json::from_str(&start("copilot")).unwrap();
    let text = copilot["additionalContext"].as_str().unwrap();
    assert!(text.contains(NOTE) && text.contains("`claude-mem-get_observations`"), "{text}");
    let cursor: Value = serde_json::from_str(&start("cursor")).unwrap();
    assert!(cursor["additional_context"].as_str().unwrap().contains(NOTE));
    assert_eq!(start("kimi"), "", "it would be shown to the model as a result of the hook");
}

#[test]
fn a_client_without_memory_at_the_start_gets_it_with_the_first_prompt_and_once() {
    let sandbox = with_note();
    assert_eq!(hook(&sandbox, "kimi", &payload(&sandbox, "kimi", "SessionStart")).stdout, "");
    let prompt = payload(&sandbox, "kimi", "UserPromptSubmit");
    let first = hook(&sandbox, "kimi", &prompt).stdout;
    assert!(first.starts_with("<claude-mem-context>") && first.contains(NOTE), "{first}");
    assert_eq!(hook(&sandbox, "kimi", &prompt).stdout, "");
}

#[test]
fn hooks_of_claude_code_that_another_client_runs_are_that_clients() {
    let sandbox = with_note();
    let prompt = payload(&sandbox, "copilot", "UserPromptSubmit").to_string();
    let of_copilot =
        [("COPILOT_CLI", "1"), ("CLAUDE_PROJECT_DIR", sandbox.home().to_str().unwrap())]
            .map(|(name, value)| (name, value.to_owned()));
    let of_copilot: Vec<(&str, &str)> =
        of_copilot.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let platforms = || -> Vec<String> {
        let events = sandbox.events().into_iter().filter(|it| it["kind"] == "PromptSubmitted");
        events.map(|event| event["platform"].as_str().unwrap().to_owned()).collect()
    };
    let run = sandbox.run_with(&["new"], &of_copilot, &prompt);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "silence is its usual answer");
    assert_eq!(platforms(), ["copilot"]);
    sandbox.run(&["install", "--client", "copilot"]).ok();
    sandbox.run_with(&["new"], &of_copilot, &prompt);
    assert_eq!(platforms(), ["copilot"], "its own hook records it");
    hook(&sandbox, "copilot", &serde_json::from_str(&prompt).unwrap());
    assert_eq!(platforms(), ["copilot", "copilot"]);
}

/// Configuration files of a user who had set up every client before.
const BEFORE: [(&str, &str); 13] = [
    (
        ".codex/hooks.json",
        "{\n  \
         \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"say \
         done\"}]}]}\n\
         }",
    ),
    (
        ".codex/config.toml",
        "# mine\nmodel = \"m\"  # best\n\n[mcp_servers.other]\ncommand = \"x\"\n",
    ),
    (".gemini/settings.json", "{\"theme\": \"dark\",\n \"n\": 1.10}\n"),
    (".qwen/settings.json", "{\n\t// mine\n\t\"model\": {}, // best\n}\n"),
    (".copilot/mcp-config.json", "{\"mcpServers\": {\"a\": {\"command\": \"b\"}}}"),
    (
        ".kimi-code/config.toml",
        "default_model = \"k\"\n\n[[hooks]]\nevent = \"Stop\"\ncommand = \"say done\"\n",
    ),
    (".kimi-code/mcp.json", "{}"),
    (".factory/settings.json", "{\n  \"a\": 1\n}\n"),
    (".config/opencode/opencode.json", "{\"mcp\": {}}\n"),
    (".cline/hooks/PostToolUse", "#!/bin/sh\necho mine\n"),
    (".cline/data/settings/cline_mcp_settings.json", "{\"mcpServers\":{}}"),
    (
        ".cursor/hooks.json",
        "{\"version\": 1, \"hooks\": {\"stop\": [{\"command\": \"say done\"}]}}\n",
    ),
    (".vscode/argv.json", "{}\n"),
];

fn tree(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![sandbox.home()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(sandbox.home()).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                if name != ".claude-mem" {
                    found.insert(format!("{name}/"), String::new());
                    open.push(path);
                }
            } else {
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

pub(crate) fn with_all_clients() -> Sandbox {
    let sandbox = Sandbox::new();
    for (path, text) in BEFORE {
        sandbox.write(path, text);
    }
    sandbox
}

#[test]
fn an_installation_for_all_clients_is_removed_byte_for_byte() {
    let sandbox = with_all_clients();
    let before = tree(&sandbox);
    let mut once = None;
    for _ in 0..2 {
        let output = output(sandbox.run(&["install", "--all"]));
        assert!(!output.contains("warning"), "{output}");
        let listed = sandbox.run(&["install", "--list"]).ok();
        for client in others().filter(|client| client.name != "antigravity") {
            let row = listed.lines().find(|line| line.contains(client.title)).unwrap();
            assert!(row.contains("found") && row.contains("registered"), "{row}");
        }
        let after = tree(&sandbox);
        assert_eq!(once.get_or_insert_with(|| after.clone()), &after, "Codex would ask again");
    }
    let after = tree(&sandbox);
    assert_eq!(after[".cline/hooks/PostToolUse"], "#!/bin/sh\necho mine\n", "the user's own");
    for (path, part) in [
        (".codex/config.toml", "[mcp_servers.claude-mem]"),
        (".codex/hooks.json", "hook --client codex"),
        (".gemini/settings.json", "10000"),
        (".kimi-code/config.toml", "hook --client kimi"),
        (".copilot/hooks/claude-mem.json", "\"timeoutSec\": 10"),
        (".config/opencode/plugins/claude-mem.js", "const PROGRAM_PATH = \"/"),
        (".config/opencode/opencode.json", "\"enabled\""),
        (".cursor/hooks.json", "beforeSubmitPrompt"),
    ] {
        assert!(after[path].contains(part), "{path}: {}", after[path]);
    }
    assert!(after[".codex/config.toml"].contains("# best"), "comments stay");
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(tree(&sandbox), before);
    assert!(!sandbox.data().join("install.json").exists());
}

#[test]
fn changes_of_the_user_stay_and_our_entries_are_removed() {
    let sandbox = with_all_clients();
    sandbox.run(&["install", "--all", "--trust"]).ok();
    let config = sandbox.read(".codex/config.toml");
    assert!(config.contains("trusted_hash = \"sha256:"), "{config}");
    sandbox.write(".codex/config.toml", &format!("{config}\n[tui]\nx = 1 # new\n"));
    let qwen = sandbox.read(".qwen/settings.json");
    assert!(qwen.contains("// mine") && qwen.contains("hook --client qwen"), "{qwen}");
    sandbox.write(".qwen/settings.json", &qwen.replace("// best", "// better"));
    let hooks = sandbox.read(".cursor/hooks.json").replace("say done", "say stop");
    sandbox.write(".cursor/hooks.json", &hooks);
    sandbox.run(&["uninstall"]).ok();
    let config = sandbox.read(".codex/config.toml");
    assert!(config.contains("# new") && config.contains("# best"), "{config}");
    assert!(!config.contains("claude-mem") && !config.contains("trusted_hash"), "{config}");
    let qwen = BEFORE.iter().find(|(path, _)| *path == ".qwen/settings.json").unwrap().1;
    assert_eq!(sandbox.read(".qwen/settings.json"), qwen.replace("// best", "// better"));
    let hooks: Value = serde_json::from_str(&sandbox.read(".cursor/hooks.json")).unwrap();
    assert_eq!(hooks, json!({"version": 1, "hooks": {"stop": [{"command": "say stop"}]}}));
}

#[test]
fn comments_numbers_and_line_ends_around_our_entries_stay() {
    const SETTINGS: &str = "\
        {\r\n  \"hooks\": { // all of them\r\n    \"SessionStart\": [\r\n      \
        // the first\r\n      \
        { \"hooks\": [ { \"type\": \"command\", \"command\": \"say hi\" } ] } // mine\r\n    \
        ],\r\n  },\r\n  \"mcpServers\": {\r\n    \
        \"other\": { \"command\": \"x\", \"timeout\": 1.50 }, // keep\r\n  },\r\n}\r\n";
    let sandbox = Sandbox::new();
    sandbox.write(".gemini/settings.json", SETTINGS);
    sandbox.run(&["install", "--client", "gemini"]).ok();
    let installed = sandbox.read(".gemini/settings.json");
    for line in SETTINGS.lines().map(str::trim).filter(|line| line.len() > 2) {
        // In the result, a comma follows the line that was last before.
        let line = line.trim_end_matches(" // mine");
        assert!(installed.contains(line), "{line} is not in {installed}");
    }
    assert!(!installed.replace("\r\n", "").contains('\n'), "{installed:?}");
    let changed = |text: &str| text.replace("\"x\"", "\"y\"");
    sandbox.write(".gemini/settings.json", &changed(&installed));
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(sandbox.read(".gemini/settings.json"), changed(SETTINGS));
}

#[test]
fn clients_with_mcp_alone_get_the_server_and_lose_it_byte_for_byte() {
    let sandbox = Sandbox::new();
    let files = [
        ("kilo", ".config/kilo/kilo.json", "{\"mcp\": {\"a\": {\"type\": \"local\"}}}\n"),
        ("zed", ".config/zed/settings.json", "// mine\n{\n  \"theme\": \"One\", // best\n}\n"),
    ];
    for (_, path, text) in files {
        sandbox.write(path, text);
    }
    let before = tree(&sandbox);
    for (client, path, text) in files {
        for _ in 0..2 {
            sandbox.run(&["install", "--client", client]).ok();
        }
        let after = sandbox.read(path);
        assert!(after.contains("claude-mem") && after.contains("mcp"), "{after}");
        let listed = sandbox.run(&["install", "--list"]).ok();
        let row = listed.lines().find(|line| line.contains(&format!(" {client} "))).unwrap();
        assert!(row.contains("registered") && row.contains("MCP only"), "{row}");
        sandbox.run(&["uninstall", "--client", client]).ok();
        assert_eq!(sandbox.read(path), text, "{client}");
        sandbox.run(&["install", "--client", client]).ok();
    }
    let changed = sandbox.read(".config/zed/settings.json").replace("// best", "// better");
    sandbox.write(".config/zed/settings.json", &changed);
    sandbox.run(&["uninstall"]).ok();
    let mut expected = before;
    let kept = files[1].2.replace("// best", "// better");
    expected.insert(".config/zed/settings.json".into(), kept);
    assert_eq!(tree(&sandbox), expected);

    let printed = sandbox.run(&["install", "--client", "warp"]).ok();
    let printed: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(printed["mcpServers"]["claude-mem"]["args"], json!(["mcp"]));
    for (client, entry) in [
        ("continue", "mcpServers:\n  - name: claude-mem\n"),
        ("goose", "extensions:\n  claude-mem:\n"),
    ] {
        let printed = sandbox.run(&["install", "--client", client]).ok();
        assert!(printed.starts_with(entry) && printed.contains("args: [mcp]"), "{printed}");
    }
    let unknown = sandbox.run(&["install", "--client", "nobody"]).fails(2);
    assert!(unknown.contains("goose"), "{unknown}");
}

#[test]
fn without_a_choice_the_tested_clients_that_are_found_are_set_up() {
    let sandbox = Sandbox::new();
    for dir in [".claude", ".codex", ".cursor"] {
        fs::create_dir(sandbox.home().join(dir)).unwrap();
    }
    let before = tree(&sandbox);
    sandbox.run(&["install"]).ok();
    let after = tree(&sandbox);
    assert!(after.contains_key(".claude/settings.json") && after.contains_key(".codex/hooks.json"));
    assert!(!after.contains_key(".cursor/hooks.json"), "untested");
    assert!(!after.contains_key(".gemini/"), "not found");
    sandbox.run(&["uninstall", "--client", "codex"]).ok();
    let after = tree(&sandbox);
    assert!(
        after.contains_key(".claude/settings.json") && !after.contains_key(".codex/hooks.json")
    );
    sandbox.run(&["uninstall"]).ok();
    assert_eq!(tree(&sandbox), before);
}

#[test]
fn the_doctor_reports_whether_codex_runs_the_hooks_and_how_to_approve_them() {
    let sandbox = with_all_clients();
    sandbox.run(&["install", "--client", "codex"]).ok();
    let doctor = |sandbox: &Sandbox| {
        let run = sandbox.run(&["doctor"]);
        format!("{}{}", run.stdout, run.stderr)
    };
    let output = doctor(&sandbox);
    assert!(output.contains("not approved") && output.contains("--trust"), "{output}");
    assert!(output.contains("found and not registered"), "{output}");
    sandbox.run(&["install", "--client", "codex", "--trust"]).ok();
    assert!(!doctor(&sandbox).contains("not approved"));
    let hooks =
        sandbox.read(".codex/hooks.json").replace("hook --client codex", "hook  --client codex");
    sandbox.write(".codex/hooks.json", &hooks);
    assert!(doctor(&sandbox).contains("not approved"), "one more blank is another hook");
    fs::remove_file(sandbox.home().join(".codex/hooks.json")).unwrap();
    sandbox.run(&["uninstall", "--client", "codex"]).ok();
}

#[test]
fn a_file_that_cannot_be_changed_is_left_alone_and_the_others_are_set_up() {
    let sandbox = with_all_clients();
    let broken = "{\n  \"a\": 1,\n";
    sandbox.write(".gemini/settings.json", broken);
    let output = output(sandbox.run(&["install"]));
    assert!(output.contains("warning: Gemini CLI was not set up"), "{output}");
    assert_eq!(sandbox.read(".gemini/settings.json"), broken);
    assert!(sandbox.read(".qwen/settings.json").contains("hook --client qwen"));
    sandbox.run(&["install", "--client", "gemini"]).fails(1);
}

/// Cursor's stop event has no text: the message before it counts, then the transcript.
#[test]
fn the_last_answer_of_cursor_is_kept_until_its_turn_stops() {
    let sandbox = Sandbox::new();
    let send = |event: &str, turn: &str, more: Value| {
        let mut payload = payload(&sandbox, "cursor", event);
        payload["generation_id"] = json!(turn);
        payload["transcript_path"] = Value::Null;
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        hook(&sandbox, "cursor", &payload);
    };
    let transcript = sandbox.write(
        "cursor.jsonl",
        &json!({"role": "assistant", "message": {"content": [{"type": "text", "text": "Whole."}]}})
            .to_string(),
    );
    send("afterAgentResponse", "1", json!({"text": "I look first."}));
    send("afterAgentResponse", "1", json!({"text": "Done. <private>x</private>"}));
    send("stop", "1", json!({}));
    send("afterAgentResponse", "2", json!({"text": "Interrupted."}));
    send("stop", "3", json!({}));
    send("beforeSubmitPrompt", "4", json!({"prompt": "<private>hush</private>"}));
    send("afterAgentResponse", "4", json!({"text": "A secret."}));
    send("beforeSubmitPrompt", "5", json!({"prompt": "go on"}));
    send("stop", "4", json!({}));
    send("afterAgentResponse", "6", json!({"text": "Newer than the transcript."}));
    send("stop", "6", json!({"transcript_path": transcript}));
    send("stop", "7", json!({"transcript_path": transcript}));
    let stops = sandbox.events().into_iter().filter(|event| event["kind"] == "SummaryRequested");
    let last = |event: Value| event["event"]["last_assistant_message"].as_str().unwrap().to_owned();
    assert_eq!(
        stops.map(last).collect::<Vec<_>>(),
        ["Done. [redacted:private]", "", "", "Newer than the transcript.", "Whole."]
    );
    assert_eq!(fs::read_dir(sandbox.data().join("answers")).unwrap().count(), 0);
}
