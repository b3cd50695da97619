//! Imports of Claude Code's own transcripts.

use std::{fs, io::Write, path::Path};

use serde_json::{Value, json};

use super::{added, import, rows};
use crate::sandbox::Sandbox;

fn fixture(kind: &str, name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(kind).join(name);
    fs::read_to_string(file).unwrap()
}

/// Writes a transcript to the client's directory.
fn place(sandbox: &Sandbox, name: &str, at: &str) -> String {
    let text = fixture("transcripts", name);
    sandbox.write(&format!(".claude/projects/-scratch-project/{at}.jsonl"), &text);
    text
}

/// These fields of all events of a kind.
fn printed(sandbox: &Sandbox, kind: &str, fields: &[&str]) -> Vec<Value> {
    let events = sandbox.events().into_iter().filter(|event| event["kind"] == kind);
    events.map(|event| fields.iter().map(|field| event["event"][field].clone()).collect()).collect()
}

/// Runs the hooks of a session as the client called them.
fn replay_hooks(sandbox: &Sandbox, session: &str, now: &str) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hooks");
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(&format!("{session}.")))
        .collect();
    names.sort();
    for name in names {
        let hook = match name.split('.').nth(2).unwrap() {
            "SessionStart" => "context",
            "UserPromptSubmit" => "new",
            "PostToolUse" | "PostToolUseFailure" => "save",
            "Stop" => "summary",
            "SessionEnd" => "cleanup",
            _ => continue,
        };
        let now = [("CLAUDE_MEM_NOW", now)];
        sandbox.hook_with(hook, &now, fixture("hooks", &name));
    }
}

const SAID: [&str; 8] =
    ["tool", "input", "output", "error", "has_failed", "tool_use_id", "prompt_id", "cwd"];

#[test]
fn a_transcript_gives_the_same_events_as_hooks() {
    for name in ["tools_basic", "tools_failing"] {
        let (hooked, imported) = (Sandbox::new(), Sandbox::new());
        replay_hooks(&hooked, name, "2026-11-16T00:27:00Z");
        place(&imported, &format!("{name}.0.jsonl"), "s");
        import(&imported, &["--from", "transcripts"]);
        let ours = printed(&imported, "ToolUsed", &SAID);
        let mut theirs = printed(&hooked, "ToolUsed", &SAID);
        // Fixtures are in the order of their names, and parallel calls end in any order.
        theirs.sort_by_key(|used| ours.iter().position(|other| other[5] == used[5]));
        assert_eq!(ours, theirs, "{name}");
        for (kind, fields) in [
            ("PromptSubmitted", &["prompt", "prompt_id", "cwd"][..]),
            ("SummaryRequested", &["last_assistant_message", "scope", "prompt_id"]),
        ] {
            assert_eq!(printed(&imported, kind, fields).len(), 1);
            let without_id = |printed: Vec<Value>| printed[0].as_array().unwrap()[..2].to_vec();
            let pair =
                [&imported, &hooked].map(|sandbox| without_id(printed(sandbox, kind, fields)));
            assert_eq!(pair[0], pair[1], "{name}");
        }
    }
}

#[test]
fn prompts_are_as_typed_and_every_turn_stops_once() {
    let sandbox = Sandbox::new();
    place(&sandbox, "multi_prompt.0.jsonl", "s");
    let report = import(&sandbox, &["--from", "transcripts"]);
    assert_eq!(report["refused"], json!({}));
    let prompts = rows(&sandbox, "select number, turn, text from prompts order by number");
    let expected = "1|1|prompt one\n2|2|prompt two\n3|3|/greet Bob\n4|4|a slow one\n\
                    5|4|sent while the first was running\n";
    assert_eq!(prompts, expected);
    let stops = printed(&sandbox, "SummaryRequested", &["last_assistant_message"]);
    assert_eq!(
        stops,
        [["Answer one."], ["Answer two."], ["Hello Bob."], ["Slow answer."]]
            .map(|text| json!(text))
    );
    assert!(report["to_distill"]["requests"].as_u64().unwrap() > 0, "{report}");
    assert_eq!(rows(&sandbox, "select started_at_us / 1000 from sessions").len(), 14);
}

#[test]
fn a_second_import_adds_nothing_and_a_longer_transcript_only_what_is_new() {
    let sandbox = Sandbox::new();
    let text = fixture("transcripts", "resume.0.jsonl");
    let second =
        text.match_indices('\n').map(|(at, _)| at + 1).nth(text.lines().count() / 2).unwrap();
    let path = ".claude/projects/p/s.jsonl";
    // The last line is incomplete, as while the client writes it.
    sandbox.write(path, &text[..second + 10]);
    let first = import(&sandbox, &["--from", "transcripts"]);
    assert!(added(&first) > 0 && first["refused"] == json!({}), "{first}");
    assert_eq!(added(&import(&sandbox, &["--from", "transcripts"])), 0);
    sandbox.write(path, &text);
    let would = import(&sandbox, &["--from", "transcripts", "--dry-run"]);
    let rest = import(&sandbox, &["--from", "transcripts"]);
    assert!(added(&rest) > 0 && added(&would) == added(&rest), "{rest}");
    assert!(would["to_distill"]["requests"].as_u64().unwrap() > 0, "{would}");
    assert_eq!(added(&import(&sandbox, &["--from", "transcripts"])), 0);
    let whole = Sandbox::new();
    whole.write(path, &text);
    import(&whole, &["--from", "transcripts"]);
    let texts = |sandbox| rows(sandbox, "select number, turn, text from prompts");
    assert_eq!(texts(&sandbox), texts(&whole));
    assert_eq!(texts(&whole), "1|1|first run\n2|2|second run\n3|3|third run\n");
}

#[test]
fn a_session_that_hooks_recorded_is_not_recorded_twice() {
    let sandbox = Sandbox::new();
    replay_hooks(&sandbox, "tools_basic", "2026-11-16T00:27:05Z");
    let before = sandbox.events().len();
    place(&sandbox, "tools_basic.0.jsonl", "s");
    let report = import(&sandbox, &["--from", "transcripts"]);
    assert_eq!((added(&report), sandbox.events().len()), (0, before), "{report}");
}

#[test]
fn events_before_the_installation_of_hooks_are_imported() {
    let sandbox = Sandbox::new();
    // Only the end of the session was recorded.
    let text = place(&sandbox, "resume.0.jsonl", "s");
    let row: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let third = text.lines().find(|line| line.contains("\"content\": \"third run\"")).unwrap();
    let third: Value = serde_json::from_str(third).unwrap();
    let prompt = json!({"session_id": row["sessionId"], "hook_event_name": "UserPromptSubmit",
        "cwd": "/scratch/project", "prompt": "third run"});
    let now = [("CLAUDE_MEM_NOW", third["timestamp"].as_str().unwrap())];
    sandbox.hook_with("new", &now, prompt.to_string());
    import(&sandbox, &["--from", "transcripts"]);
    let prompts = rows(&sandbox, "select text from prompts order by at_us");
    assert_eq!(prompts, "first run\nsecond run\nthird run\n");
}

#[test]
fn a_fork_adds_only_what_is_new_in_it() {
    let sandbox = Sandbox::new();
    place(&sandbox, "resume.0.jsonl", "a");
    place(&sandbox, "resume.1.jsonl", "b");
    let would = import(&sandbox, &["--from", "transcripts", "--dry-run"]);
    let first = import(&sandbox, &["--from", "transcripts"]);
    let again = import(&sandbox, &["--from", "transcripts"]);
    let counts = |report: &Value| {
        (added(report), report["known"].as_u64().unwrap(), report["copies"].as_u64().unwrap())
    };
    let (new, _, copies) = counts(&first);
    assert!(new > 0 && copies > 0, "{first}");
    assert_eq!(counts(&would), (new, 0, copies));
    assert_eq!(counts(&first), (new, 0, copies));
    assert_eq!(counts(&again), (0, new, copies));
    let sql = "select text, (select count(*) from tool_uses) from prompts order by at_us";
    assert_eq!(rows(&sandbox, sql), "first run|2\nsecond run|2\nthird run|2\nfourth run|2\n");
    assert_eq!(rows(&sandbox, "select count(*) from sessions"), "2\n");
}

#[test]
fn subagents_belong_to_the_turn_that_sent_them() {
    let sandbox = Sandbox::new();
    place(&sandbox, "subagent.2.jsonl", "s");
    place(&sandbox, "subagent.0.subagent.jsonl", "s/subagents/agent-a55021b62ca814919");
    import(&sandbox, &["--from", "transcripts"]);
    let tools =
        rows(&sandbox, "select tool, turn, agent_id, agent_type from tool_uses order by seq");
    assert_eq!(tools, "Task|1||\nTask|1||\nBash|1|a55021b62ca814919|general-purpose\n");
    let stops = printed(&sandbox, "SummaryRequested", &["scope", "last_assistant_message"]);
    assert_eq!(stops, [json!(["Turn", "Delegated."]), json!(["Subagent", "Sub A finished."])]);
    assert_eq!(rows(&sandbox, "select count(*) from sessions"), "1\n");
}

fn row(number: u32, kind: &str, content: &Value) -> String {
    let row = json!({"type": kind, "sessionId": "s", "cwd": "/scratch/project",
        "uuid": format!("u{number}"), "timestamp": format!("2026-01-01T00:00:{number:02}.000Z"),
        "message": {"role": kind, "content": content}});
    format!("{row}\n")
}

/// A row with additional fields.
fn row_with(number: u32, kind: &str, content: &Value, fields: &Value) -> String {
    let mut row: Value = serde_json::from_str(&row(number, kind, content)).unwrap();
    row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("{row}\n")
}

const REJECTED: &str = "\
    The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was \
    a file edit, the new_string was NOT written to the file). ";

#[test]
fn narration_and_rejections_are_recorded_with_the_stop() {
    let sandbox = Sandbox::new();
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = |id: &str, tool: &str| json!([{"type": "tool_use", "id": id, "name": tool, "input": {"command": "git push"}}]);
    let result = |id: &str, content: &str, is_error: bool| json!([{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}]);
    let response =
        format!("{REJECTED}To tell you how to proceed, the user said:\nnever push to main");
    let stop = format!("{REJECTED}STOP what you are doing and wait for the user.");
    let rows = [
        row(1, "user", &json!("publish it")),
        row(2, "assistant", &text("I push the branch.")),
        row(3, "assistant", &call("t1", "Bash")),
        row(4, "user", &result("t1", &response, true)),
        row_with(5, "user", &json!("Summary:\n1. Publish."), &json!({"isCompactSummary": true})),
        row(6, "assistant", &call("t2", "Bash")),
        row(7, "user", &result("t2", "pushed", false)),
        row(8, "assistant", &text("Published from a branch.")),
        row_with(
            9,
            "attachment",
            &json!(null),
            &json!({"attachment": {"type": "queued_command",
            "prompt": [{"type": "text", "text": "and then"}, {"type": "text", "text": "rest"}]}}),
        ),
        row(10, "user", &json!("again")),
        row(11, "assistant", &text("Once more.")),
        row(12, "assistant", &call("t3", "Bash")),
        row(13, "user", &result("t3", &stop, true)),
        row(14, "user", &json!("stay")),
        row(15, "assistant", &call("t4", "Skill")),
        row(16, "user", &result("t4", "x", false)),
        row_with(17, "assistant", &text("API Error: 529"), &json!({"isApiErrorMessage": true})),
        row(18, "user", &json!("go")),
        row(19, "assistant", &call("t5", "Bash")),
    ];
    sandbox.write(".claude/projects/p/s.jsonl", &rows.concat());
    let report = import(&sandbox, &["--from", "transcripts"]);
    let expected = json!({"of skipped tools": 1, "rejected or denied": 2, "without a result": 1});
    assert_eq!(report["tool_uses_left_out"], expected);
    let remark =
        |kind: &str, id: &str, text: &str| json!({"kind": kind, "tool_use_id": id, "text": text});
    let stops = [
        json!([
            "Published from a branch.",
            [
                remark("Narration", "t1", "I push the branch."),
                remark("Rejection", "t1", "never push to main"),
                remark("Compaction", "", "1. Publish."),
            ]
        ]),
        json!([
            "",
            [remark("Narration", "t3", "Once more."), remark("Denied", "t3", "Bash: git push")]
        ]),
        json!(["", [remark("ApiError", "", "API Error: 529")]]),
        json!(["", []]),
    ];
    assert_eq!(
        printed(&sandbox, "SummaryRequested", &["last_assistant_message", "remarks"]),
        stops
    );
    assert_eq!(printed(&sandbox, "ToolUsed", &["tool_use_id"]), [json!(["t2"])]);
    let prompts = "publish it\nand then\nrest\nagain\nstay\ngo\n";
    assert_eq!(crate::import::rows(&sandbox, "select text from prompts order by seq"), prompts);
    let again = sandbox.run(&["import", "--from", "transcripts"]).ok();
    let line =
        "4 tool uses left out: 1 of skipped tools, 2 rejected or denied, 1 without a result\n";
    assert!(again.starts_with("0 events added") && again.contains(line), "{again}");
}

/// Without a stop it would never be distilled. The next import finds the answer.
#[test]
fn a_prompt_that_ends_a_transcript_is_a_turn_until_it_has_an_answer() {
    let sandbox = Sandbox::new();
    let path = ".claude/projects/p/s.jsonl";
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let before = [
        row(1, "user", &json!("sell pens")),
        row(2, "assistant", &text("Pens are sold.")),
        row(3, "user", &json!("Never sell pens on Sundays.")),
    ];
    sandbox.write(path, &before.concat());
    import(&sandbox, &["--from", "transcripts"]);
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    let remembered = "select type, title from observations where type = 'rule'";
    let rule = "rule|Never sell pens on Sundays\n";
    assert_eq!(rows(&sandbox, remembered), rule);
    let answer = row(4, "assistant", &text("Pens are not sold on Sundays."));
    sandbox.write(path, &(before.concat() + &answer));
    assert_eq!(added(&import(&sandbox, &["--from", "transcripts"])), 1);
    assert_eq!(added(&import(&sandbox, &["--from", "transcripts"])), 0);
    sandbox.run_with(&["distill"], &[("CLAUDE_MEM_PROVIDER", "extract")], "").ok();
    assert_eq!(rows(&sandbox, remembered), rule, "the same rule is not stored twice");
    let stops = printed(&sandbox, "SummaryRequested", &["last_assistant_message"]);
    let messages = ["Pens are sold.", "", "Pens are not sold on Sundays."];
    assert_eq!(stops, messages.map(|text| json!([text])));
}

#[test]
fn a_compaction_after_a_private_turn_is_not_recorded() {
    let sandbox = Sandbox::new();
    let rows = [
        row(1, "user", &json!("<private>walrus</private>")),
        row(2, "assistant", &json!([{"type": "text", "text": "walrus"}])),
        row(3, "user", &json!("go on")),
        row_with(4, "user", &json!("Summary:\nwalrus"), &json!({"isCompactSummary": true})),
        row(5, "assistant", &json!([{"type": "text", "text": "done"}])),
    ];
    sandbox.write(".claude/projects/p/s.jsonl", &rows.concat());
    import(&sandbox, &["--from", "transcripts"]);
    assert_eq!(
        printed(&sandbox, "SummaryRequested", &["last_assistant_message", "remarks"]),
        [json!(["done", []])]
    );
}

#[test]
fn private_turns_and_secrets_are_not_stored() {
    let sandbox = Sandbox::new();
    let call = |id: &str| json!([{"type": "tool_use", "id": id, "name": "Bash", "input": {"a": "walrus"}}]);
    let result =
        |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "walrus"}]);
    let text = [
        row(1, "user", &json!("<private>walrus</private>")),
        row(2, "assistant", &call("t1")),
        row(3, "user", &result("t1")),
        row(4, "assistant", &json!([{"type": "text", "text": "walrus"}])),
        row(5, "user", &json!("use AKIAIOSFODNN7EXAMPLQ <private>walrus</private> please")),
        row(6, "assistant", &json!([{"type": "text", "text": "done with AKIAIOSFODNN7EXAMPLQ"}])),
    ];
    sandbox.write(".claude/projects/p/s.jsonl", &text.concat());
    import(&sandbox, &["--from", "transcripts"]);
    let events = format!("{:?}", sandbox.events());
    assert!(!events.contains("walrus") && !events.contains("AKIAIOSF"), "{events}");
    assert!(events.contains("please") && events.contains("done with"), "{events}");
    assert_eq!(rows(&sandbox, "select number, is_private from prompts"), "1|1\n2|0\n");
}

#[test]
fn excluded_and_unselected_projects_are_not_imported() {
    let sandbox = Sandbox::new();
    place(&sandbox, "tools_basic.0.jsonl", "s");
    let arguments = ["import", "--json", "--from", "transcripts"];
    let excluded = [("CLAUDE_MEM_EXCLUDED_PROJECTS", "/scratch/**")];
    let report: Value =
        serde_json::from_str(&sandbox.run_with(&arguments, &excluded, "").ok()).unwrap();
    assert_eq!(report["left_out"], json!({"sessions of projects that are excluded": 1}));
    let later = import(&sandbox, &["--from", "transcripts", "--since", "2027-01-01"]);
    let other = import(&sandbox, &["--from", "transcripts", "--project", "other"]);
    assert_eq!((added(&report), added(&later), added(&other)), (0, 0, 0));
    assert!(added(&import(&sandbox, &["--from", "transcripts", "--project", "project"])) > 0);
}

#[test]
fn invalid_lines_of_any_length_are_counted_and_skipped() {
    let sandbox = Sandbox::new();
    let path = sandbox.write(".claude/projects/p/s.jsonl", &row(1, "user", &json!("first")));
    let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"not json\n[1, 2]\n\xff\xfe\n{\"type\": 7, \"message\": []}\n").unwrap();
    // A sparse file: a long line for a reader, no blocks on the disk.
    file.set_len(file.metadata().unwrap().len() + (200 << 20)).unwrap();
    file.write_all(format!("\n{}", row(2, "user", &json!("last"))).as_bytes()).unwrap();
    let report = import(&sandbox, &[path.to_str().unwrap()]);
    let refused = json!({"lines that are not JSON objects": 3, "lines that are too long": 1});
    assert_eq!(report["refused"], refused);
    assert_eq!(rows(&sandbox, "select text from prompts"), "first\nlast\n");
}

#[test]
fn without_a_source_the_available_ones_are_listed() {
    let sandbox = Sandbox::new();
    let error = sandbox.run(&["import"]).fails(2);
    assert!(error.contains("--help"), "{error}");
    place(&sandbox, "tools_basic.0.jsonl", "s");
    let error = sandbox.run(&["import"]).fails(2);
    assert!(error.contains("`claude-mem import --from transcripts`"), "{error}");
    let error = sandbox.run(&["import", "nowhere"]).fails(1);
    assert!(error.contains("nowhere cannot be read"), "{error}");
    let error = sandbox.run(&["import", "--from", "transcripts", "nowhere"]).fails(1);
    assert!(error.contains("nowhere cannot be read"), "{error}");
}
