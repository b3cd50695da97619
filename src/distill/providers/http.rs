//! One JSON request to a model over HTTP, and the classification of its status.

use std::time::Duration;

use claude_mem_events::FailureClass;
use claude_mem_http_client::{self as http_client, Agent, ErrorBody, PostError, is_http_address};
use serde_json::Value;

use super::{Cancel, REPLY_BYTES_MAX, Refusal, Setup};
use claude_mem_core::settings::Setting;

/// The base URL of an endpoint, checked.
pub(super) fn base_url(setup: &Setup<'_>, setting: &Setting<String>) -> Result<String, Refusal> {
    let url = setup.settings.get(setting).trim_end_matches('/').to_owned();
    if is_http_address(&url) {
        return Ok(url);
    }
    let name = setting.name;
    Err(Refusal::of_settings(format!("{name} is not an http(s) address: `{url}`")))
}

pub(super) struct Post<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a Value,
    pub(super) time_max: Duration,
    pub(super) cancel: &'a Cancel,
}

impl Post<'_> {
    /// Sends it and returns the JSON of a successful response.
    pub(super) fn send(&self) -> Result<Value, Refusal> {
        let Self { url, headers, body, time_max, cancel } = *self;
        let post =
            http_client::Post { url, headers, body, time_max, reply_bytes_max: REPLY_BYTES_MAX };
        let agent = post.agent();
        let connections = agent.clone();
        let sent = cancel.during(move || connections.shutdown(), || send_by(&post, &agent));
        if cancel.is_cancelled() { sent.map_err(|_| Cancel::refusal()) } else { sent }
    }
}

fn send_by(post: &http_client::Post<'_>, agent: &Agent) -> Result<Value, Refusal> {
    let reply = post.send_by(agent).map_err(|error| match error {
        PostError::Settings(message) => Refusal::of_settings(message),
        PostError::TooSlow(message) => Refusal::too_slow(message),
        PostError::TooLarge => Refusal::too_large(post.place()),
        PostError::Connection(message) => Refusal::new(FailureClass::Transient, message),
    })?;
    match reply.status {
        200..=299 => serde_json::from_slice(&reply.body).map_err(|error| {
            let what = format!("{} sent a response that is not JSON: {error}", post.place());
            Refusal::new(FailureClass::Transient, what)
        }),
        status => {
            let mut refusal = refused(status, &reply.body).after(reply.retry_after);
            refusal.message = post.without_keys(&refusal.message);
            Err(refusal)
        }
    }
}

fn refused(status: u16, body: &[u8]) -> Refusal {
    let error = ErrorBody::read(body);
    let message = format!("HTTP {status}: {}", error.message);
    let (class, is_of_settings) = class(status, &error);
    if is_of_settings {
        return Refusal { class, ..Refusal::of_settings(message) };
    }
    Refusal::new(class, message)
}

/// The class of a failure, and whether every other request would fail in the same way.
fn class(status: u16, error: &ErrorBody) -> (FailureClass, bool) {
    if is_about_money(error) {
        return (FailureClass::Quota, true);
    }
    match status {
        401 | 403 => (FailureClass::Auth, true),
        402 => (FailureClass::Quota, true),
        429 => (FailureClass::RateLimit, true),
        408 | 409 | 425 | 500.. => (FailureClass::Transient, true),
        400 | 413 | 422 => (FailureClass::Invalid, is_about_model(error)),
        // A redirect, an unknown path, an unknown model.
        _ => (FailureClass::Invalid, true),
    }
}

/// Anthropic reports an exhausted account with status 400, OpenAI with 429.
fn is_about_money(error: &ErrorBody) -> bool {
    error.kind.contains("billing")
        || error.kind.contains("insufficient_quota")
        || error.message.to_lowercase().contains("credit balance")
}

fn is_about_model(error: &ErrorBody) -> bool {
    error.kind.contains("model_not_found") || error.message.to_lowercase().starts_with("model")
}

#[cfg(test)]
mod tests {
    use super::*;
    use FailureClass::{Auth, Invalid, Quota, RateLimit, Transient};

    #[test]
    fn the_status_and_the_error_body_determine_the_class() {
        let anthropic = |kind: &str, message: &str| {
            format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#)
        };
        let cases = [
            (400, anthropic("invalid_request_error", "prompt is too long"), Invalid, false),
            (
                400,
                anthropic("invalid_request_error", "Your credit balance is too low"),
                Quota,
                true,
            ),
            (401, anthropic("authentication_error", "invalid x-api-key"), Auth, true),
            (402, anthropic("billing_error", "no"), Quota, true),
            (403, "<html>no</html>".into(), Auth, true),
            (404, anthropic("not_found_error", "model: nope"), Invalid, true),
            (
                429,
                r#"{"error":{"message":"slow","code":"rate_limit_exceeded"}}"#.into(),
                RateLimit,
                true,
            ),
            (429, r#"{"error":{"message":"pay","code":"insufficient_quota"}}"#.into(), Quota, true),
            (
                400,
                r#"[{"error":{"code":400,"message":"x","status":"INVALID_ARGUMENT"}}]"#.into(),
                Invalid,
                false,
            ),
            (
                400,
                r#"{"error":{"message":"model `x` does not exist","code":"model_not_found"}}"#
                    .into(),
                Invalid,
                true,
            ),
            (301, String::new(), Invalid, true),
            (500, String::new(), Transient, true),
            (529, anthropic("overloaded_error", "Overloaded"), Transient, true),
        ];
        for (status, body, expected, is_of_settings) in cases {
            let found = class(status, &ErrorBody::read(body.as_bytes()));
            assert_eq!(found, (expected, is_of_settings), "{status} {body}");
        }
    }
}
