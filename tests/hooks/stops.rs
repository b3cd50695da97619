//! Events of a stop: the last message, and the remarks in the transcript of its turn.

use std::{fs, path::Path};

use serde_json::{Value, json};

use super::{payload, prompt, subjects};
use crate::sandbox::Sandbox;

#[test]
fn a_stop_records_the_last_message() {
    let sandbox = Sandbox::new();
    let tasks = json!([{"id": "a", "status": "running"}, {"id": "b", "status": "running"}]);
    let stops = [
        payload("Stop", json!({"last_assistant_message": "one"})),
        payload(
            "Stop",
            json!({"last_assistant_message": "two", "stop_hook_active": true, "background_tasks": tasks}),
        ),
        payload(
            "SubagentStop",
            json!({"last_assistant_message": "three", "agent_id": "a1", "agent_type": "Explore"}),
        ),
        payload("SubagentStop", json!({"last_assistant_message": "four", "agent_id": "a2"})),
        payload(
            "SubagentStop",
            json!({"last_assistant_message": "five", "agent_id": "a3", "agent_type": ""}),
        ),
    ];
    for stop in stops {
        sandbox.hook("summary", stop);
    }
    let events = sandbox.events();
    let of = |name: &str| events.iter().map(|e| e["event"][name].clone()).collect::<Vec<_>>();
    assert_eq!(of("scope"), ["Turn", "Turn", "Subagent", "Subagent", "Compaction"]);
    assert_eq!(of("is_stop_hook_active"), [false, true, false, false, false]);
    assert_eq!(of("background_tasks"), [0, 2, 0, 0, 0]);
    assert_eq!(events[1]["event"]["extra"]["background_tasks"], tasks);
}

#[test]
fn an_older_clients_last_words_come_from_its_transcript() {
    let sandbox = Sandbox::new();
    let transcript = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/transcripts/tools_basic.0.jsonl");
    let copy = sandbox.write("t.jsonl", &fs::read_to_string(transcript).unwrap());
    sandbox.hook("summary", payload("Stop", json!({"transcript_path": copy})));
    let reminder = "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\
        \"Done.<system-reminder>be quiet</system-reminder>\"}]}}\n";
    let copy = sandbox.write("r.jsonl", reminder);
    sandbox.hook("summary", payload("SubagentStop", json!({"agent_transcript_path": copy})));
    let events = sandbox.events();
    assert_eq!(events[0]["event"]["last_assistant_message"], "All done, everything works.");
    assert_eq!(events[0]["event"]["last_user_message"], "do some work");
    assert_eq!(events[1]["event"]["last_assistant_message"], "Done.");
}

fn transcript_row(kind: &str, content: &Value, fields: &Value) -> String {
    let mut row =
        json!({"type": kind, "promptId": "p1", "message": {"role": kind, "content": content}});
    row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    format!("{row}\n")
}

/// A turn in which the user rejected a tool use, as the client writes it.
fn transcript() -> String {
    let none = json!({});
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = |id: &str, tool: &str| json!([{"type": "tool_use", "id": id, "name": tool, "input": {"command": "git push"}}]);
    let refused = |id: &str, text: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": true}]);
    let rejection = "\
        The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it \
        was a file edit, the new_string was NOT written to the file). To tell you how to proceed, \
        the user said:\n\
        never push to main";
    let denied = "Permission to use Bash with command git push has been denied.";
    [
        transcript_row("user", &json!("earlier"), &json!({"promptId": "p0"})),
        transcript_row("assistant", &text("Earlier words."), &none),
        transcript_row("assistant", &call("t0", "Bash"), &none),
        transcript_row("user", &json!("publish it"), &none),
        transcript_row(
            "assistant",
            &text("I push with ghp_16C7e42F292c6912E7710c838347Ae178B4a now."),
            &none,
        ),
        transcript_row("assistant", &call("t1", "Bash"), &none),
        transcript_row("user", &refused("t1", rejection), &none),
        transcript_row("assistant", &call("t2", "Bash"), &none),
        transcript_row("user", &refused("t2", denied), &none),
        transcript_row("assistant", &call("t3", "Skill"), &none),
        transcript_row("user", &refused("t3", denied), &none),
        transcript_row("assistant", &text("All done."), &none),
    ]
    .concat()
}

#[test]
fn a_stop_records_the_remarks_in_the_transcript() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("t.jsonl", &transcript());
    let stop = |event: &str, fields: Value| {
        let mut fields = fields;
        fields["transcript_path"] = json!(path);
        fields["prompt_id"] = json!("p1");
        payload(event, fields)
    };
    let remark =
        |kind: &str, id: &str, text: &str| json!({"kind": kind, "tool_use_id": id, "text": text});
    let turn = [
        remark("Narration", "t1", "I push with [redacted:github-token] now."),
        remark("Rejection", "t1", "never push to main"),
        remark("Denied", "t2", "Bash: git push"),
    ];
    sandbox.hook("summary", stop("Stop", json!({"last_assistant_message": "All done."})));
    sandbox.hook(
        "summary",
        stop(
            "SubagentStop",
            json!({"last_assistant_message": "x", "agent_id": "a", "agent_type": "t"}),
        ),
    );
    let failure = json!({"error": "overloaded", "last_assistant_message": "API Error: 529"});
    sandbox.hook("summary", stop("StopFailure", failure));
    let events = sandbox.events();
    let of = |name: &str| events.iter().map(|e| e["event"][name].clone()).collect::<Vec<_>>();
    assert_eq!(of("scope"), ["Turn", "Subagent", "Turn"]);
    assert_eq!(of("last_assistant_message"), ["All done.", "x", ""]);
    assert_eq!(of("remarks")[..2], [json!(turn), json!([])]);
    let mut failed = turn.to_vec();
    // There was no last message, so the last text is a remark, too.
    failed.push(remark("Narration", "", "All done."));
    failed.push(remark("ApiError", "", "API Error: 529"));
    assert_eq!(of("remarks")[2], json!(failed));
}

#[test]
fn nothing_is_read_from_the_transcript_of_a_private_turn() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("t.jsonl", &transcript());
    sandbox.hook("new", prompt("<private>publish it</private>", "p1"));
    let stop = json!({"last_assistant_message": "x", "transcript_path": path, "prompt_id": "p1"});
    sandbox.hook("summary", payload("Stop", stop));
    assert_eq!(subjects(&sandbox), ["PromptSubmitted (private)"]);
    // A summary of a conversation with a private part is not recorded, because it may repeat it.
    sandbox.hook("new", prompt("go on", "p2"));
    let compaction =
        json!({"last_assistant_message": "x", "transcript_path": path, "agent_type": ""});
    sandbox.hook("summary", payload("SubagentStop", compaction.clone()));
    sandbox.write(
        "t.jsonl",
        &format!("{}{}", transcript(), transcript_row("user", &json!("<private>y"), &json!({}))),
    );
    sandbox.hook("summary", payload("SubagentStop", compaction));
    assert_eq!(
        subjects(&sandbox)[1..],
        ["PromptSubmitted go on", "SummaryRequested (compaction) x"]
    );
}
