//! The Gemini API: `models/NAME:generateContent`, and `streamGenerateContent` as events.

use serde_json::{Value, json};

use super::answer::{Answer, Block, Ending, Kind};
use super::request::Request;
use super::response::Response;

const WHOLE: &str = ":generateContent";
const STREAM: &str = ":streamGenerateContent";

pub(super) fn is_for(path: &str) -> bool {
    path.ends_with(WHOLE) || path.ends_with(STREAM)
}

pub(super) fn refusal(request: &Request) -> Option<Response> {
    if request.header("x-goog-api-key").is_none_or(str::is_empty) {
        return Some(error(403, "Method doesn't allow unregistered callers"));
    }
    let has_contents = request.body["contents"].as_array().is_some_and(|it| !it.is_empty());
    (!has_contents).then(|| error(400, "contents is not specified"))
}

fn error(status: u16, message: &str) -> Response {
    let error = json!({"code": status, "message": message, "status": "SCRIPTED"});
    Response::json(status, &json!({"error": error}))
}

/// The response as HTTP; `None` if nothing is ever sent.
pub(super) fn respond(request: &Request, answer: &Answer) -> Option<Response> {
    Some(match (&answer.kind, &answer.ending) {
        (Kind::Hang, _) => return None,
        (Kind::Error { status, message, .. }, _) => error(*status, message),
        (Kind::Raw { status, content_type, body }, _) => {
            Response::whole(*status, content_type, body.clone())
        }
        (Kind::Malformed, _) => Response::whole(200, "application/json", "{\"candidates\":".into()),
        (Kind::Message(_), Ending::Error { message, .. }) => error(503, message),
        (Kind::Message(blocks), _) => gemini_message(request, answer, blocks),
    })
}

fn gemini_message(request: &Request, answer: &Answer, blocks: &[Block]) -> Response {
    let usage = answer.cost(blocks, &request.body);
    let input = usage.input + usage.cache_creation + usage.cache_read;
    let usage = json!({"promptTokenCount": input, "candidatesTokenCount": usage.output,
        "totalTokenCount": input + usage.output});
    let content = |parts: Vec<Value>, finish_reason: Option<&str>| {
        json!({"candidates": [{"index": 0, "content": {"role": "model", "parts": parts},
            "finishReason": finish_reason}], "usageMetadata": usage})
    };
    let reason = match answer.reason(blocks).as_str() {
        "max_tokens" => "MAX_TOKENS",
        _ => "STOP",
    };
    let parts: Vec<Value> = blocks.iter().map(part).collect();
    if request.path.ends_with(WHOLE) {
        return Response::json(200, &content(parts, Some(reason)));
    }
    let mut events: Vec<Value> = parts.into_iter().map(|part| content(vec![part], None)).collect();
    events.push(content(vec![json!({"text": ""})], Some(reason)));
    Response::events(events.iter().map(|event| format!("data: {event}\n\n")).collect())
}

fn part(block: &Block) -> Value {
    match block {
        Block::Text(text) => json!({"text": text}),
        Block::Tool { name, input } => json!({"functionCall": {"name": name, "args": input}}),
    }
}
