//! How clients differ from Claude Code. Each difference has a test, here or elsewhere:
//!
//! | difference | tests |
//! |---|---|
//! | 1 a hook may print only what the client expects; anything else is an error or is shown to the model | `every_payload_of_every_client_becomes_the_event_in_its_table` |
//! | 2 each client expects memory in its own form | `memory_comes_in_the_form_and_with_the_tool_names_of_each_client`, `memory_is_given_only_with_events_that_accept_it` |
//! | 3 some clients run the hooks that are registered in Claude Code | `hooks_of_claude_code_that_another_client_runs_are_that_clients`, `a_hook_of_claude_code_is_skipped_if_the_client_has_its_own` |
//! | 4 other clients set `CLAUDE_PROJECT_DIR`, too | the same, and `the_transcript_takes_precedence_over_the_environment` |
//! | 5 the client may put our memory before the prompt that it reports | payloads 02 and 11 of Gemini |
//! | 6 a prompt may come from the client instead of the user | payloads 05 of Qwen, 10 of Copilot; `memory_is_given_only_with_events_that_accept_it` |
//! | 7 subagents have their own session id | payloads 11 to 13 of Copilot, 07 and 09 of OpenCode, 09 and 10 of Codex |
//! | 8 failed tools are reported in different ways, or not at all | payloads; the tests in `hidden_failures`; `the_same_session_is_recorded_alike_in_every_agent_and_given_to_the_next` |
//! | 9 the last answer is in the event, or in the transcript, which may be written later | payloads; `an_answer_that_comes_after_the_event_is_waited_for`, `the_last_answer_of_cursor_is_kept_until_its_turn_stops`, `the_answer_of_kimi_is_in_a_transcript_with_a_known_place` |
//! | 10 a session may never end, or end three times | `a_session_may_end_three_times_and_all_clients_share_a_project`, `an_unfinished_turn_is_sent_once_it_is_old`, real sessions of Qwen and OpenCode |
//! | 11 hooks of Codex run with the environment of the terminal that started it first | `variables_of_another_terminal_decide_nothing` |
//! | 12 Codex runs only hooks that the user approved, and compares their exact text | `the_doctor_reports_whether_codex_runs_the_hooks_and_how_to_approve_them`, `an_installation_for_all_clients_is_removed_byte_for_byte` |
//! | 13 an unknown entry in the configuration may disable all hooks | `only_known_events_and_keys_are_registered` |
//! | 14 exit code 2 of a hook blocks the client or makes it loop | `a_hook_never_fails` |
//! | 15 each client spells the names of our MCP tools differently | `our_tools_are_recognized_in_the_spelling_of_every_client` |
//! | 16 the memory names our tools as the model knows them | as 2; `readOnlyHint` in the tests of the server |
//! | 17 a quoted command works although its path contains blanks | `a_registered_command_works_from_a_path_with_blanks` |

use std::{collections::BTreeSet, fs, process::Stdio};

use claude_mem_capture::clients::{CLIENTS, find};
use serde_json::{Value, json};

use crate::{
    clients::{hook, payload, with_all_clients, with_note},
    context::Past,
    sandbox::{Sandbox, binary},
};

#[test]
fn memory_is_given_only_with_events_that_accept_it() {
    for (client, event, is_given) in [
        ("qwen", "SessionStart", true),
        ("copilot", "SessionStart", true),
        ("cline", "TaskStart", false),
        ("codex", "PostToolUse", false),
        ("gemini", "AfterAgent", false),
    ] {
        let sandbox = with_note();
        let stdout = hook(&sandbox, client, &payload(&sandbox, client, event)).stdout;
        assert_eq!(!stdout.is_empty(), is_given, "{client} {event}: {stdout}");
    }
    // Sent before a further request to the model, and for the task of a subagent.
    let sandbox = with_note();
    let cwd = sandbox.home();
    let again = json!({"hook_event_name": "UserPromptSubmit", "session_id": "q", "prompt": "",
        "transcript_path": "/h/.qwen/projects/p/chats/q.jsonl", "cwd": cwd});
    let task = json!({"hook_event_name": "UserPromptSubmit", "session_id": "a", "agent_id": "a",
        "parent_agent_id": "p", "prompt": "How are cents stored?", "cwd": cwd});
    for (client, payload) in [("qwen", again), ("copilot", task)] {
        assert_eq!(hook(&sandbox, client, &payload).stdout, "", "{client}");
    }
}

#[test]
fn variables_of_another_terminal_decide_nothing() {
    let sandbox = Sandbox::new();
    let elsewhere = [
        ("CLAUDE_PROJECT_DIR", "/elsewhere"),
        ("CLAUDE_CODE_SESSION_ID", "other"),
        ("GEMINI_PROJECT_DIR", "/elsewhere"),
        ("QWEN_CODE_SESSION_ID", "other"),
        ("COPILOT_CLI", "1"),
    ];
    let prompt = payload(&sandbox, "codex", "UserPromptSubmit");
    let run = sandbox.run_with(&["hook", "--client", "codex"], &elsewhere, prompt.to_string());
    assert_eq!((run.code, run.stdout.as_str()), (0, ""));
    let event = &sandbox.events()[0];
    let root = sandbox.home().to_string_lossy().into_owned();
    let found = ["platform", "session", "root"].map(|name| event[name].as_str().unwrap());
    assert_eq!(found, ["codex", prompt["session_id"].as_str().unwrap(), &root]);
}

/// Kimi disables all hooks if it does not know one event. Codex does so for an unknown key or kind
/// of hook.
#[test]
fn only_known_events_and_keys_are_registered() {
    let known = "\
        SessionStart SessionEnd UserPromptSubmit PreToolUse PostToolUse PostToolUseFailure Stop \
        SubagentStop PreCompact PostCompact Notification";
    for hook in find("kimi").unwrap().hooks {
        assert!(known.split(' ').any(|event| event == hook.event), "{}", hook.event);
    }
    let sandbox = with_all_clients();
    sandbox.run(&["install", "--client", "codex"]).ok();
    let file: Value = serde_json::from_str(&sandbox.read(".codex/hooks.json")).unwrap();
    let keys: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["hooks"]);
    let groups = file["hooks"].as_object().unwrap().values().flat_map(|it| it.as_array().unwrap());
    let handlers = groups.flat_map(|group| group["hooks"].as_array().unwrap());
    let types: BTreeSet<&str> = handlers.map(|it| it["type"].as_str().unwrap()).collect();
    assert_eq!(types, BTreeSet::from(["command"]));
}

#[test]
fn a_hook_never_fails() {
    let sandbox = Sandbox::new();
    for client in CLIENTS.iter().filter(|client| client.name != "claude-code") {
        for input in ["", "{", "[]", "{\"hook_event_name\":\"Stop\",\"session_id\":7}"] {
            let run = sandbox.run_with(&["hook", "--client", client.name], &[], input);
            let result = (run.code, run.stdout.as_str(), run.stderr.as_str());
            assert_eq!(result, (0, "", ""), "{} {input}", client.name);
        }
    }
}

#[test]
fn a_registered_command_works_from_a_path_with_blanks() {
    let sandbox = with_all_clients();
    let program = sandbox.home().join("two words/claude-mem");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::hard_link(binary(), &program).or_else(|_| fs::copy(binary(), &program).map(drop)).unwrap();
    let mut install = std::process::Command::new(&program);
    install.args(["install", "--all"]).env_clear().env("HOME", sandbox.home());
    assert!(install.output().unwrap().status.success());
    let command = |file: &str, pointer: &str| -> String {
        let file: Value = serde_json::from_str(&sandbox.read(file)).unwrap();
        file.pointer(pointer).unwrap().as_str().unwrap().to_owned()
    };
    for (client, file, pointer) in [
        ("codex", ".codex/hooks.json", "/hooks/UserPromptSubmit/0/hooks/0/command"),
        ("copilot", ".copilot/hooks/claude-mem.json", "/hooks/UserPromptSubmit/0/command"),
        ("cursor", ".cursor/hooks.json", "/hooks/beforeSubmitPrompt/0/command"),
    ] {
        let event = if client == "cursor" { "beforeSubmitPrompt" } else { "UserPromptSubmit" };
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(command(file, pointer)).env_clear().env("HOME", sandbox.home());
        shell.env("CLAUDE_MEM_DATA_DIR", sandbox.home().join("of the user"));
        shell.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").stdin(Stdio::piped());
        let mut child = shell.spawn().unwrap();
        let text = payload(&sandbox, client, event).to_string();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
        assert!(child.wait().unwrap().success(), "{client}");
    }
    let dir = sandbox.home().join("of the user");
    let dir = [("CLAUDE_MEM_DATA_DIR", dir.to_str().unwrap())];
    let events = sandbox.run_with(&["log", "--json", "--raw"], &dir, "").ok();
    for client in ["codex", "copilot", "cursor"] {
        assert!(events.contains(&format!("\"platform\":\"{client}\"")), "{client}: {events}");
    }
}

/// No payload of Kimi Code names its transcript, and only the transcript has the last answer.
#[test]
fn the_answer_of_kimi_is_in_a_transcript_with_a_known_place() {
    let sandbox = Sandbox::new();
    let cwd = sandbox.home();
    let place = find("kimi").unwrap().transcript_place.unwrap()("k-1", cwd.to_str().unwrap());
    let row = |event: Value| json!({"type": "context.append_loop_event", "event": event});
    let assistant_row =
        |text: &str| row(json!({"type": "content.part", "part": {"type": "text", "text": text}}));
    let message = |text: &str, calls: Value| {
        let message = json!({"role": "assistant", "content": [{"type": "text", "text": text}],
            "toolCalls": calls});
        json!({"type": "agent.message.appended", "message": {"message": message}})
    };
    let rows = [
        json!({"type": "turn.prompt", "input": [{"type": "text", "text": "make the sum right"}]}),
        assistant_row("I look first."),
        row(json!({"type": "tool.call", "toolCallId": "c1", "name": "Bash", "args": {}})),
        row(json!({"type": "tool.result", "toolCallId": "c1", "result": {"output": "ok"}})),
        row(json!({"type": "content.part", "part": {"type": "think", "think": "done?"}})),
        assistant_row("The sum is right now."),
        message("I look first.", json!([{"id": "c1"}])),
        message("The sum is right now.", json!([])),
    ];
    let rows: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let stop = json!({"hook_event_name": "Stop", "session_id": "k-1", "cwd": cwd,
        "client_type": "kimi_code_cli", "stop_hook_active": false});
    hook(&sandbox, "kimi", &stop);
    sandbox.write(&format!(".kimi-code/{place}"), &rows);
    hook(&sandbox, "kimi", &stop);
    let [without, with] = &sandbox.events()[..] else { panic!("two stops") };
    assert_eq!(without["event"]["last_assistant_message"], "");
    let event = &with["event"];
    assert_eq!(event["last_assistant_message"], "The sum is right now.", "{event}");
    assert_eq!(event["last_user_message"], "make the sum right", "{event}");
    assert_eq!(event["remarks"][0]["text"], "I look first.", "{event}");
}

/// Codex cuts longer contexts: it keeps the start, the end and a file name.
#[test]
fn codex_is_given_at_most_ten_thousand_bytes_at_the_start_and_with_a_prompt() {
    let mut past = Past::new();
    // Characters of three bytes, different in each title.
    let title = |number: u32, length: u32| -> String {
        let letter = |at| char::from_u32(0x4E00 + (number * 197 + at * 31) % 3000);
        (0..length).filter_map(letter).collect()
    };
    for number in 0..60 {
        past.observe(&format!("s-{}", number / 6), "discovery", &title(number, 100), "cart.rs");
    }
    for number in 0..5 {
        let walrus = format!("walrus_pool feeding schedule {}", title(number, 420));
        past.observe(&format!("w-{number}"), "decision", &walrus, "walrus.rs");
    }
    past.sandbox.run(&["index"]).ok();
    let maximum = [
        ("CLAUDE_MEM_CONTEXT_TOKENS_MAX", "8000"),
        ("CLAUDE_MEM_CONTEXT_PROMPT_TOKENS_MAX", "4000"),
    ];
    let given = |client: &str, event: &str| -> usize {
        let mut sent = payload(&past.sandbox, client, event);
        sent["cwd"] = json!(past.root());
        sent["session_id"] = json!(format!("{client} {event}"));
        if event == "UserPromptSubmit" {
            let fields =
                if client == "qwen" { &["prompt", "submitted_prompt"][..] } else { &["prompt"] };
            for field in fields {
                sent[field] = json!("is the feeding schedule of the walrus_pool right?");
            }
        }
        let arguments = ["hook", "--client", client];
        let run = past.sandbox.run_with(&arguments, &maximum, sent.to_string());
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        answer["hookSpecificOutput"]["additionalContext"].as_str().unwrap().len()
    };
    // The page is rendered again with fewer entries; of the memories for a prompt, the last ones
    // are left out.
    for (event, least) in [("SessionStart", 3_000), ("UserPromptSubmit", 7_000)] {
        let (codex, other) = (given("codex", event), given("qwen", event));
        assert!(codex > least && codex <= 10_000, "{event}: {codex} bytes");
        assert!(other > 10_000, "{event}: there is more to give: {other} bytes");
    }
}
