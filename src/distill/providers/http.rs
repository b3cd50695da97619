//! One JSON request to a model over HTTP, and the classification of its status.

use std::{io::Read as _, sync::LazyLock, time::Duration};

use claude_mem_events::FailureClass;
use serde_json::Value;
use ureq::tls::{RootCerts, TlsConfig};

use super::{Cancel, REPLY_BYTES_MAX, Refusal, Setup};
use claude_mem_core::{os, settings::Setting};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// The base URL of an endpoint, checked.
pub(super) fn base_url(setup: &Setup<'_>, setting: &Setting<String>) -> Result<String, Refusal> {
    let url = setup.settings.get(setting).trim_end_matches('/').to_owned();
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    match host {
        Some(host) if !host.is_empty() && !url.contains(char::is_whitespace) => Ok(url),
        _ => {
            let name = setting.name;
            Err(Refusal::of_settings(format!("{name} is not an http(s) address: `{url}`")))
        }
    }
}

pub(super) struct Post<'a> {
    pub(super) url: &'a str,
    pub(super) headers: &'a [(&'a str, &'a str)],
    pub(super) body: &'a Value,
    pub(super) time_max: Duration,
    pub(super) cancel: &'a Cancel,
}

impl Post<'_> {
    /// Sends it and returns the JSON of a successful response. Redirects are not followed, because
    /// the key in the headers is only for the configured host.
    pub(super) fn send(&self) -> Result<Value, Refusal> {
        let agent = self.agent();
        let connections = agent.clone();
        let sent = self.cancel.during(move || connections.shutdown(), || self.send_by(&agent));
        if self.cancel.is_cancelled() { sent.map_err(|_| Cancel::refusal()) } else { sent }
    }

    fn agent(&self) -> ureq::Agent {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_global(Some(self.time_max))
            .timeout_connect(Some(CONNECT_TIME_MAX))
            .tls_config(TlsConfig::builder().root_certs(root_certificates()).build())
            .user_agent(concat!("claude-mem/", env!("CARGO_PKG_VERSION")))
            .build();
        config.new_agent()
    }

    fn send_by(&self, agent: &ureq::Agent) -> Result<Value, Refusal> {
        let mut request = agent.post(self.url);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let mut response =
            request.send_json(self.body).map_err(|error| self.connection_failure(&error))?;
        let status = response.status().as_u16();
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| seconds(value.to_str().ok()?));
        // The limit applies to the decompressed size: a few kilobytes may expand to gigabytes.
        let mut body = Vec::new();
        let mut reader = response.body_mut().as_reader().take(REPLY_BYTES_MAX as u64 + 1);
        reader
            .read_to_end(&mut body)
            .map_err(|error| self.connection_failure(&ureq::Error::from(error)))?;
        if body.len() > REPLY_BYTES_MAX {
            return Err(Refusal::too_large(self.place()));
        }
        match status {
            200..=299 => serde_json::from_slice(&body).map_err(|error| {
                let what = format!("{} sent a response that is not JSON: {error}", self.place());
                Refusal::new(FailureClass::Transient, what)
            }),
            _ => Err(self.without_keys(refused(status, &body).after(retry_after))),
        }
    }

    /// Some proxies echo the request, including its key.
    fn without_keys(&self, mut refusal: Refusal) -> Refusal {
        for (_, value) in self.headers {
            let key = value.strip_prefix("Bearer ").unwrap_or(value);
            refusal.message = refusal.message.replace(key, "…");
        }
        refusal
    }

    /// The URL without its password.
    fn place(&self) -> &str {
        self.url.rsplit_once('@').map_or(self.url, |(_, place)| place)
    }

    fn connection_failure(&self, error: &ureq::Error) -> Refusal {
        let message = match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                format!("{} cannot be reached", self.place())
            }
            ureq::Error::Timeout(_) => {
                format!("{} did not respond within {:?}", self.place(), self.time_max)
            }
            error if is_certificate_error(error) => format!(
                "request to {} failed: {error}. Behind a company proxy, set SSL_CERT_FILE to the file of its \
                 root certificate",
                self.place()
            ),
            error => format!("request to {} failed: {error}", self.place()),
        };
        match error {
            ureq::Error::BadUri(_) | ureq::Error::Http(_) => Refusal::of_settings(message),
            // A retry would not change the certificate.
            error if is_certificate_error(error) => Refusal::of_settings(message),
            // An unreachable host fails for all requests alike.
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                Refusal::new(FailureClass::Transient, message)
            }
            ureq::Error::Timeout(_) => Refusal::too_slow(message),
            _ => Refusal::new(FailureClass::Transient, message),
        }
    }
}

/// Whether the server's certificate is not trusted.
fn is_certificate_error(error: &ureq::Error) -> bool {
    let error = match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => error.get_ref().and_then(|inner| inner.downcast_ref()),
        _ => None,
    };
    matches!(error, Some(rustls::Error::InvalidCertificate(_)))
}

/// The system's root certificates: they may include those of the user's company and exclude revoked
/// ones. Without any, those compiled in.
fn root_certificates() -> RootCerts {
    static HAS_ROOTS: LazyLock<bool> = LazyLock::new(os::has_root_certificates);
    if *HAS_ROOTS { RootCerts::PlatformVerifier } else { RootCerts::WebPki }
}

/// `retry-after` in seconds. No service in use sends a date.
fn seconds(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

fn refused(status: u16, body: &[u8]) -> Refusal {
    let error = Error::read(body);
    let message = format!("HTTP {status}: {}", error.message);
    let (class, is_of_settings) = class(status, &error);
    if is_of_settings {
        return Refusal { class, ..Refusal::of_settings(message) };
    }
    Refusal::new(class, message)
}

/// The class of a failure, and whether every other request would fail in the same way.
fn class(status: u16, error: &Error) -> (FailureClass, bool) {
    if error.is_about_money() {
        return (FailureClass::Quota, true);
    }
    match status {
        401 | 403 => (FailureClass::Auth, true),
        402 => (FailureClass::Quota, true),
        429 => (FailureClass::RateLimit, true),
        408 | 409 | 425 | 500.. => (FailureClass::Transient, true),
        400 | 413 | 422 => (FailureClass::Invalid, error.is_about_model()),
        // A redirect, an unknown path, an unknown model.
        _ => (FailureClass::Invalid, true),
    }
}

/// The error body, in the formats of different services.
struct Error {
    kind: String,
    message: String,
}

impl Error {
    fn read(body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let value = if value.is_array() { &value[0] } else { &value };
        let error = &value["error"];
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let message = [&error["message"], error, &value["message"], &value["detail"]];
        let message = message.into_iter().find_map(text);
        let message = message.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
        let kinds = [&error["type"], &error["code"], &error["status"]];
        let kind: Vec<String> = kinds.into_iter().filter_map(text).collect();
        Self { kind: kind.join(" ").to_lowercase(), message }
    }

    /// Anthropic reports an exhausted account with status 400, `OpenAI` with 429.
    fn is_about_money(&self) -> bool {
        let message = self.message.to_lowercase();
        self.kind.contains("billing")
            || self.kind.contains("insufficient_quota")
            || message.contains("credit balance")
    }

    fn is_about_model(&self) -> bool {
        self.kind.contains("model_not_found") || self.message.to_lowercase().starts_with("model")
    }
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
            let found = class(status, &Error::read(body.as_bytes()));
            assert_eq!(found, (expected, is_of_settings), "{status} {body}");
        }
    }

    #[test]
    fn the_message_is_found_in_every_format() {
        let message = |body: &str| Error::read(body.as_bytes()).message;
        assert_eq!(message(r#"{"error":{"message":"a"}}"#), "a");
        assert_eq!(message(r#"{"error":"b"}"#), "b");
        assert_eq!(message(r#"{"detail":"c"}"#), "c");
        assert_eq!(message(r#"[{"error":{"message":"d"}}]"#), "d");
        assert_eq!(message("<html>"), "<html>");
        assert_eq!(message(""), "");
    }

    #[test]
    fn retry_after_is_parsed_in_seconds_and_nonsense_is_ignored() {
        assert_eq!(seconds(" 20 "), Some(Duration::from_secs(20)));
        assert_eq!(seconds("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(seconds("-1"), None);
        assert_eq!(seconds("NaN"), None);
        assert_eq!(seconds("1e300"), None);
        assert_eq!(seconds("Wed, 21 Oct 2026 07:28:00 GMT"), None);
    }
}
