//! The model server over plain HTTP, so that protocol errors are found without any client.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{Read, Write};
use std::net::TcpStream;

use claude_mem_tools::model::{Answer, Block, Gate, Request, Script, Server, Usage, When};
use serde_json::{Value, json};

struct Reply {
    status: u16,
    retry_after: Option<String>,
    text: Result<String, String>,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(self.text.as_ref().unwrap()).unwrap()
    }

    /// The data of every event of a stream, whose name is its type.
    fn events(&self) -> Vec<Value> {
        let text = self.text.as_ref().unwrap();
        text.split_terminator("\n\n").map(event).collect()
    }
}

fn event(lines: &str) -> Value {
    let (name, data) = lines.split_once('\n').unwrap();
    let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(name.strip_prefix("event: ").unwrap(), data["type"]);
    data
}

fn post(server: &Server, path: &str, headers: &[(&str, &str)], body: &Value) -> Reply {
    let config = ureq::Agent::config_builder().http_status_as_error(false);
    let agent = ureq::Agent::new_with_config(config.build());
    let mut request = agent.post(format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut response = request.send_json(body).unwrap();
    let retry_after = response.headers().get("retry-after");
    let retry_after = retry_after.map(|value| value.to_str().unwrap().to_owned());
    let text = response.body_mut().read_to_string().map_err(|error| error.to_string());
    Reply { status: response.status().as_u16(), retry_after, text }
}

const KEYS: &[(&str, &str)] = &[("x-api-key", "k"), ("anthropic-version", "2023-06-01")];

fn question(text: &str) -> Value {
    json!({"model": "claude-haiku-4-5", "max_tokens": 100,
        "messages": [{"role": "user", "content": text}]})
}

fn ask(server: &Server, text: &str) -> Reply {
    post(server, "/v1/messages", KEYS, &question(text))
}

fn ask_for_a_stream(server: &Server, text: &str) -> Reply {
    let mut body = question(text);
    body["stream"] = true.into();
    post(server, "/v1/messages?beta=true", KEYS, &body)
}

fn ask_openai(server: &Server, text: &str) -> Reply {
    let body = json!({"model": "local", "messages": [{"role": "user", "content": text}]});
    post(server, "/v1/chat/completions", &[], &body)
}

fn always(answer: Answer) -> Server {
    Server::start(Script::new().otherwise(answer)).unwrap()
}

fn usage() -> Usage {
    Usage { input: 11, output: 7, cache_creation: 3, cache_read: 5 }
}

#[test]
fn a_message_is_complete_without_streaming() {
    let server = always(Answer::text("Hello.").usage(usage()));
    let reply = ask(&server, "hi");
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({"id": "msg_scripted_000000", "type": "message", "role": "assistant",
            "model": "claude-haiku-4-5", "content": [{"type": "text", "text": "Hello."}],
            "stop_reason": "end_turn", "stop_sequence": null,
            "usage": {"input_tokens": 11, "output_tokens": 7, "cache_creation_input_tokens": 3,
                "cache_read_input_tokens": 5}})
    );
}

#[test]
fn a_stream_has_every_event_in_the_order_of_the_protocol() {
    let call = Block::Tool { name: "Bash".into(), input: json!({"command": "echo hi"}) };
    let server = always(Answer::blocks([Block::Text("Go.".into()), call]).usage(usage()));
    let events = ask_for_a_stream(&server, "hi").events();
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let block = ["content_block_delta", "content_block_delta", "content_block_stop"];
    let mut expected = vec!["message_start", "content_block_start", "ping"];
    expected.extend(block);
    expected.push("content_block_start");
    expected.extend(block);
    expected.extend(["message_delta", "message_stop"]);
    assert_eq!(types, expected);
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 11);
    assert_eq!(events[6]["content_block"]["input"], json!({}));
    let delta = &events[events.len() - 2];
    assert_eq!(delta["delta"]["stop_reason"], "tool_use");
    assert_eq!(delta["usage"]["output_tokens"], 7);
}

#[test]
fn the_pieces_of_a_stream_join_to_what_was_scripted() {
    let text = "Grüße, 世界 🎉 ".repeat(500);
    let input = json!({"content": text});
    let answer =
        [Block::Text(text.clone()), Block::Tool { name: "W".into(), input: input.clone() }];
    let events = ask_for_a_stream(&always(Answer::blocks(answer)), "hi").events();
    let join = |field: &str| -> String {
        events.iter().filter_map(|event| event["delta"][field].as_str()).collect()
    };
    assert_eq!(join("text"), text);
    assert_eq!(serde_json::from_str::<Value>(&join("partial_json")).unwrap(), input);
    assert!(events.len() < 400, "{} events", events.len());
}

#[test]
fn openai_gets_the_same_answer_in_its_own_words() {
    let call = Block::Tool { name: "Bash".into(), input: json!({"command": "ls"}) };
    let answer = Answer::blocks([Block::Text("Go.".into()), call]).usage(usage());
    let reply = ask_openai(&always(answer), "hi").json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    assert_eq!(choice["message"]["content"], "Go.");
    assert_eq!(
        choice["message"]["tool_calls"][0]["function"],
        json!({"name": "Bash", "arguments": "{\"command\":\"ls\"}"})
    );
    assert_eq!(reply["usage"]["prompt_tokens"], 19);
    assert_eq!(reply["usage"]["completion_tokens"], 7);
    assert_eq!(reply["usage"]["total_tokens"], 26);
}

#[test]
fn an_error_has_its_status_its_type_and_when_to_come_back() {
    let server = always(Answer::http(429).retry_after(17));
    let reply = ask_for_a_stream(&server, "hi");
    assert_eq!((reply.status, reply.retry_after.as_deref()), (429, Some("17")));
    assert_eq!(
        reply.json(),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "scripted 429"}})
    );
    let reply = ask_openai(&server, "hi");
    assert_eq!((reply.status, reply.retry_after.as_deref()), (429, Some("17")));
    assert_eq!(reply.json()["error"]["type"], "rate_limit_error");
}

#[test]
fn a_cut_stream_ends_inside_the_text_and_is_an_error_of_the_connection() {
    let server = always(Answer::text("Hello.").cut());
    let error = ask_for_a_stream(&server, "hi").text.unwrap_err();
    assert!(!error.is_empty());
    let sent = raw(&server, "/v1/messages", &{
        let mut body = question("hi");
        body["stream"] = true.into();
        body
    });
    assert!(sent.contains("\"text\":\"Hel\"") && !sent.contains("lo."), "{sent}");
    assert!(!sent.ends_with("0\r\n\r\n"), "{sent}");
}

#[test]
fn a_truncated_body_is_shorter_than_its_content_length() {
    assert!(ask(&always(Answer::text("Hello.").cut()), "hi").text.is_err());
    assert!(ask_openai(&always(Answer::text("Hello.").cut()), "hi").text.is_err());
}

#[test]
fn a_short_answer_is_good_http_and_half_a_message() {
    let server = always(Answer::text("Hello.").short());
    let events = ask_for_a_stream(&server, "hi").events();
    assert_eq!(events.last().unwrap()["delta"]["text"], "Hel");
    let half = ask(&server, "hi").text.unwrap();
    assert!(serde_json::from_str::<Value>(&half).unwrap_err().is_eof(), "{half}");
}

#[test]
fn a_stream_may_fail_half_way_with_an_event() {
    let server = always(Answer::text("Hello.").fail("overloaded_error", "Overloaded"));
    let events = ask_for_a_stream(&server, "hi").events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "error");
    assert_eq!(last["error"]["type"], "overloaded_error");
    assert!(events.iter().any(|event| event["type"] == "content_block_delta"));
    assert_eq!(ask(&server, "hi").status, 529);
}

#[test]
fn a_malformed_answer_has_status_200_and_is_not_json() {
    let server = always(Answer::malformed());
    for reply in [ask(&server, "hi"), ask_for_a_stream(&server, "hi"), ask_openai(&server, "hi")] {
        let text = reply.text.unwrap();
        let data =
            text.lines().rfind(|line| !line.is_empty()).unwrap().trim_start_matches("data: ");
        assert_eq!(reply.status, 200);
        assert!(serde_json::from_str::<Value>(data).is_err(), "{data}");
    }
}

#[test]
fn dropping_the_server_ends_what_hangs() {
    for answer in [Answer::hang(), Answer::text("Hello.").stall()] {
        let server = always(answer);
        let mut connection = send(&server, "/v1/messages", &question("hi"));
        server.wait_for_requests(1);
        drop(server);
        let mut rest = String::new();
        connection.read_to_string(&mut rest).unwrap();
        assert!(!rest.contains("usage"), "{rest}");
    }
}

#[test]
fn an_answer_waits_for_its_gate() {
    let gate = Gate::new();
    let server = always(Answer::text("Hello.").held_by(&gate));
    let mut connection = send(&server, "/v1/messages", &question("hi"));
    server.wait_for_requests(1);
    connection.set_nonblocking(true).unwrap();
    connection.read_exact(&mut [0]).expect_err("nothing comes through a closed gate");
    connection.set_nonblocking(false).unwrap();
    gate.open();
    let mut rest = String::new();
    connection.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("Hello."), "{rest}");
}

#[test]
fn requests_the_real_service_refuses_are_refused_and_use_up_no_step() {
    let server = Server::start(Script::new().then(Answer::text("first"))).unwrap();
    let refused = |headers: &[(&str, &str)], path: &str, body: &Value| {
        let reply = post(&server, path, headers, body);
        let body = reply.json();
        assert_eq!(body["type"], "error");
        (reply.status, body["error"]["type"].as_str().unwrap().to_owned())
    };
    let mut without_limit = question("hi");
    without_limit.as_object_mut().unwrap().remove("max_tokens");
    let no_messages = json!({"model": "m", "max_tokens": 1, "messages": []});
    assert_eq!(refused(&[], "/v1/messages", &question("hi")), (401, "authentication_error".into()));
    let invalid = (400, "invalid_request_error".to_owned());
    assert_eq!(refused(&KEYS[..1], "/v1/messages", &question("hi")), invalid);
    assert_eq!(refused(KEYS, "/v1/messages", &without_limit), invalid);
    assert_eq!(refused(KEYS, "/v1/messages", &no_messages), invalid);
    assert_eq!(refused(KEYS, "/v1/nothing", &question("hi")), (404, "not_found_error".into()));
    assert_eq!(ask(&server, "hi").json()["content"][0]["text"], "first");
}

#[test]
fn rules_come_before_steps_and_an_exhausted_script_is_an_error() {
    let server = Server::start(
        Script::new()
            .when(When::new().model("haiku").text("summary"), Answer::text("rule"))
            .when(When::new().tool_result(true), Answer::text("thanks"))
            .then(Answer::text("one"))
            .then(Answer::text("two")),
    )
    .unwrap();
    let reply_to = |text: &str| ask(&server, text).json()["content"][0]["text"].clone();
    assert_eq!(reply_to("hi"), "one");
    assert_eq!(reply_to("the summary, please"), "rule");
    assert_eq!(reply_to("hi"), "two");
    let mut with_result = question("");
    with_result["messages"][0]["content"] =
        json!([{"type": "tool_result", "tool_use_id": "t", "content": "out"}]);
    let thanks = post(&server, "/v1/messages", KEYS, &with_result).json();
    assert_eq!(thanks["content"][0]["text"], "thanks");
    let reply = ask(&server, "hi");
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["message"], "the script has no answer for request 4");
}

#[test]
fn a_script_in_json_equals_one_in_rust() {
    let script = Script::from_json(
        r#"{"rules": [{"when": {"text": "bad day"}, "answer": {"error": {"status": 529, "retry_after": 2}}}],
            "steps": [{"text": "Go.", "tools": [{"name": "Bash", "input": {"command": "ls"}}]},
                      {"text": "Hel", "stop_reason": "max_tokens", "usage": {"output": 9}}],
            "otherwise": {"malformed": true}}"#,
    );
    let server = Server::start(script.unwrap()).unwrap();
    let first = ask(&server, "hi").json();
    assert_eq!(first["content"][1]["name"], "Bash");
    assert_eq!(first["stop_reason"], "tool_use");
    assert_eq!(ask(&server, "a bad day").retry_after.as_deref(), Some("2"));
    let second = ask(&server, "hi").json();
    assert_eq!(
        (&second["stop_reason"], &second["usage"]["output_tokens"]),
        (&json!("max_tokens"), &json!(9))
    );
    assert!(serde_json::from_str::<Value>(&ask(&server, "hi").text.unwrap()).is_err());
}

#[test]
fn a_script_in_json_with_a_mistake_is_refused_by_name() {
    let message = |text: &str| Script::from_json(text).unwrap_err().to_string();
    assert!(message(r#"{"step": []}"#).contains("`step`"));
    assert!(message(r#"{"steps": [{"txt": "x"}]}"#).contains("`txt`"));
    assert!(message(r#"{"steps": [{"hang": true, "text": "x"}]}"#).contains("one of error, hang"));
    assert!(message(r#"{"steps": [{}]}"#).contains("text or tools"));
}

#[test]
fn every_request_is_recorded_whole_and_in_order() {
    let server = always(Answer::text("ok"));
    ask(&server, "one");
    ask_openai(&server, "two");
    post(&server, "/v1/messages?beta=true", &[("x-mark", "yes")], &question("three"));
    let requests = server.requests();
    let texts: Vec<_> = requests.iter().map(Request::last_user_text).collect();
    assert_eq!(texts, ["one", "two", "three"]);
    assert_eq!(requests[1].path, "/v1/chat/completions");
    assert_eq!(
        (requests[2].query.as_str(), requests[2].header("X-Mark")),
        ("beta=true", Some("yes"))
    );
    assert_eq!(requests[2].body, question("three"));
}

fn send(server: &Server, path: &str, body: &Value) -> TcpStream {
    let address = server.url().replace("http://", "");
    let mut connection = TcpStream::connect(address).unwrap();
    let body = body.to_string();
    write!(
        connection,
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: k\r\n\
         anthropic-version: 2023-06-01\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    connection
}

/// All bytes until the connection closes.
fn raw(server: &Server, path: &str, body: &Value) -> String {
    let mut all = String::new();
    send(server, path, body).read_to_string(&mut all).unwrap();
    all
}

#[test]
fn chat_completions_and_gemini_stream_the_same_answer() {
    let call = Block::Tool { name: "Bash".into(), input: json!({"command": "ls"}) };
    let server = always(Answer::blocks([Block::Text("Go.".into()), call]).usage(usage()));
    let chat = json!({"model": "local", "stream": true,
        "messages": [{"role": "user", "content": "hi"}]});
    let data = |text: &str| -> Vec<Value> {
        let lines = text.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let text = post(&server, "/v1/chat/completions", &[], &chat).text.unwrap();
    let chunks = data(&text);
    let delta = &chunks[0]["choices"][0]["delta"];
    assert_eq!((&delta["role"], &delta["content"]), (&json!("assistant"), &json!("Go.")));
    assert_eq!(delta["tool_calls"][0]["index"], 0);
    assert_eq!(delta["tool_calls"][0]["function"]["arguments"], "{\"command\":\"ls\"}");
    assert_eq!(chunks[1]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chunks[2]["usage"]["completion_tokens"], 7);
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");

    let body = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    let (key, path) = ([("x-goog-api-key", "k")], "/v1beta/models/m:generateContent");
    assert_eq!(post(&server, path, &[], &body).status, 403);
    assert_eq!(post(&server, path, &key, &json!({})).status, 400);
    let whole = post(&server, path, &key, &body).json();
    let parts = &whole["candidates"][0]["content"]["parts"];
    assert_eq!(parts[0]["text"], "Go.");
    assert_eq!(parts[1]["functionCall"], json!({"name": "Bash", "args": {"command": "ls"}}));
    assert_eq!(whole["usageMetadata"]["totalTokenCount"], 26);
    let path = path.replace("generate", "streamGenerate");
    let events = data(&post(&server, &path, &key, &body).text.unwrap());
    let part = |at: usize| &events[at]["candidates"][0]["content"]["parts"][0];
    assert_eq!((part(0), part(1)), (&parts[0], &parts[1]));
    assert_eq!(events[2]["candidates"][0]["finishReason"], "STOP");
}
