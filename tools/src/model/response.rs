//! The response of a protocol to one request, which the server may send in part.

use serde_json::Value;

use crate::http_server::{End, HttpReply};

use super::answer::{Answer, Ending, Kind};

#[derive(Debug, PartialEq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    body: Body,
}

#[derive(Debug, PartialEq)]
enum Body {
    /// Sent with its length.
    Whole(String),
    /// Server-sent events, one chunk each.
    Events(Vec<String>),
}

impl Response {
    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::whole(status, "application/json", body.to_string())
    }

    pub(super) fn whole(status: u16, content_type: &str, body: String) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        Self { status, headers, body: Body::Whole(body) }
    }

    pub(super) fn events(events: Vec<String>) -> Self {
        let content_type = "text/event-stream; charset=utf-8".to_owned();
        let headers = vec![("content-type", content_type), ("cache-control", "no-cache".into())];
        Self { status: 200, headers, body: Body::Events(events) }
    }

    /// The reply, with the ending and the pauses of this answer.
    pub(super) fn reply(mut self, answer: &Answer) -> HttpReply {
        if let Kind::Error { retry_after: Some(seconds), .. } = &answer.kind {
            self.headers.push(("retry-after", seconds.to_string()));
        }
        self.headers.push(("connection", "close".to_owned()));
        let is_half = matches!(answer.ending, Ending::Short | Ending::Cut | Ending::Stall);
        let (pieces, length) = match self.body {
            Body::Whole(body) => {
                let count = body.chars().count();
                let sent: String =
                    body.chars().take(if is_half { count / 2 } else { count }).collect();
                // A truncated body announces its full length; a short one, its own.
                let announced =
                    if answer.ending == Ending::Short { sent.len() } else { body.len() };
                (vec![sent], Some(announced))
            }
            Body::Events(mut events) => {
                events.truncate(if is_half { events.len() / 2 } else { events.len() });
                (events, None)
            }
        };
        let end = match answer.ending {
            Ending::Cut => End::Close,
            Ending::Stall => End::Stall,
            _ => End::Complete,
        };
        HttpReply {
            status: self.status,
            headers: self.headers,
            body: pieces.into_iter().map(Into::into).collect(),
            length,
            end,
            pause: answer.pause,
        }
    }
}
