//! Anthropic's Messages API over HTTPS. Stateless.

use std::time::Instant;

use claude_mem_events::FailureClass;
use serde_json::{Value, json};

use super::{
    Provider, Refusal, Request, Response, Setup, Spent,
    http::{Post, base_url},
    prices, reported, reported_name,
};
use claude_mem_core::settings::table;

/// Version of the API, unchanged since 2023.
const VERSION: &str = "2023-06-01";

struct Anthropic {
    url: String,
    key: String,
}

pub(super) fn open(setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    let key = setup.settings.get(&table::ANTHROPIC_API_KEY);
    if key.is_empty() {
        let name = table::ANTHROPIC_API_KEY.name;
        return Err(Refusal {
            class: FailureClass::Auth,
            ..Refusal::of_settings(format!("the anthropic provider has no key: set {name}"))
        });
    }
    let url = format!("{}/v1/messages", base_url(setup, &table::ANTHROPIC_BASE_URL)?);
    Ok(Box::new(Anthropic { url, key }))
}

impl Provider for Anthropic {
    fn send(&self, request: &Request) -> Result<Response, Refusal> {
        let began = Instant::now();
        let headers = [("x-api-key", self.key.as_str()), ("anthropic-version", VERSION)];
        let post = Post {
            url: &self.url,
            headers: &headers,
            body: &body(request),
            time_max: request.limits.time_max,
            cancel: &request.cancel,
        };
        let response = post.send()?;
        let model = reported_name(&response["model"], &request.model);
        let spent = spent(&response["usage"], &model);
        let text = text(&response["content"]);
        let reason = response["stop_reason"].as_str().unwrap_or_default();
        if text.trim().is_empty() || reason == "refusal" {
            let why = format!("{model} sent no text (stop reason `{reason}`)");
            return Err(Refusal::new(FailureClass::Unreadable, why)
                .with_cost(spent)
                .with_reply(text));
        }
        let (is_cut, duration) = (reason == "max_tokens", began.elapsed());
        Ok(Response { text, is_cut, memory_session_id: None, model, spent, duration })
    }
}

/// The constant part is marked for the cache; everything that varies follows it.
fn body(request: &Request) -> Value {
    let content: Vec<Value> = [&request.digest, &request.text, &request.closing]
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .map(|part| json!({"type": "text", "text": part}))
        .collect();
    json!({
        "model": request.model,
        "max_tokens": request.limits.tokens_out_max,
        "system": [{
            "type": "text",
            "text": request.system,
            "cache_control": {"type": "ephemeral"},
        }],
        "messages": [{"role": "user", "content": content}],
    })
}

fn text(content: &Value) -> String {
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}

fn spent(usage: &Value, model: &str) -> Spent {
    let count = |name: &str| reported(&usage[name]);
    let tokens_cached = count("cache_read_input_tokens");
    let stored = count("cache_creation_input_tokens");
    let spent = Spent {
        tokens_in: count("input_tokens") + tokens_cached + stored,
        tokens_cached,
        tokens_out: count("output_tokens"),
        cost_micros: None,
    };
    Spent { cost_micros: prices::cost_micros(model, &spent, stored), ..spent }
}
