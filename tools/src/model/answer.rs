//! The response of the model to one request, or its failure.

use std::time::Duration;

use serde_json::Value;

use super::gate::Gate;

/// One response. Created by the functions below, refined by the methods.
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

/// How a response ends. All but the first variant cut it off.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Ending {
    Whole,
    Short,
    Cut,
    Stall,
    Error { kind: String, message: String },
}

/// A block of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// Text of the model.
    Text(String),
    /// A tool call of the model.
    Tool {
        /// As the request names it: `Bash`.
        name: String,
        /// Its arguments, an object.
        input: Value,
    },
}

/// The reported tokens of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Usage {
    /// Uncached input.
    pub input: u64,
    /// Output.
    pub output: u64,
    /// Input written to the cache.
    pub cache_creation: u64,
    /// Input read from the cache.
    pub cache_read: u64,
}

impl Answer {
    /// A text in one block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::blocks([Block::Text(text.into())])
    }

    /// An empty response: one empty text block.
    pub fn empty() -> Self {
        Self::text("")
    }

    /// Tool calls, which the client may run in parallel.
    pub fn tools<N: Into<String>>(calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let call = |(name, input): (N, Value)| Block::Tool { name: name.into(), input };
        Self::blocks(calls.into_iter().map(call))
    }

    /// Any sequence of texts and tool calls.
    pub fn blocks(blocks: impl IntoIterator<Item = Block>) -> Self {
        Self::of(Kind::Message(blocks.into_iter().collect()))
    }

    /// An HTTP error in the form of the protocol, with the API's type for this status.
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

    /// No response, until the server is dropped.
    pub fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    /// The seconds in the `retry-after` header of an error.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        if let Kind::Error { retry_after, .. } = &mut self.kind {
            *retry_after = Some(seconds);
        }
        self
    }

    /// Closes the connection in the middle of the message.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { ending: Ending::Cut, ..self }
    }

    /// Ends the response in the middle of the message, as valid HTTP: a proxy does so when its
    /// upstream connection breaks.
    #[must_use]
    pub fn short(self) -> Self {
        Self { ending: Ending::Short, ..self }
    }

    /// Sends nothing after the middle of the message, until the server is dropped.
    #[must_use]
    pub fn stall(self) -> Self {
        Self { ending: Ending::Stall, ..self }
    }

    /// Ends the stream with an `error` event, as when the API is overloaded half-way. Without
    /// streaming the whole response is that error, with status 529.
    #[must_use]
    pub fn fail(self, kind: &str, message: &str) -> Self {
        let ending = Ending::Error { kind: kind.to_owned(), message: message.to_owned() };
        Self { ending, ..self }
    }

    /// Stops at the token limit.
    #[must_use]
    pub fn max_tokens(self) -> Self {
        self.stop_reason("max_tokens")
    }

    /// Sets the stop reason, in Anthropic's terms; by default `tool_use` or `end_turn`.
    #[must_use]
    pub fn stop_reason(self, reason: &str) -> Self {
        Self { stop_reason: Some(reason.to_owned()), ..self }
    }

    /// Sets the reported tokens; by default a quarter of the bytes of request and response.
    #[must_use]
    pub fn usage(self, usage: Usage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Waits before each event of the stream, or before the whole response.
    #[must_use]
    pub fn slow(self, pause: Duration) -> Self {
        Self { pause, ..self }
    }

    /// Sends nothing until the gate is open: a test can act between a request and its response.
    #[must_use]
    pub fn held_by(self, gate: &Gate) -> Self {
        Self { gate: Some(gate.clone()), ..self }
    }

    fn of(kind: Kind) -> Self {
        let (ending, pause) = (Ending::Whole, Duration::ZERO);
        Self { kind, ending, usage: None, stop_reason: None, pause, gate: None }
    }

    /// The stop reason, in Anthropic's terms.
    pub(super) fn reason(&self, blocks: &[Block]) -> String {
        let calls = blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
        let natural = if calls { "tool_use" } else { "end_turn" };
        self.stop_reason.clone().unwrap_or_else(|| natural.to_owned())
    }

    /// The reported tokens, for a request body of this length.
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

/// About four bytes per token, and at least one token.
pub(super) fn tokens(bytes: usize) -> u64 {
    1 + bytes as u64 / 4
}
