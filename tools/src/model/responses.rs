//! The OpenAI Responses API, as Codex uses it: always streamed. A tool whose input is a string is
//! called as a custom tool, which takes text instead of arguments.

use serde_json::{Value, json};

use super::answer::{Answer, Block, Ending, Kind};
use super::openai::error;
use super::request::Request;
use super::response::Response;

pub(super) fn refusal(request: &Request) -> Option<Response> {
    let why = if request.body["model"].as_str().is_none_or(str::is_empty) {
        "you must provide a model parameter"
    } else if request.body["input"].as_array().is_none_or(Vec::is_empty) {
        "input must be an array with at least one item"
    } else if !request.wants_stream() {
        "this server only streams responses"
    } else {
        return None;
    };
    Some(error(400, "invalid_request_error", why))
}

/// The response as HTTP; `None` if nothing is ever sent.
pub(super) fn respond(request: &Request, answer: &Answer) -> Option<Response> {
    Some(match (&answer.kind, &answer.ending) {
        (Kind::Hang, _) => return None,
        (Kind::Error { status, kind, message, .. }, _) => error(*status, kind, message),
        (Kind::Raw { status, content_type, body }, _) => {
            Response::whole(*status, content_type, body.clone())
        }
        (Kind::Malformed, _) => Response::events(vec!["data: {\"type\":\n\n".into()]),
        (Kind::Message(_), Ending::Error { kind, message }) => error(503, kind, message),
        (Kind::Message(blocks), _) => Response::events(events(request, answer, blocks)),
    })
}

fn events(request: &Request, answer: &Answer, blocks: &[Block]) -> Vec<String> {
    let id = format!("resp_scripted_{:06}", request.number);
    let output: Vec<Value> =
        blocks.iter().enumerate().map(|(at, block)| item(request, at, block)).collect();
    let usage = answer.cost(blocks, &request.body);
    let input = usage.input + usage.cache_creation + usage.cache_read;
    let mut response = json!({"id": id, "object": "response", "created_at": 0,
        "model": request.model(), "status": "in_progress", "output": []});
    let mut events = vec![event(&json!({"type": "response.created", "response": response}))];
    for (at, item) in output.iter().enumerate() {
        for kind in ["response.output_item.added", "response.output_item.done"] {
            events.push(event(&json!({"type": kind, "output_index": at, "item": item})));
        }
    }
    response["status"] = "completed".into();
    response["output"] = output.into();
    response["usage"] = json!({"input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cache_read},
        "output_tokens": usage.output, "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": input + usage.output});
    events.push(event(&json!({"type": "response.completed", "response": response})));
    events
}

fn item(request: &Request, at: usize, block: &Block) -> Value {
    let number = format!("scripted_{:06}_{at}", request.number);
    let call = format!("call_{number}");
    match block {
        Block::Text(text) => json!({"type": "message", "id": format!("msg_{number}"),
            "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": text, "annotations": []}]}),
        Block::Tool { name, input: Value::String(text) } => json!({"type": "custom_tool_call",
            "id": format!("ctc_{number}"), "call_id": call, "name": name, "input": text,
            "status": "completed"}),
        Block::Tool { name, input } => {
            json!({"type": "function_call", "id": format!("fc_{number}"),
            "call_id": call, "name": name, "arguments": input.to_string(), "status": "completed"})
        }
    }
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
