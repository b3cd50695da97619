//! The Anthropic Messages API: validation of requests, and the form of responses.

use serde_json::{Value, json};

use super::answer::{Answer, Block, Ending, Kind, Usage, tokens};
use super::request::Request;
use super::response::Response;

/// Rejects requests that the real service rejects, so that faulty clients are detected.
pub(super) fn refusal(request: &Request) -> Option<Response> {
    let key = request.header("x-api-key").or(request.header("authorization"));
    if key.is_none_or(str::is_empty) {
        return Some(error(401, "authentication_error", "x-api-key header is required"));
    }
    let missing = if request.header("anthropic-version").is_none() {
        "anthropic-version: header is required"
    } else if request.body["model"].as_str().is_none_or(str::is_empty) {
        "model: Field required"
    } else if request.body["messages"].as_array().is_none_or(Vec::is_empty) {
        "messages: at least one message is required"
    } else if !request.path.ends_with("count_tokens") && !request.body["max_tokens"].is_u64() {
        "max_tokens: Field required"
    } else {
        return None;
    };
    Some(error(400, "invalid_request_error", missing))
}

pub(super) fn count_tokens(request: &Request) -> Response {
    Response::json(200, &json!({"input_tokens": tokens(request.body.to_string().len())}))
}

pub(super) fn error(status: u16, kind: &str, message: &str) -> Response {
    Response::json(status, &error_body(kind, message))
}

/// The response as HTTP; `None` if nothing is ever sent.
pub(super) fn respond(request: &Request, answer: &Answer) -> Option<Response> {
    let mut response = match &answer.kind {
        Kind::Hang => return None,
        Kind::Error { status, kind, message, .. } => error(*status, kind, message),
        Kind::Raw { status, content_type, body } => {
            Response::whole(*status, content_type, body.clone())
        }
        Kind::Malformed if request.wants_stream() => {
            Response::events(vec!["event: message_start\ndata: {\"type\":\"mess\n\n".to_owned()])
        }
        Kind::Malformed => {
            Response::whole(200, "application/json", "{\"type\":\"message\",\"content\":[".into())
        }
        Kind::Message(blocks) => message(request, answer, blocks),
    };
    response.headers.push(("request-id", format!("req_scripted_{:06}", request.number)));
    Some(response)
}

fn message(request: &Request, answer: &Answer, blocks: &[Block]) -> Response {
    let writer = AnthropicMessage {
        request,
        blocks,
        usage: answer.cost(blocks, &request.body),
        reason: answer.reason(blocks),
    };
    match (&answer.ending, request.wants_stream()) {
        (Ending::Error { kind, message }, false) => error(529, kind, message),
        (_, false) => Response::json(200, &writer.message()),
        (Ending::Error { kind, message }, true) => {
            let mut events = writer.events();
            events.truncate(events.len() / 2);
            events.push(event(&error_body(kind, message)));
            Response::events(events)
        }
        (_, true) => Response::events(writer.events()),
    }
}

/// A message together with the request it answers.
struct AnthropicMessage<'a> {
    request: &'a Request,
    blocks: &'a [Block],
    usage: Usage,
    reason: String,
}

impl AnthropicMessage<'_> {
    fn message(&self) -> Value {
        let content: Vec<_> =
            self.blocks.iter().enumerate().map(|(i, b)| self.block(i, b)).collect();
        let mut message = self.opening();
        message["content"] = content.into();
        message["stop_reason"] = self.reason.as_str().into();
        message["usage"]["output_tokens"] = self.usage.output.into();
        message
    }

    fn events(&self) -> Vec<String> {
        let mut events = vec![event(&json!({"type": "message_start", "message": self.opening()}))];
        for (index, block) in self.blocks.iter().enumerate() {
            events.extend(self.block_events(index, block));
        }
        events.push(event(&json!({
            "type": "message_delta",
            "delta": {"stop_reason": self.reason, "stop_sequence": null},
            "usage": usage_body(self.usage),
        })));
        events.push(event(&json!({"type": "message_stop"})));
        events
    }

    /// The message without content, as in `message_start`.
    fn opening(&self) -> Value {
        let mut usage = usage_body(self.usage);
        usage["output_tokens"] = 1.into();
        json!({
            "id": format!("msg_scripted_{:06}", self.request.number),
            "type": "message",
            "role": "assistant",
            "model": self.request.model(),
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            "usage": usage,
        })
    }

    fn block(&self, index: usize, block: &Block) -> Value {
        match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Tool { name, input } => {
                json!({"type": "tool_use", "id": self.call(index), "name": name, "input": input})
            }
        }
    }

    fn call(&self, index: usize) -> String {
        format!("toolu_scripted_{:06}_{index}", self.request.number)
    }

    fn block_events(&self, index: usize, block: &Block) -> Vec<String> {
        let mut opening = self.block(index, block);
        let (field, deltas) = match block {
            Block::Text(text) => {
                opening["text"] = "".into();
                (("text_delta", "text"), pieces(text))
            }
            Block::Tool { input, .. } => {
                opening["input"] = json!({});
                (("input_json_delta", "partial_json"), pieces(&input.to_string()))
            }
        };
        let mut events = vec![event(
            &json!({"type": "content_block_start", "index": index, "content_block": opening}),
        )];
        if index == 0 {
            events.push(event(&json!({"type": "ping"})));
        }
        events.extend(deltas.into_iter().map(|piece| {
            let delta = json!({"type": field.0, field.1: piece});
            event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
        }));
        events.push(event(&json!({"type": "content_block_stop", "index": index})));
        events
    }
}

/// Splits a text into at least two pieces, so that a stream can break inside it, and into some
/// hundred at most, so that a long text does not take long.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = (characters.len() / 100).max(24).min(characters.len().div_ceil(2)).max(1);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}

fn error_body(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn usage_body(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cache_creation_input_tokens": usage.cache_creation,
        "cache_read_input_tokens": usage.cache_read,
    })
}
