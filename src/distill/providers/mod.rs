//! Providers respond to requests. This module defines requests and responses.
//!
//! A provider only transports text: one request in, one response or refusal out. [`policy`] and the
//! caller decide when to send, whether to retry and how to parse a response.

mod anthropic;
pub mod auto;
mod cancel;
mod claude;
mod http;
mod openai;
pub mod policy;
mod prices;
pub mod rules;
#[cfg(test)]
mod wire_tests;

use std::time::Duration;

pub use cancel::Cancel;
pub use claude::client_version;
use claude_mem_events::FailureClass;
use claude_mem_projections::text::{self, truncate};

use claude_mem_core::{
    environment::Environment,
    paths::Paths,
    settings::{ProviderName, Settings, table},
};

/// Maximum size of a response. The response to a large request has about 30 KB; a longer one is a
/// mistake or an attack, and must not fill the memory or the log.
pub const REPLY_BYTES_MAX: usize = 2 << 20;

/// Longest accepted `retry-after`.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// Highest accepted count of tokens, or of millionths of a dollar, of one request.
const COUNT_MAX: u64 = 1 << 40;

/// Sends requests, from many threads at once. A provider with limited concurrency blocks them.
pub trait Provider: Send + Sync {
    /// Sends one request and waits for the response, within the request's time limit. Never
    /// retries.
    fn send(&self, request: &Request) -> Result<Response, Refusal>;
}

#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The session of the events. Different sessions never share an agent session.
    pub content_session: String,
    /// The constant part: the same bytes in every request of a session, so that it can be cached.
    pub system: String,
    /// Recap of the session, for an agent without its history; may be empty.
    pub digest: String,
    /// The data: untrusted, and never the last block that the agent reads.
    pub text: String,
    /// The constant last block.
    pub closing: String,
    /// The agent session to continue; `None` starts a new one.
    pub resume: Option<String>,
    pub model: String,
    pub limits: Limits,
    pub cancel: Cancel,
}

/// About four bytes per token of English and code.
const TOKEN_BYTES: u64 = 4;

/// Almost no text has shorter tokens.
const TOKEN_BYTES_MIN: u64 = 2;

/// Tokens of a typical response.
const ANSWER_TOKENS: u64 = 600;

impl Request {
    /// Estimated cost; no money if the price of the model is unknown.
    pub fn expected(&self) -> Spent {
        self.cost(TOKEN_BYTES, ANSWER_TOKENS)
    }

    /// The cost with the longest response: what to reserve under a cap.
    pub(crate) fn at_most(&self) -> Spent {
        self.cost(TOKEN_BYTES_MIN, u64::from(self.limits.tokens_out_max))
    }

    fn cost(&self, token_bytes: u64, tokens_out: u64) -> Spent {
        let parts = [&self.system, &self.digest, &self.text, &self.closing];
        let bytes: usize = parts.into_iter().map(String::len).sum();
        let tokens_in = (bytes as u64).div_ceil(token_bytes);
        let spent = Spent { tokens_in, tokens_out, ..Spent::default() };
        Spent { cost_micros: price(&self.model, &spent), ..spent }
    }
}

/// Limits of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub tokens_out_max: u32,
    /// Time until the end of the response, including the wait for a free agent.
    pub time_max: Duration,
}

impl Default for Limits {
    /// A response to a large batch has about 2 000 tokens and takes half a minute.
    fn default() -> Self {
        let seconds = table::REQUEST_TIMEOUT.default_value();
        Self { tokens_out_max: 8192, time_max: Duration::from_secs(seconds) }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// Never empty.
    pub text: String,
    /// Truncated by the token limit. The text was paid for and is worth parsing.
    pub is_cut: bool,
    /// The agent's own id of its conversation, if it keeps one.
    pub memory_session_id: Option<String>,
    /// As the provider names it.
    pub model: String,
    pub spent: Spent,
    pub duration: Duration,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Input tokens, including cached ones.
    pub tokens_in: u64,
    /// Input tokens from a cache.
    pub tokens_cached: u64,
    /// Output tokens.
    pub tokens_out: u64,
    /// Millionths of a dollar; `None` if neither the provider nor our price list has a price.
    pub cost_micros: Option<u64>,
}

impl Spent {
    /// Adds a cost. Unknown money counts as 0.
    pub fn add(&mut self, other: &Self) {
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_cached = self.tokens_cached.saturating_add(other.tokens_cached);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.cost_micros = match (self.cost_micros, other.cost_micros) {
            (None, None) => None,
            (own, other) => Some(own.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
    }

    /// Subtracts a cost.
    pub fn remove(&mut self, other: &Self) {
        self.tokens_in = self.tokens_in.saturating_sub(other.tokens_in);
        self.tokens_cached = self.tokens_cached.saturating_sub(other.tokens_cached);
        self.tokens_out = self.tokens_out.saturating_sub(other.tokens_out);
        let cost = other.cost_micros.unwrap_or(0);
        self.cost_micros = self.cost_micros.map(|own| own.saturating_sub(cost));
    }

    /// Input and output tokens.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

/// A reported token count, 0 if absent.
fn reported(count: &serde_json::Value) -> u64 {
    count.as_u64().unwrap_or(0).min(COUNT_MAX)
}

/// Reported dollars as millionths.
fn micros(dollars: f64) -> u64 {
    // The cast saturates for negative, huge and NaN values.
    ((dollars * 1_000_000.0).ceil() as u64).min(COUNT_MAX)
}

/// A reported name or id, truncated.
fn reported_name(reported: &serde_json::Value, otherwise: &str) -> String {
    let name = reported.as_str().filter(|name| !name.is_empty()).unwrap_or(otherwise);
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// A failed request.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub class: FailureClass,
    /// Scope of the failure.
    pub concern: Concern,
    /// One line for the user.
    pub message: String,
    /// The delay that the provider asks for, if any.
    pub retry_after: Option<Duration>,
    pub spent: Spent,
    /// Text received instead of a response; may be empty.
    pub reply: String,
}

/// The scope of a failure: which requests fail until something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// This request; others may succeed.
    Request,
    /// Every request to this provider: a wrong key, path or model.
    Provider,
}

impl Refusal {
    /// A refusal without cost and without `retry_after`.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let concern = match class {
            FailureClass::Invalid | FailureClass::Unreadable => Concern::Request,
            _ => Concern::Provider,
        };
        let (spent, reply) = (Spent::default(), String::new());
        let message = one_line(&message.into());
        Self { class, concern, message, retry_after: None, spent, reply }
    }

    /// A setting is wrong: every request fails until it is corrected.
    pub fn of_settings(message: impl Into<String>) -> Self {
        Self { concern: Concern::Provider, ..Self::new(FailureClass::Invalid, message) }
    }

    /// The response is longer than [`REPLY_BYTES_MAX`]. Retried a limited number of times.
    fn too_large(from: &str) -> Self {
        let what = format!("{from} sent a response of more than {} MB", REPLY_BYTES_MAX >> 20);
        Self::new(FailureClass::Unreadable, what)
    }

    /// The time limit of this request expired. Retried a limited number of times.
    fn too_slow(message: impl Into<String>) -> Self {
        Self { concern: Concern::Request, ..Self::new(FailureClass::Transient, message) }
    }

    fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after: retry_after.map(|wanted| wanted.min(RETRY_AFTER_MAX)), ..self }
    }

    /// Adds the expected cost if a response came without its cost.
    #[must_use]
    pub(crate) fn with_expected_cost(self, request: &Request) -> Self {
        let is_unknown = self.class == FailureClass::Unreadable && self.spent == Spent::default();
        if is_unknown { self.with_cost(request.expected()) } else { self }
    }

    fn with_cost(self, spent: Spent) -> Self {
        Self { spent, ..self }
    }

    fn with_reply(self, reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..self }
    }
}

/// Everything a provider is opened with.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    pub settings: &'a Settings,
    pub paths: &'a Paths,
    /// Inherited by programs that we start.
    pub environment: &'a Environment,
}

/// A provider with its model as shown to the user. The built-in rules have no model, only a version.
pub fn label(provider: &str, model: &str) -> String {
    match provider {
        auto::RULES => "the built-in rules".into(),
        _ => format!("{provider} ({model})"),
    }
}

type Open = fn(&Setup<'_>) -> Result<Box<dyn Provider>, Refusal>;

/// Every provider that sends requests to a model.
pub const PROVIDERS: &[(ProviderName, Open)] = &[
    (ProviderName::Claude, claude::open),
    (ProviderName::Anthropic, anthropic::open),
    (ProviderName::OpenAi, openai::open),
];

/// Opens a provider, or returns one line about the wrong setting.
pub fn open(name: &str, setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    match PROVIDERS.iter().find(|(known, _)| known.name() == name) {
        Some((_, open)) => open(setup),
        None => Err(Refusal::of_settings(format!("unknown provider `{name}`"))),
    }
}

/// The configured model of a provider.
pub fn model(name: &str, settings: &Settings) -> String {
    let is_openai = name == ProviderName::OpenAi.name();
    settings.get(if is_openai { &table::OPENAI_MODEL } else { &table::MODEL })
}

/// List price of these tokens, in millionths of a dollar.
pub fn price(model: &str, spent: &Spent) -> Option<u64> {
    prices::cost_micros(model, spent, 0)
}

/// Longer messages do not help the user.
const MESSAGE_CHARS_MAX: usize = 300;

/// Longest stored name of a model or a session.
const NAME_CHARS_MAX: usize = 200;

/// External messages are shown in one line, without control characters.
fn one_line(text: &str) -> String {
    truncate(text::one_line(&text.replace(char::is_control, " ")), MESSAGE_CHARS_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates_with(variables: &[(&str, &str)]) -> Vec<&'static str> {
        let environment = Environment::fixed(variables);
        let paths = Paths { home: None, data: "/nowhere".into() };
        let settings = Settings::load(&paths, &environment);
        auto::candidates(&Setup { settings: &settings, paths: &paths, environment: &environment })
    }

    #[test]
    fn auto_lists_the_configured_providers_in_order() {
        // There is no client at this path, even if one is installed elsewhere.
        let no_client = ("CLAUDE_CODE_PATH", "/nowhere/claude");
        let anthropic = ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-1");
        let openai = ("CLAUDE_MEM_OPENAI_API_KEY", "sk-2");
        let model = ("CLAUDE_MEM_OPENAI_MODEL", "gpt-5-mini");
        let local = ("CLAUDE_MEM_OPENAI_BASE_URL", "http://localhost:11434/v1");
        assert_eq!(candidates_with(&[no_client]), ["extract"]);
        assert_eq!(candidates_with(&[no_client, openai]), ["extract"], "no model configured");
        assert_eq!(candidates_with(&[no_client, openai, model]), ["openai", "extract"]);
        assert_eq!(candidates_with(&[no_client, model]), ["extract"], "no key configured");
        let of_local = candidates_with(&[no_client, local, model]);
        assert_eq!(of_local, ["openai", "extract"], "local ones need no key");
        let all = candidates_with(&[no_client, openai, model, anthropic]);
        assert_eq!(all, ["anthropic", "openai", "extract"]);
    }

    #[test]
    fn any_message_becomes_one_line() {
        assert_eq!(one_line(" a\r\n\tb\u{1b}[31m  c\0"), "a b [31m c");
        let long = one_line(&"é".repeat(MESSAGE_CHARS_MAX + 1));
        assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn every_provider_but_auto_and_the_rules_can_be_opened() {
        let opened: Vec<_> = PROVIDERS.iter().map(|(name, _)| *name).collect();
        let others = [ProviderName::Auto, ProviderName::Extract];
        let listed = ProviderName::ALL.iter().copied().filter(|name| !others.contains(name));
        assert_eq!(opened, listed.collect::<Vec<_>>());
    }
}
