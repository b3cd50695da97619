//! The agent: what it is asked, and who answers.
//!
//! A provider only carries text: one question in, one answer or one refusal out. When to ask, whether to
//! ask again and what an answer means are decided elsewhere, by [`policy`] and by whoever asks.

mod anthropic;
pub mod auto;
mod cancel;
mod claude;
mod http;
pub mod identity;
mod openai;
pub mod policy;
mod prices;
pub mod rules;
#[cfg(test)]
mod wire_tests;

use std::time::Duration;

pub use cancel::Cancel;
use claude_mem_events::FailureClass;

use claude_mem_core::{
    environment::Environment,
    paths::Paths,
    settings::{ProviderName, Settings, table},
};

/// The longest response that is read. One to a large request has some 30 KB; a longer one than this is a
/// mistake or an attack, and neither memory nor the log has to hold it.
pub const REPLY_BYTES_MAX: usize = 2 << 20;

/// No provider is left alone longer than this, whatever it asks for.
pub const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3600);

/// The highest count of tokens, or of millionths of a dollar, that is believed of one request.
const COUNT_MAX: u64 = 1 << 40;

/// Someone who can be asked. Any number of threads may ask at once; a provider that can do only so much
/// at a time makes the others wait.
pub trait Provider: Send + Sync {
    /// Puts one question and waits for the answer, for no longer than the question's limit. Nothing is
    /// tried twice in here.
    fn ask(&self, question: &Ask) -> Result<Answer, Refusal>;
}

/// One question.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The session the events come from. Two of them never share an agent session.
    pub content_session: String,
    /// The fixed part: the same bytes in every question of a session, so that it can be cached.
    pub system: String,
    /// The session so far in few words, for an agent that does not remember it; may be empty.
    pub digest: String,
    /// The data: untrusted, and never the last thing the agent reads.
    pub text: String,
    /// The constant last words.
    pub closing: String,
    /// The agent session to go on with, as [`identity::resumable`] allows; `None` begins a new one.
    pub resume: Option<String>,
    /// The model to ask.
    pub model: String,
    /// How much it may take.
    pub limits: Limits,
    /// Ends it early.
    pub cancel: Cancel,
}

/// Of English and code a token is about four bytes.
const TOKEN_BYTES: u64 = 4;

/// Tokens of a usual response.
const ANSWER_TOKENS: u64 = 600;

impl Ask {
    /// About what it will take; no money if the price of the model is not known.
    pub fn expected(&self) -> Spent {
        let parts = [&self.system, &self.digest, &self.text, &self.closing];
        let bytes: usize = parts.into_iter().map(String::len).sum();
        let tokens_in = (bytes as u64).div_ceil(TOKEN_BYTES);
        let spent = Spent { tokens_in, tokens_out: ANSWER_TOKENS, ..Spent::default() };
        Spent { cost_micros: price(&self.model, &spent), ..spent }
    }
}

/// How much a question may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tokens the answer may have.
    pub tokens_out_max: u32,
    /// Time from asking to the end of the answer, waiting for a free agent included.
    pub time_max: Duration,
}

impl Default for Limits {
    /// An answer to a large batch has about 2 000 tokens and takes half a minute.
    fn default() -> Self {
        let seconds = table::REQUEST_TIMEOUT.default_value();
        Self { tokens_out_max: 8192, time_max: Duration::from_secs(seconds) }
    }
}

/// What the agent said.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// As it came, never empty.
    pub text: String,
    /// Whether the limit of tokens cut it off. What is there was paid for, and is worth reading.
    pub is_cut: bool,
    /// The agent's own id of its conversation, if it keeps one.
    pub memory_session_id: Option<String>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// What it cost.
    pub spent: Spent,
    /// How long it took.
    pub duration: Duration,
}

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens read, cached ones included.
    pub tokens_in: u64,
    /// Of those, how many came from a cache.
    pub tokens_cached: u64,
    /// Tokens written.
    pub tokens_out: u64,
    /// Millionths of a dollar; `None` if neither the provider nor our list of prices knows.
    pub cost_micros: Option<u64>,
}

impl Spent {
    /// Adds what something else cost. Money that is not known counts as none.
    pub fn add(&mut self, other: &Self) {
        self.tokens_in = self.tokens_in.saturating_add(other.tokens_in);
        self.tokens_cached = self.tokens_cached.saturating_add(other.tokens_cached);
        self.tokens_out = self.tokens_out.saturating_add(other.tokens_out);
        self.cost_micros = match (self.cost_micros, other.cost_micros) {
            (None, None) => None,
            (own, other) => Some(own.unwrap_or(0).saturating_add(other.unwrap_or(0))),
        };
    }

    /// Takes back what was added.
    pub fn remove(&mut self, other: &Self) {
        self.tokens_in = self.tokens_in.saturating_sub(other.tokens_in);
        self.tokens_cached = self.tokens_cached.saturating_sub(other.tokens_cached);
        self.tokens_out = self.tokens_out.saturating_sub(other.tokens_out);
        let cost = other.cost_micros.unwrap_or(0);
        self.cost_micros = self.cost_micros.map(|own| own.saturating_sub(cost));
    }

    /// Tokens read and written.
    pub fn tokens(&self) -> u64 {
        self.tokens_in.saturating_add(self.tokens_out)
    }
}

/// A count of tokens that a provider reports, or none.
fn reported(count: &serde_json::Value) -> u64 {
    count.as_u64().unwrap_or(0).min(COUNT_MAX)
}

/// Dollars that a provider reports, as millionths.
fn micros(dollars: f64) -> u64 {
    // A cast from a number that is negative, too large or none saturates.
    ((dollars * 1_000_000.0).ceil() as u64).min(COUNT_MAX)
}

/// A name or id that a provider reports, as far as it is kept.
fn name_of(reported: &serde_json::Value, otherwise: &str) -> String {
    let name = reported.as_str().filter(|name| !name.is_empty()).unwrap_or(otherwise);
    name.chars().take(NAME_CHARS_MAX).collect()
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// What kind of failure.
    pub class: FailureClass,
    /// What will fail again.
    pub concern: Concern,
    /// One line for people.
    pub message: String,
    /// How long the provider wants to be left alone, if it said.
    pub retry_after: Option<Duration>,
    /// What the failure cost.
    pub spent: Spent,
    /// What came instead of an answer; empty if nothing did.
    pub reply: String,
}

/// What will fail again if nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concern {
    /// This question; others may do better.
    Question,
    /// Every question to this provider: a wrong key, path or model.
    Provider,
}

impl Refusal {
    /// A refusal that cost nothing and says nothing about when to come back.
    pub fn new(class: FailureClass, message: impl Into<String>) -> Self {
        let concern = match class {
            FailureClass::Invalid | FailureClass::Unreadable => Concern::Question,
            _ => Concern::Provider,
        };
        let (spent, reply) = (Spent::default(), String::new());
        let message = one_line(&message.into());
        Self { class, concern, message, retry_after: None, spent, reply }
    }

    /// Something in the settings is wrong: no question will be answered until that is mended.
    pub fn of_settings(message: impl Into<String>) -> Self {
        Self { concern: Concern::Provider, ..Self::new(FailureClass::Invalid, message) }
    }

    /// The response is longer than [`REPLY_BYTES_MAX`]. Another one may be shorter, but not for ever.
    fn too_large(from: &str) -> Self {
        let what = format!("{from} sent a response of more than {} MB", REPLY_BYTES_MAX >> 20);
        Self::new(FailureClass::Unreadable, what)
    }

    /// The time for this question is up. The next try may be quicker, but not for ever.
    fn too_slow(message: impl Into<String>) -> Self {
        Self { concern: Concern::Question, ..Self::new(FailureClass::Transient, message) }
    }

    fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after: retry_after.map(|wanted| wanted.min(RETRY_AFTER_MAX)), ..self }
    }

    /// With the expected cost, if a response came and did not say what it cost.
    #[must_use]
    pub fn paid_for(self, question: &Ask) -> Self {
        let is_unknown = self.class == FailureClass::Unreadable && self.spent == Spent::default();
        if is_unknown { self.costing(question.expected()) } else { self }
    }

    fn costing(self, spent: Spent) -> Self {
        Self { spent, ..self }
    }

    fn saying(self, reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..self }
    }
}

/// What a provider is made from.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    /// What the user chose.
    pub settings: &'a Settings,
    /// Where things live.
    pub paths: &'a Paths,
    /// What a program started by us inherits.
    pub environment: &'a Environment,
}

type Open = fn(&Setup<'_>) -> Result<Box<dyn Provider>, Refusal>;

/// Every provider that sends requests to a model.
pub const PROVIDERS: &[(ProviderName, Open)] = &[
    (ProviderName::Claude, claude::open),
    (ProviderName::Anthropic, anthropic::open),
    (ProviderName::OpenAi, openai::open),
];

/// The provider of that name, or one line that says what is wrong with its settings.
pub fn open(name: &str, setup: &Setup<'_>) -> Result<Box<dyn Provider>, Refusal> {
    match PROVIDERS.iter().find(|(known, _)| known.name() == name) {
        Some((_, open)) => open(setup),
        None => Err(Refusal::of_settings(format!("there is no provider `{name}`"))),
    }
}

/// The model that the settings give to a provider.
pub fn model(name: &str, settings: &Settings) -> String {
    let is_openai = name == ProviderName::OpenAi.name();
    settings.get(if is_openai { &table::OPENAI_MODEL } else { &table::MODEL })
}

/// What these tokens cost at the model's list price, in millionths of a dollar.
pub fn price(model: &str, spent: &Spent) -> Option<u64> {
    prices::cost_micros(model, spent, 0)
}

/// Longer messages help nobody.
const MESSAGE_CHARS_MAX: usize = 300;

/// No model and no session has a longer name.
const NAME_CHARS_MAX: usize = 200;

/// Messages of strangers are shown in one line, without the control characters they may hold.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| c.is_whitespace() || c.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let line = words.join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
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
    fn auto_knows_who_is_set_up_and_in_which_order() {
        // Nothing answers at this path, wherever else the client may be installed.
        let nobody = ("CLAUDE_CODE_PATH", "/nowhere/claude");
        let anthropic = ("CLAUDE_MEM_ANTHROPIC_API_KEY", "sk-1");
        let openai = ("CLAUDE_MEM_OPENAI_API_KEY", "sk-2");
        let model = ("CLAUDE_MEM_OPENAI_MODEL", "gpt-5-mini");
        let local = ("CLAUDE_MEM_OPENAI_BASE_URL", "http://localhost:11434/v1");
        assert_eq!(candidates_with(&[nobody]), ["extract"]);
        assert_eq!(candidates_with(&[nobody, openai]), ["extract"], "no model to ask");
        assert_eq!(candidates_with(&[nobody, openai, model]), ["openai", "extract"]);
        assert_eq!(candidates_with(&[nobody, model]), ["extract"], "no key to ask with");
        let of_local = candidates_with(&[nobody, local, model]);
        assert_eq!(of_local, ["openai", "extract"], "local ones need no key");
        let all = candidates_with(&[nobody, openai, model, anthropic]);
        assert_eq!(all, ["anthropic", "openai", "extract"]);
    }

    #[test]
    fn a_message_is_one_line_whatever_it_was() {
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
