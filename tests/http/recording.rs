//! Sessions that programs send: by the client's session id, and by number.

use std::{
    io::Read,
    net::{TcpListener, TcpStream},
    thread,
};

use serde_json::{Value, json};

use super::Site;
use crate::serving::until;

#[test]
fn a_session_reported_over_http_is_recorded_like_one_of_hooks() {
    let site = Site::new();
    site.remember_turn("s1", "fix the cart", "cart.rs");
    let kinds: Vec<String> = site
        .sandbox
        .events()
        .iter()
        .map(|event| event["kind"].as_str().unwrap().to_owned())
        .collect();
    let expected =
        ["SessionStarted", "PromptSubmitted", "ToolUsed", "SummaryRequested", "AgentReplied"];
    assert_eq!(kinds, expected);
    let ended = json!({"contentSessionId": "s1", "reason": "clear"});
    assert_eq!(site.post("/api/sessions/complete", &ended), json!({"status": "queued"}));
    until(|| site.get("/api/session/s1")["session"]["status"] == "completed");
    let session = site.get("/api/session/1");
    assert_eq!(session["session"]["content_session_id"], "s1");
    let turn = &session["turns"][0];
    assert_eq!(
        (&turn["prompt"]["prompt_text"], &turn["tools"]),
        (&json!("fix the cart"), &json!([{"tool": "Edit", "count": 1}]))
    );
    assert_eq!(turn["summary"]["request"], "Fix the cart");
    assert_eq!(turn["observations"].as_array().unwrap().len(), 1);
}

#[test]
fn an_event_reported_twice_is_recorded_once_and_prompts_are_counted() {
    let site = Site::new();
    let init = |prompt: &str| {
        let init = json!({"contentSessionId": "s1", "project": "shop", "prompt": prompt});
        site.post("/api/sessions/init", &init)
    };
    let first = init("one");
    assert_eq!((&first["sessionDbId"], &first["promptNumber"]), (&json!(1), &json!(1)));
    assert_eq!(init("two")["promptNumber"], 2);
    let used = json!({"contentSessionId": "s1", "tool_name": "Bash", "tool_use_id": "toolu_1"});
    site.post("/api/sessions/observations", &used);
    site.post("/api/sessions/observations", &used);
    until(|| site.get("/api/session/s1")["session"]["tool_uses"] == 1);
    assert_eq!(site.get("/api/session/s1")["session"]["project"], "shop");
}

#[test]
fn an_input_as_text_and_an_output_by_its_other_name_are_understood() {
    let site = Site::new();
    let used = json!({"contentSessionId": "s1", "tool_name": "Bash", "cwd": "/work/shop",
        "tool_input": r#"{"command": "cargo test"}"#, "tool_output": {"stdout": "ok"}});
    site.post("/api/sessions/observations", &used);
    let event = site.sandbox.events()[0]["event"].clone();
    assert_eq!(event["input"], json!({"command": "cargo test"}));
    assert_eq!(event["output"], json!({"stdout": "ok"}));
}

/// The calls of the VS Code extension in the first documentation of claude-mem, with a token added.
#[test]
fn the_routes_and_names_of_early_extensions_work() {
    let site = Site::new();
    let bearer = format!("Bearer {}", site.token());
    let authority = site.authority();
    let send = |path: &str, body: &Value| {
        let headers = [("host", authority.as_str()), ("authorization", bearer.as_str())];
        site.raw("POST", path, &headers, &body.to_string()).ok()["status"].clone()
    };
    let prompt = json!({"sessionId": "s1", "project": "shop", "userPrompt": "fix the cart",
        "platformSource": "vscode"});
    assert_eq!(send("/sessions/init", &prompt), "initialized");
    let used = json!({"claudeSessionId": "s1", "tool_name": "Edit", "cwd": "",
        "tool_input": r#"{"file_path": "cart.rs"}"#, "tool_output": "ok"});
    assert_eq!(send("/sessions/observations", &used), "queued");
    assert_eq!(send("/api/sessions/observations", &used), "queued");
    let body = json!({"claudeSessionId": "s1", "last_user_message": "fix the cart",
        "last_assistant_message": "Done."});
    assert_eq!(send("/sessions/summarize", &body), "queued");
    assert_eq!(
        send("/sessions/complete", &json!({"claudeSessionId": "s1", "reason": "exit"})),
        "queued"
    );
    let context = site.ask("GET", "/api/context/inject?project=never-seen", None);
    assert_eq!((context.status, context.body.as_str()), (200, ""));
    let events = site.sandbox.events();
    assert!(events.iter().all(|event| event["platform"] == "vscode"), "{events:#?}");
    assert_eq!(events[2]["event"]["input"], json!({"file_path": "cart.rs"}));
    let refused = site.raw("POST", "/sessions/init", &[("host", &authority)], &prompt.to_string());
    assert_eq!(refused.status, 401);
}

#[test]
fn sessions_can_be_addressed_by_number_and_unknown_ones_are_created() {
    let site = Site::new();
    let body = json!({"userPrompt": "fix it", "project": "shop"});
    assert_eq!(site.ask("POST", "/sessions/7/init", Some(&body)).status, 404);
    assert_eq!(site.ask("GET", "/sessions/7/status", None).status, 404);
    let used = json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_output": "x"});
    assert_eq!(site.post("/sessions/7/observations", &used)["status"], "queued");
    until(|| site.ask("GET", "/sessions/7/status", None).status == 200);
    let standing = site.get("/sessions/7/status");
    assert_eq!((&standing["status"], &standing["queueLength"]), (&json!("active"), &json!(1)));
    let begun = site.post("/sessions/7/init", &body);
    assert_eq!(begun["promptNumber"], 1, "{begun}");
    assert_eq!(begun["sessionDbId"], standing["sessionDbId"]);
    assert_eq!(site.ask("POST", "/sessions/7/summarize", None).ok()["status"], "queued");
    until(|| site.get("/sessions/7/status")["queueLength"] == 0);
    // The prompt made the tool use due. The queue may be empty before the stop is in it, and the
    // stop may come between two requests.
    let number = standing["sessionDbId"].as_i64().unwrap();
    until(|| site.get(&format!("/sessions/{number}/status")) == site.get("/sessions/7/status"));
}

#[test]
fn a_session_can_be_cancelled_and_its_events_stay_in_the_log() {
    let mut site = Site::new();
    let used = json!({"contentSessionId": "s1", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "cargo test"}, "tool_response": "ok", "cwd": "/work/shop"});
    site.post("/api/sessions/observations", &used);
    until(|| site.ask("GET", "/sessions/1/status", None).status == 200);
    let deleted = site.ask("DELETE", "/sessions/1", None).ok();
    assert_eq!(deleted, json!({"status": "deleted", "isStopped": true}));
    assert_eq!(site.ask("DELETE", "/sessions/99", None).status, 404);
    // Also after a restart, in the list and in SQL; and the events are not distilled.
    site.restart();
    let standing = site.get("/sessions/1/status");
    assert_eq!((&standing["status"], &standing["queueLength"]), (&json!("failed"), &json!(1)));
    assert_eq!(site.get("/api/sessions")["items"][0]["status"], "failed");
    let query = ["sql", "select status from sdk_sessions", "--json"];
    assert_eq!(site.sandbox.run(&query).ok(), "{\"status\":\"failed\"}\n");
    site.sandbox.run(&["distill"]).ok();
    assert_eq!(site.get("/sessions/1/status")["queueLength"], 1);
    let stop = json!({"contentSessionId": "s1", "cwd": "/work/shop"});
    site.post("/api/sessions/summarize", &stop);
    until(|| site.get("/sessions/1/status")["queueLength"] == 0);
}

/// A model that accepts a request and never responds. Returns the connection once the request has
/// arrived.
fn silent_model() -> (String, thread::JoinHandle<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        stream
    });
    (url, asked)
}

#[test]
fn deleting_a_session_cancels_the_request_to_the_model() {
    let (url, asked) = silent_model();
    let site = Site::with(&[
        ("CLAUDE_MEM_PROVIDER", "anthropic"),
        ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-test"),
        ("CLAUDE_MEM_ANTHROPIC_BASE_URL", &url),
        // Without cancelling, nothing would end before this time.
        ("CLAUDE_MEM_DELETE_TIMEOUT", "600"),
    ]);
    let used = json!({"contentSessionId": "s1", "tool_name": "Bash", "tool_use_id": "t1",
        "tool_input": {"command": "cargo test"}, "tool_response": "ok", "cwd": "/work/shop"});
    site.post("/api/sessions/observations", &used);
    site.post("/api/sessions/summarize", &json!({"contentSessionId": "s1", "cwd": "/work/shop"}));
    let mut stream = asked.join().unwrap();
    until(|| site.get("/health")["distilling"] == 1);
    let deleted = site.ask("DELETE", "/sessions/1", None).ok();
    assert_eq!(deleted, json!({"status": "deleted", "isStopped": true}));
    // The connection to the model is closed: the rest of the request is followed by its end.
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    let standing = site.get("/sessions/1/status");
    assert_eq!((&standing["status"], &standing["queueLength"]), (&json!("failed"), &json!(2)));
    let events = site.sandbox.events();
    let failures: Vec<_> = events.iter().filter(|event| event["kind"] == "AgentFailed").collect();
    assert_eq!(failures.len(), 1, "{events:?}");
    assert_eq!(failures[0]["event"]["message"], "cancelled: the session was deleted");
    assert_eq!(site.get("/health")["status"], "ok", "it says nothing of the provider");
}

#[test]
fn the_time_that_a_deletion_waits_is_a_setting_like_any_other() {
    let site = Site::new();
    let set = site.sandbox.run(&["settings", "set", "DELETE_TIMEOUT", "30"]);
    set.ok();
    let settings = site.get("/api/settings");
    let shown = settings["settings"].as_array().unwrap().iter();
    let shown = shown.filter(|one| one["name"] == "CLAUDE_MEM_DELETE_TIMEOUT");
    assert_eq!(shown.map(|one| one["value"].clone()).collect::<Vec<_>>(), [json!("30")]);
}
