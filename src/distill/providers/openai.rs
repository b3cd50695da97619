//! Any endpoint that speaks `OpenAI`'s chat completions: `OpenRouter`, Ollama, vLLM, Gemini's, its own.
//! It keeps nothing between questions.

use std::time::Instant;

use claude_mem_events::FailureClass;
use serde_json::{Value, json};

use super::{
    Answer, Ask, Provider, Refusal, Setup, Spent,
    http::{Post, base_url},
    micros, name_of, prices, reported,
};
use claude_mem_core::settings::table;

/// An endpoint and, unless it is a local one, the key for it.
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
    fn ask(&self, question: &Ask) -> Result<Answer, Refusal> {
        let began = Instant::now();
        if question.model.is_empty() {
            let name = table::OPENAI_MODEL.name;
            return Err(Refusal::of_settings(format!("no model to ask: set {name}")));
        }
        let authorization = format!("Bearer {}", self.key);
        let headers = [("authorization", authorization.as_str())];
        let post = Post {
            url: &self.url,
            // Local servers have no key, and some refuse one that is empty.
            headers: if self.key.is_empty() { &[] } else { &headers },
            body: &self.request(question),
            time_max: question.limits.time_max,
            cancel: &question.cancel,
        };
        let response = post.send()?;
        let model = name_of(&response["model"], &question.model);
        let spent = spent(&response["usage"], &model);
        let choice = &response["choices"][0];
        let text = text(&choice["message"]["content"]);
        let reason = choice["finish_reason"].as_str().unwrap_or_default();
        if text.trim().is_empty() || reason == "content_filter" {
            let why = format!("{model} gave no answer (finish reason `{reason}`)");
            return Err(Refusal::new(FailureClass::Unreadable, why).costing(spent).saying(text));
        }
        let (is_cut, duration) = (reason == "length", began.elapsed());
        Ok(Answer { text, is_cut, memory_session_id: None, model, spent, duration })
    }
}

impl OpenAi {
    /// `OpenAI`'s own newer models refuse `max_tokens`; nobody else knows the new name.
    fn request(&self, question: &Ask) -> Value {
        let is_own = self.url.starts_with("https://api.openai.com/");
        let limit = if is_own { "max_completion_tokens" } else { "max_tokens" };
        let parts = [&question.digest, &question.text, &question.closing];
        let parts: Vec<&str> =
            parts.into_iter().map(String::as_str).filter(|part| !part.trim().is_empty()).collect();
        json!({
            "model": question.model,
            limit: question.limits.tokens_out_max,
            "stream": false,
            "messages": [
                {"role": "system", "content": question.system},
                {"role": "user", "content": parts.join("\n\n")},
            ],
        })
    }
}

/// A string with nearly all; parts with some.
fn text(content: &Value) -> String {
    if let Some(text) = content.as_str() {
        return text.to_owned();
    }
    let parts = content.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part["text"].as_str()).collect()
}

/// Routers say what a call cost, in dollars; for others there is the list of prices.
fn spent(usage: &Value, model: &str) -> Spent {
    let spent = Spent {
        tokens_in: reported(&usage["prompt_tokens"]),
        tokens_cached: reported(&usage["prompt_tokens_details"]["cached_tokens"]),
        tokens_out: reported(&usage["completion_tokens"]),
        cost_micros: None,
    };
    let told = usage["cost"].as_f64().filter(|cost| *cost >= 0.0).map(micros);
    Spent { cost_micros: told.or_else(|| prices::cost_micros(model, &spent, 0)), ..spent }
}
