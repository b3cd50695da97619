//! Any endpoint with OpenAI's chat completions API: `OpenRouter`, Ollama, vLLM, Gemini, OpenAI.
//! Stateless.

use std::time::Instant;

use claude_mem_events::FailureClass;
use serde_json::{Value, json};

use super::{
    Provider, Refusal, Request, Response, Setup, Spent,
    http::{Post, base_url},
    micros, prices, reported, reported_name,
};
use claude_mem_core::settings::table;

struct OpenAi {
    url: String,
    key: String,
}

pub(super) fn open(setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    let url = format!("{}/chat/completions", base_url(setup, &table::OPENAI_BASE_URL)?);
    let key = setup.settings.get(&table::OPENAI_API_KEY);
    Ok(Box::new(OpenAi { url, key }))
}

impl Provider for OpenAi {
    fn send(&self, request: &Request) -> Result<Response, Refusal> {
        let began = Instant::now();
        if request.model.is_empty() {
            let name = table::OPENAI_MODEL.name;
            return Err(Refusal::of_settings(format!("no model configured: set {name}")));
        }
        let authorization = format!("Bearer {}", self.key);
        let headers = [("authorization", authorization.as_str())];
        let post = Post {
            url: &self.url,
            // Local servers have no key, and some reject an empty one.
            headers: if self.key.is_empty() { &[] } else { &headers },
            body: &self.body(request),
            time_max: request.limits.time_max,
            cancel: &request.cancel,
        };
        let response = post.send()?;
        let model = reported_name(&response["model"], &request.model);
        let spent = spent(&response["usage"], &model);
        let choice = &response["choices"][0];
        let text = text(&choice["message"]["content"]);
        let reason = choice["finish_reason"].as_str().unwrap_or_default();
        if text.trim().is_empty() || reason == "content_filter" {
            let why = format!("{model} sent no text (finish reason `{reason}`)");
            return Err(Refusal::new(FailureClass::Unreadable, why)
                .with_cost(spent)
                .with_reply(text));
        }
        let (is_cut, duration) = (reason == "length", began.elapsed());
        Ok(Response { text, is_cut, memory_session_id: None, model, spent, duration })
    }
}

impl OpenAi {
    /// Newer OpenAI models reject `max_tokens`; other endpoints do not accept the new name.
    fn body(&self, request: &Request) -> Value {
        let is_own = self.url.starts_with("https://api.openai.com/");
        let limit = if is_own { "max_completion_tokens" } else { "max_tokens" };
        let parts = [&request.digest, &request.text, &request.closing];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
        json!({
            "model": request.model,
            limit: request.limits.tokens_out_max,
            "stream": false,
            "messages": [
                {"role": "system", "content": request.system},
                {"role": "user", "content": parts.join("\n\n")},
            ],
        })
    }
}

/// Most endpoints send a string, some send parts.
fn text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// Routers report the cost in dollars; for others the price list is used.
fn spent(usage: &Value, model: &str) -> Spent {
    let spent = Spent {
        tokens_in: reported(&usage["prompt_tokens"]),
        tokens_cached: reported(&usage["prompt_tokens_details"]["cached_tokens"]),
        tokens_out: reported(&usage["completion_tokens"]),
        cost_micros: None,
    };
    let reported_cost = usage["cost"].as_f64().filter(|cost| *cost >= 0.0).map(micros);
    Spent { cost_micros: reported_cost.or_else(|| prices::cost_micros(model, &spent, 0)), ..spent }
}
