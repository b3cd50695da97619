//! Requests to the test bucket, and its responses.

use std::time::Duration;

use crate::http_server::{End, HttpReply, HttpRequest};

/// A request for an object or a listing.
pub(super) struct Request {
    http: HttpRequest,
    /// The decoded path, without its first slash. That of an object starts with the name of its
    /// bucket.
    pub(super) key: String,
}

impl Request {
    pub(super) fn new(http: HttpRequest) -> Self {
        let key = decoded(http.path.trim_start_matches('/'));
        Self { http, key }
    }

    pub(super) fn method(&self) -> &str {
        &self.http.method
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.http.body
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let found = self.http.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A query parameter; empty if it has no value.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.http.query.split('&');
        let mut pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        pairs.find(|(known, _)| *known == name).map(|(_, value)| decoded(value))
    }
}

/// A response.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, body: body.into() }
    }

    /// An error in the XML form of S3.
    pub(super) fn error(status: u16, code: &str, message: &str) -> Self {
        let words = format!("<Code>{code}</Code><Message>{message}</Message>");
        let xml = "<?xml version='1.0' encoding='UTF-8'?>";
        Self::new(status, format!("{xml}<Error>{words}</Error>"))
    }

    /// The whole response, or its first half.
    pub(super) fn reply(self, is_cut: bool) -> HttpReply {
        let Self { status, mut body } = self;
        let length = (status != 204).then_some(body.len());
        if is_cut {
            body.truncate(body.len() / 2);
        }
        // Every object has generation 1, which no request refers to.
        let headers = [
            ("etag", "\"0\""),
            ("x-goog-generation", "1"),
            ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ];
        HttpReply {
            status,
            headers: headers.map(|(name, value)| (name, value.to_owned())).to_vec(),
            body: vec![body.into()],
            length,
            end: if is_cut { End::Close } else { End::Complete },
            pause: Duration::ZERO,
        }
    }
}

/// Decodes percent-encoding.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        match part.get(..2).map(|digits| u8::from_str_radix(digits, 16)) {
            Some(Ok(byte)) => {
                bytes.push(byte);
                bytes.extend_from_slice(&part.as_bytes()[2..]);
            }
            _ => bytes.extend(["%", part].concat().into_bytes()),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
