//! The real Claude Code with the scripted model: what its hooks get, which the tests of this program rely on.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use claude_mem_tools::client::{Client, Outcome};
use claude_mem_tools::model::{Answer, Script, Server};
use serde_json::{Value, json};

const CONTEXT: &str = "Last week the parser was rewritten.";

/// A client whose hooks append their stdin to a file; the first one also gives context.
struct Hooked {
    client: Client,
    payloads: PathBuf,
}

impl Hooked {
    fn new(server: &Server, project: &Path) -> Self {
        let client = client(server).in_directory(project);
        let payloads = client.home().join("payloads");
        fs::create_dir(&payloads).unwrap();
        let script = client.home().join("record.sh");
        fs::write(&script, RECORD).unwrap();
        let hook = |event: &str| {
            let command = format!("sh '{}' '{}' {event}", script.display(), payloads.display());
            json!([{"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": 20}]}])
        };
        let events = EVENTS.map(|event| (event.to_owned(), hook(event)));
        let hooks: serde_json::Map<String, Value> = events.into_iter().collect();
        let client = client.settings(&json!({"hooks": hooks})).unwrap();
        Self { client, payloads }
    }

    /// The payloads of an event, in no particular order, because of parallel tools.
    fn payloads(&self, event: &str) -> Vec<Value> {
        let files = fs::read_dir(&self.payloads).unwrap().map(|entry| entry.unwrap().path());
        let of_event = files.filter(|path| name(path).starts_with(&format!("{event}.")));
        of_event.map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap()).collect()
    }

    fn payload(&self, event: &str) -> Value {
        let mut payloads = self.payloads(event);
        assert_eq!(payloads.len(), 1, "{event}: {payloads:#?}");
        payloads.remove(0)
    }

    /// The uses of this tool, by the id of the call.
    fn used(&self, tool: &str) -> Vec<Value> {
        let mut used = self.payloads("PostToolUse");
        used.retain(|payload| payload["tool_name"] == tool);
        used.sort_by_key(|payload| payload["tool_use_id"].to_string());
        used
    }
}

/// One file per payload, since hooks of parallel tools run at the same time.
const RECORD: &str = r#"
file=$(mktemp "$1/$2.XXXXXX") && cat >"$file"
[ "$2" != SessionStart ] || cat <<'END'
{"hookSpecificOutput":{"hookEventName":"SessionStart","additionalContext":"Last week the parser was rewritten."}}
END
"#;

const EVENTS: [&str; 7] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "SessionEnd",
];

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Panics with the reason if the client cannot be installed: a test that cannot run has not passed.
fn client(server: &Server) -> Client {
    Client::new(&server.url()).unwrap_or_else(|error| panic!("{error}"))
}

fn assert_ended_well(outcome: &Outcome) {
    assert!(outcome.status.success() && !outcome.timed_out, "{outcome:#?}");
}

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

fn bash(command: &str) -> (&'static str, Value) {
    ("Bash", json!({"command": command, "description": "scripted"}))
}

/// A session with one tool, with several at once, with a failing one, and a last message.
fn conversation(file: &str) -> Script {
    Script::new()
        .then(Answer::tools([bash("echo hi; pwd; echo oops >&2")]))
        .then(Answer::tools([("Write", json!({"file_path": file, "content": "alpha\nbeta\n"}))]))
        .then(Answer::tools([
            ("Read", json!({"file_path": file})),
            bash("printf one"),
            bash("printf two"),
        ]))
        .then(Answer::tools([bash("echo broken; exit 3")]))
        .then(Answer::text("All done."))
}

#[test]
fn hooks_see_the_whole_session_and_their_context_reaches_the_model() {
    let project = tempfile::tempdir().unwrap();
    let file = project.path().join("notes.txt");
    let file = file.to_str().unwrap();
    let server = Server::start(conversation(file)).unwrap();
    let hooked = Hooked::new(&server, project.path());

    let outcome = hooked.client.prompt("do some work").unwrap();

    assert_ended_well(&outcome);
    assert_eq!(outcome.result()["result"], "All done.");
    assert_eq!(fs::read_to_string(file).unwrap(), "alpha\nbeta\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 5, "nothing but the conversation is sent: {requests:#?}");
    assert!(requests[0].all_text().contains(CONTEXT), "{:#}", requests[0].body);
    assert!(requests[0].all_text().contains("do some work"));
    let results: BTreeMap<_, _> = requests[3].tool_results().into_iter().collect();
    assert_eq!(results["toolu_scripted_000002_1"], "one"); // they come in the order they ended
    assert_eq!(results["toolu_scripted_000002_2"], "two");

    let session = &outcome.result()["session_id"];
    for event in EVENTS {
        for payload in hooked.payloads(event) {
            assert_eq!(
                (&payload["session_id"], &payload["hook_event_name"]),
                (session, &json!(event))
            );
            assert_eq!(payload["cwd"], project.path().to_str().unwrap());
            let transcript = payload["transcript_path"].as_str().unwrap();
            assert!(transcript.ends_with(&format!("{}.jsonl", session.as_str().unwrap())));
        }
    }
    assert_eq!(hooked.payload("SessionStart")["source"], "startup");
    assert_eq!(hooked.payload("UserPromptSubmit")["prompt"], "do some work");
    let stop = hooked.payload("Stop");
    assert_eq!(stop["last_assistant_message"], "All done.");
    assert_eq!((&stop["stop_hook_active"], &stop["background_tasks"]), (&json!(false), &json!([])));
    assert_eq!(hooked.payload("SessionEnd")["reason"], "other");
    assert_eq!(hooked.payloads("PreToolUse").len(), 6);
    assert_eq!(hooked.payloads("PostToolUse").len(), 5);
    assert_tool_payloads(&hooked, file);
}

fn assert_tool_payloads(hooked: &Hooked, file: &str) {
    let bash = hooked.used("Bash");
    let stdouts: Vec<_> = bash.iter().map(|used| used["tool_response"]["stdout"].clone()).collect();
    let cwd = hooked.client.cwd().to_str().unwrap();
    assert_eq!(stdouts, [format!("hi\n{cwd}\noops"), "one".to_owned(), "two".to_owned()]);
    assert_eq!(
        keys(&bash[0]["tool_response"]),
        BTreeSet::from(["stdout", "stderr", "interrupted", "isImage", "noOutputExpected"])
    );
    assert!(bash[0]["tool_use_id"].as_str().unwrap().starts_with("toolu_"));
    assert!(bash[0]["duration_ms"].is_number() && bash[0]["prompt_id"].is_string());
    assert_eq!(bash[0]["permission_mode"], "default");

    let write = &hooked.used("Write")[0];
    assert_eq!(write["tool_input"], json!({"file_path": file, "content": "alpha\nbeta\n"}));
    let response = &write["tool_response"];
    assert_eq!((&response["type"], &response["filePath"]), (&json!("create"), &json!(file)));
    assert!(response["structuredPatch"].is_array() && response["originalFile"].is_null());

    let read = &hooked.used("Read")[0]["tool_response"];
    assert_eq!(
        (&read["type"], &read["file"]["content"]),
        (&json!("text"), &json!("alpha\nbeta\n"))
    );

    let failed = hooked.payload("PostToolUseFailure");
    assert_eq!(failed["tool_input"]["command"], "echo broken; exit 3");
    let error = failed["error"].as_str().unwrap();
    assert!(error.contains("Exit code 3") && error.contains("broken"), "{error}");
    assert!(failed["is_interrupt"] == false && failed["tool_response"].is_null());
}
