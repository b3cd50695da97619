//! One JSON request to a service that the user chose: a provider, or an embedding endpoint.
//!
//! Time and size are limited. Redirects are not followed, because the key in the headers is only
//! for the configured host.

use std::{io::Read as _, sync::LazyLock, time::Duration};

use claude_mem_core::os;
use serde_json::Value;
pub use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(15);

/// A request. `headers` may contain a key.
#[derive(Clone, Copy)]
pub struct Post<'a> {
    pub url: &'a str,
    pub headers: &'a [(&'a str, &'a str)],
    pub body: &'a Value,
    /// Until the end of the response.
    pub time_max: Duration,
    /// Longest response, decompressed.
    pub reply_bytes_max: usize,
}

/// A response of any status.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Why there is no response, in words for people, without keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PostError {
    /// A retry would fail in the same way: the address, or the certificate.
    Settings(String),
    /// There was no response in time.
    TooSlow(String),
    /// The response is longer than allowed.
    TooLarge,
    /// No connection, or it broke.
    Connection(String),
}

impl std::fmt::Debug for Post<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Post").field("url", &self.place()).finish_non_exhaustive()
    }
}

impl Post<'_> {
    /// The connections of one request. Shutting them down ends it.
    pub fn agent(&self) -> Agent {
        let config = Agent::config_builder()
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

    /// Sends it and reads the whole response.
    pub fn send_by(&self, agent: &Agent) -> Result<Reply, PostError> {
        let mut request = agent.post(self.url);
        for (name, value) in self.headers {
            request = request.header(*name, *value);
        }
        let mut response =
            request.send_json(self.body).map_err(|error| self.connection_error(&error))?;
        let retry_after = response.headers().get("retry-after");
        let retry_after = retry_after.and_then(|value| seconds(value.to_str().ok()?));
        // The limit applies to the decompressed size: a few kilobytes may expand to gigabytes.
        let mut body = Vec::new();
        let mut reader = response.body_mut().as_reader().take(self.reply_bytes_max as u64 + 1);
        reader
            .read_to_end(&mut body)
            .map_err(|error| self.connection_error(&ureq::Error::from(error)))?;
        if body.len() > self.reply_bytes_max {
            return Err(PostError::TooLarge);
        }
        Ok(Reply { status: response.status().as_u16(), retry_after, body })
    }

    /// A message of the service without the keys of the request: some proxies echo it.
    pub fn without_keys(&self, message: &str) -> String {
        let mut message = message.to_owned();
        for (_, value) in self.headers {
            let key = value.strip_prefix("Bearer ").unwrap_or(value);
            message = message.replace(key, "…");
        }
        message
    }

    /// The URL without its password.
    pub fn place(&self) -> &str {
        place(self.url)
    }

    fn connection_error(&self, error: &ureq::Error) -> PostError {
        match error {
            ureq::Error::Timeout(ureq::Timeout::Connect | ureq::Timeout::Resolve) => {
                // An unreachable host fails for all requests alike.
                PostError::Connection(format!("{} cannot be reached", self.place()))
            }
            ureq::Error::Timeout(_) => PostError::TooSlow(format!(
                "{} did not respond within {:?}",
                self.place(),
                self.time_max
            )),
            // A retry would not change the certificate.
            error if is_certificate_error(error) => PostError::Settings(format!(
                "request to {} failed: {error}. Behind a company proxy, set SSL_CERT_FILE to the \
                 file of its root certificate",
                self.place()
            )),
            error => {
                let message = format!("request to {} failed: {error}", self.place());
                match error {
                    ureq::Error::BadUri(_) | ureq::Error::Http(_) => PostError::Settings(message),
                    _ => PostError::Connection(message),
                }
            }
        }
    }
}

/// A URL without its password.
pub fn place(url: &str) -> &str {
    url.rsplit_once('@').map_or(url, |(_, place)| place)
}

/// Whether a text is an address that requests can be sent to.
pub fn is_http_address(url: &str) -> bool {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !url.contains(char::is_whitespace))
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

/// The body of an error, in the formats of different services.
#[derive(Debug)]
pub struct ErrorBody {
    /// Its type and code, in lower case.
    pub kind: String,
    pub message: String,
}

impl ErrorBody {
    pub fn read(body: &[u8]) -> Self {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_format() {
        let message = |body: &str| ErrorBody::read(body.as_bytes()).message;
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
