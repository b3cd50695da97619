//! What the model says to one request, or how it fails to.

use std::time::Duration;

use serde_json::Value;

use super::gate::Gate;

/// One answer. Made by the functions below, refined by the methods.
#[derive(Debug, Clone)]
pub struct Answer {
    pub(super) kind: Kind,
    pub(super) ending: Ending,
    pub(super) usage: Option<Usage>,
    pub(super) stop_reason: Option<String>,
    pub(super) pause: Duration,
    pub(super) gate: Option<Gate>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    Message(Vec<Block>),
    Error { status: u16, kind: String, message: String, retry_after: Option<u64> },
    Raw { status: u16, content_type: String, body: String },
    Malformed,
    Hang,
}

/// How a message stops being sent. All but the first leave it half sent.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    Whole,
    Short,
    Cut,
    Stall,
    Error { kind: String, message: String },
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// What the model says.
    Text(String),
    /// A tool the model wants to have run.
    Tool {
        /// As the request names it: `Bash`.
        name: String,
        /// Its arguments, an object.
        input: Value,
    },
}

/// What an answer is said to have cost, in tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Read afresh.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read and put into the cache.
    pub cache_creation: u64,
    /// Read from the cache.
    pub cache_read: u64,
}

impl Answer {
    /// A text in one block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([Block::Text(text.into())])
    }

    /// An answer with nothing in it: one text block, empty.
    pub fn empty() -> Self {
        Self::text("")
    }

    /// Calls of tools, run by the client in parallel if it can.
    pub fn tools<N: Into<String>>(calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let call = |(name, input): (N, Value)| Block::Tool { name: name.into(), input };
        Self::blocks(calls.into_iter().map(call))
    }

    /// Any sequence of texts and calls.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::of(Kind::Message(blocks.into_iter().collect()))
    }

    /// An HTTP error in the form of the protocol asked in, with the type the API gives to this status.
    pub fn http(status: u16) -> Self {
        let kind = match status {
            400 => "invalid_request_error",
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        Self::error(status, kind, &format!("scripted {status}"))
    }

    /// An HTTP error with this type and message.
    pub fn error(status: u16, kind: &str, message: &str) -> Self {
        let (kind, message) = (kind.to_owned(), message.to_owned());
        Self::of(Kind::Error { status, kind, message, retry_after: None })
    }

    /// Any status, content type and body, such as the HTML page of a proxy.
    pub fn raw(status: u16, content_type: &str, body: &str) -> Self {
        let (content_type, body) = (content_type.to_owned(), body.to_owned());
        Self::of(Kind::Raw { status, content_type, body })
    }

    /// Status 200 and a body, or an event of the stream, that is not JSON.
    pub fn malformed() -> Self {
        Self::of(Kind::Malformed)
    }

    /// Not a byte, until the server is dropped.
    pub fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    /// The seconds to wait before another try, on an error.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Kind::Error { retry_after, .. } = &mut self.kind {
            *retry_after = Some(seconds);
        }
        self
    }

    /// The connection breaks in the middle of the message.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { ending: Ending::Cut, ..self }
    }

    /// The response ends in the middle of the message, though in good order for HTTP: what a proxy makes
    /// of a connection that broke behind it.
    #[must_use]
    pub fn short(self) -> Self {
        Self { ending: Ending::Short, ..self }
    }

    /// Nothing comes after the middle of the message, until the server is dropped.
    #[must_use]
    pub fn stall(self) -> Self {
        Self { ending: Ending::Stall, ..self }
    }

    /// The stream breaks off with an `error` event, as when the API is overloaded half-way. Without
    /// streaming the whole answer is that error, with status 529.
    #[must_use]
    pub fn fail(self, kind: &str, message: &str) -> Self {
        let ending = Ending::Error { kind: kind.to_owned(), message: message.to_owned() };
        Self { ending, ..self }
    }

    /// Stopped because the limit of tokens was reached.
    #[must_use]
    pub fn max_tokens(self) -> Self {
        self.stop_reason("max_tokens")
    }

    /// Why the model stopped, in Anthropic's words; `tool_use` or `end_turn` if not said.
    #[must_use]
    pub fn stop_reason(self, reason: &str) -> Self {
        Self { stop_reason: Some(reason.to_owned()), ..self }
    }

    /// The tokens it reports; if not said, a quarter of the bytes of request and answer.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// A pause before each event of the stream, or before the whole.
    #[must_use]
    pub fn slow(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Not a byte until the gate is open: a test can act between the request and its answer.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    fn of(kind: Kind) -> Self {
        let (ending, pause) = (Ending::Whole, Duration::ZERO);
        Self { kind, ending, usage: None, stop_reason: None, pause, gate: None }
    }

    /// Why the model stopped, in Anthropic's words.
    pub(super) fn reason(&self, blocks: &[Block]) -> String {
        let calls = blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        let natural = if calls { "tool_use" } else { "end_turn" };
        self.stop_reason.clone().unwrap_or_else(|| natural.to_owned())
    }

    /// What it cost, for a request whose body was so long.
    pub(super) fn cost(&self, blocks: &[Block], request: &Value) -> Usage {
        let written: usize = blocks.iter().map(Block::bytes).sum();
        let estimate = || Usage {
            input: tokens(request.to_string().len()),
            output: tokens(written),
            ..Usage::default()
        };
        self.usage.unwrap_or_else(estimate)
    }
}

impl Block {
    fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Tool { name, input } => name.len() + input.to_string().len(),
        }
    }
}

/// About four bytes make a token, and nothing costs none.
pub(super) fn tokens(bytes: usize) -> u64 {
    1 + bytes as u64 / 4
}
