//! Anthropic's Messages API over HTTPS. It keeps nothing between questions.

use std::time::Instant;

use claude_mem_events::FailureClass;
use serde_json::{Value, json};

use super::{
    Answer, Ask, Provider, Refusal, Setup, Spent,
    http::{Post, base_url},
    name_of, prices, reported,
};
use claude_mem_core::settings::table;

/// The version of the API, which has been the same since 2023.
const VERSION: &str = "2023-06-01";

/// An endpoint and the key for it.
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
    fn ask(&self, question: &Ask) -> Result<Answer, Refusal> {
        let began = Instant::now();
        let headers = [("x-api-key", self.key.as_str()), ("anthropic-version", VERSION)];
        let post = Post {
            url: &self.url,
            headers: &headers,
            body: &request(question),
            time_max: question.limits.time_max,
            cancel: &question.cancel,
        };
        let response = post.send()?;
        let model = name_of(&response["model"], &question.model);
        let spent = spent(&response["usage"], &model);
        let text = text(&response["content"]);
        let reason = response["stop_reason"].as_str().unwrap_or_default();
        if text.trim().is_empty() || reason == "refusal" {
            let why = format!("{model} gave no answer (stop reason `{reason}`)");
            return Err(Refusal::new(FailureClass::Unreadable, why).costing(spent).saying(text));
        }
        let (is_cut, duration) = (reason == "max_tokens", began.elapsed());
        Ok(Answer { text, is_cut, memory_session_id: None, model, spent, duration })
    }
}

/// The fixed part is marked for the cache; what differs from question to question comes after it.
fn request(question: &Ask) -> Value {
    let content: Vec<Value> = [&question.digest, &question.text, &question.closing]
        .into_iter()
        .filter(|part| !part.trim().is_empty())
        .map(|part| json!({"type": "text", "text": part}))
        .collect();
    json!({
        "model": question.model,
        "max_tokens": question.limits.tokens_out_max,
        "system": [{
            "type": "text",
            "text": question.system,
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
