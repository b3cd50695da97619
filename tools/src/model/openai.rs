//! The OpenAI chat completions API, as served by many: validation of requests, and the form of
//! responses. A key is not required, since local servers have none.

use serde_json::{Value, json};

use super::answer::{Answer, Block, Ending, Kind};
use super::request::Request;
use super::response::Response;

pub(super) fn refusal(request: &Request) -> Option<Response> {
    let why = if request.body["model"].as_str().is_none_or(str::is_empty) {
        "you must provide a model parameter"
    } else if request.body["messages"].as_array().is_none_or(Vec::is_empty) {
        "messages must be an array with at least one message"
    } else {
        return None;
    };
    Some(error(400, "invalid_request_error", why))
}

/// Scripts provide the vectors: [`Answer::raw`](super::Answer::raw).
pub(super) fn refusal_to_embed(request: &Request) -> Option<Response> {
    let why = if request.body["model"].as_str().is_none_or(str::is_empty) {
        "you must provide a model parameter"
    } else if request.body["input"].as_array().is_none_or(Vec::is_empty) {
        "input must be an array with at least one text"
    } else {
        return None;
    };
    Some(error(400, "invalid_request_error", why))
}

pub(super) fn error(status: u16, kind: &str, message: &str) -> Response {
    let error = json!({"message": message, "type": kind, "param": null, "code": null});
    Response::json(status, &json!({"error": error}))
}

/// The response as HTTP; `None` if nothing is ever sent.
pub(super) fn respond(request: &Request, answer: &Answer) -> Option<Response> {
    Some(match (&answer.kind, &answer.ending) {
        (Kind::Hang, _) => return None,
        (Kind::Error { status, kind, message, .. }, _) => error(*status, kind, message),
        (Kind::Raw { status, content_type, body }, _) => {
            Response::whole(*status, content_type, body.clone())
        }
        (Kind::Malformed, _) => {
            Response::whole(200, "application/json", "{\"object\":\"chat.completion\",".into())
        }
        (Kind::Message(_), Ending::Error { kind, message }) => error(503, kind, message),
        (Kind::Message(blocks), _) => {
            let whole = openai_completion(request, answer, blocks);
            if request.wants_stream() {
                Response::events(chunks(whole))
            } else {
                Response::json(200, &whole)
            }
        }
    })
}

/// The same completion in pieces: the message, the finish reason, the usage.
fn chunks(mut whole: Value) -> Vec<String> {
    let mut choice = whole["choices"][0].take();
    let mut delta = choice["message"].take();
    for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
        call["index"] = index.into();
    }
    let usage = whole["usage"].take();
    let event = |choices: Value, usage: &Value| {
        let (id, model) = (&whole["id"], &whole["model"]);
        let chunk = json!({"id": id, "object": "chat.completion.chunk", "created": 0,
            "model": model, "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let none = Value::Null;
    vec![
        event(json!([{"index": 0, "delta": delta, "finish_reason": null}]), &none),
        event(json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]), &none),
        event(json!([]), &usage),
        "data: [DONE]\n\n".to_owned(),
    ]
}

fn openai_completion(request: &Request, answer: &Answer, blocks: &[Block]) -> Value {
    let usage = answer.cost(blocks, &request.body);
    let prompt_tokens = usage.input + usage.cache_creation + usage.cache_read;
    json!({
        "id": format!("chatcmpl-scripted-{:06}", request.number),
        "object": "chat.completion",
        "created": 0,
        "model": request.model(),
        "choices": [{
            "index": 0,
            "message": message(request, blocks),
            "finish_reason": finish_reason(&answer.reason(blocks)),
        }],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": usage.output,
            "total_tokens": prompt_tokens + usage.output,
            "prompt_tokens_details": {"cached_tokens": usage.cache_read},
        },
    })
}

fn message(request: &Request, blocks: &[Block]) -> Value {
    let mut text: Option<String> = None;
    let mut calls = Vec::new();
    for (index, block) in blocks.iter().enumerate() {
        match block {
            Block::Text(more) => text.get_or_insert_default().push_str(more),
            Block::Tool { name, input } => calls.push(json!({
                "id": format!("call_scripted_{:06}_{index}", request.number),
                "type": "function",
                "function": {"name": name, "arguments": input.to_string()},
            })),
        }
    }
    let mut message = json!({"role": "assistant", "content": text});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn finish_reason(reason: &str) -> &str {
    match reason {
        "end_turn" | "stop_sequence" => "stop",
        "max_tokens" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        other => other,
    }
}
