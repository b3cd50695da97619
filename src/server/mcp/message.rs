//! JSON-RPC of MCP: one message per line. Malformed input becomes an error response.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, de::IgnoredAny};
use serde_json::{Value, value::RawValue};

use claude_mem_core::safe_text::{clean, clean_json};

/// The line is not JSON.
pub(super) const PARSE_ERROR: i32 = -32700;
/// It is JSON, but not a request.
pub(super) const INVALID_REQUEST: i32 = -32600;
/// There is no such method.
pub(super) const METHOD_NOT_FOUND: i32 = -32601;
/// The parameters are invalid.
pub(super) const INVALID_PARAMS: i32 = -32602;
/// The protocol version that the request names is unknown.
pub(super) const UNSUPPORTED_VERSION: i32 = -32022;

/// A parsed line.
#[derive(Debug)]
pub(super) enum Line<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch, as 2025-03-26 allows; never empty.
    Batch(Vec<Message<'a>>),
    /// Malformed; respond with this error.
    Refused(RpcError),
}

/// One message.
#[derive(Debug)]
pub(super) enum Message<'a> {
    /// A request, which needs a response.
    Request(Request<'a>),
    /// A notification, or a response, which needs none.
    Silent,
    /// Malformed, but needs a response.
    Refused(Option<&'a RawValue>, RpcError),
}

/// A request. Its ID is returned byte for byte, with any type.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) id: &'a RawValue,
    pub(super) method: Cow<'a, str>,
    pub(super) params: Option<&'a RawValue>,
}

/// A JSON-RPC error.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct RpcError {
    pub(super) code: i32,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) data: Value,
}

impl RpcError {
    pub(super) fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: Value::Null }
    }
}

/// A response, written on one line.
#[derive(Debug, Serialize)]
pub(super) struct Response<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Result(Value),
    Error(RpcError),
}

impl<'a> Response<'a> {
    pub(super) fn new(id: Option<&'a RawValue>, outcome: Result<Value, RpcError>) -> Self {
        // The model reads the response, including invisible characters.
        let outcome = match outcome {
            Ok(mut result) => {
                clean_json(&mut result);
                Outcome::Result(result)
            }
            Err(mut fault) => {
                fault.message = clean(&fault.message).into_owned();
                clean_json(&mut fault.data);
                Outcome::Error(fault)
            }
        };
        Self { jsonrpc: "2.0", id, outcome }
    }
}

impl<'a> Line<'a> {
    pub(super) fn read(line: &'a [u8]) -> Self {
        let Ok(raw) = serde_json::from_slice::<&RawValue>(line) else {
            return Self::Refused(RpcError::new(PARSE_ERROR, "the line is not JSON"));
        };
        if !raw.get().starts_with('[') {
            return Self::One(Message::read(raw));
        }
        match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(messages) if !messages.is_empty() => {
                Self::Batch(messages.into_iter().map(Message::read).collect())
            }
            _ => Self::Refused(RpcError::new(INVALID_REQUEST, "the batch is empty")),
        }
    }
}

/// The relevant members, unparsed.
#[derive(Deserialize)]
struct Members<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
    result: Option<IgnoredAny>,
    error: Option<IgnoredAny>,
}

/// A member that is `null` counts as present.
fn present<'de, D: Deserializer<'de>>(member: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(member).map(Some)
}

impl<'a> Message<'a> {
    fn read(raw: &'a RawValue) -> Self {
        let invalid = |message: &str| RpcError::new(INVALID_REQUEST, message);
        let Ok(members) = serde_json::from_str::<Members<'a>>(raw.get()) else {
            return Self::Refused(None, invalid("a message is an object with each member once"));
        };
        let Members { jsonrpc, id, method, params, result, error } = members;
        if method.is_none() && (result.is_some() || error.is_some()) {
            return Self::Silent;
        }
        if jsonrpc.is_none_or(|version| version.get() != r#""2.0""#) {
            return Self::Refused(id, invalid(r#"`jsonrpc` must be "2.0""#));
        }
        let Some(method) = method.and_then(text) else {
            return Self::Refused(id, invalid("`method` must be a string"));
        };
        match id {
            Some(id) => Self::Request(Request { id, method, params }),
            None => Self::Silent,
        }
    }
}

fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<&str>(raw.get())
        .map(Cow::Borrowed)
        .or_else(|_| serde_json::from_str::<String>(raw.get()).map(Cow::Owned))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &[u8]) -> (i32, Option<String>) {
        match Line::read(line) {
            Line::Refused(fault) => (fault.code, None),
            Line::One(Message::Refused(id, fault)) => {
                (fault.code, id.map(|id| id.get().to_owned()))
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_of_every_type_are_returned_unchanged() {
        for id in ["0", "-1", "1.0", "123456789012345678901234567890", r#""a\u0062""#, "null"]
            .into_iter()
            .chain(["true", "[1, 2]", r#"{"a": []}"#])
        {
            let line = format!(r#" {{"id":{id} ,"jsonrpc":"2.0","method":"pin\u0067"}}"#);
            let Line::One(Message::Request(request)) = Line::read(line.as_bytes()) else {
                panic!("{line}")
            };
            assert_eq!((request.id.get(), &*request.method), (id, "ping"));
            let answer = Response::new(Some(request.id), Ok(Value::Null));
            let expected = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#);
            assert_eq!(serde_json::to_string(&answer).unwrap(), expected);
        }
    }

    #[test]
    fn invalid_requests_are_rejected_with_their_id() {
        for garbage in [&b"hello"[..], b"{", b"\xff\xfe", b"{} {}", b"\"\xc3\x28\""] {
            assert_eq!(refusal(garbage), (PARSE_ERROR, None));
        }
        for (line, id) in [
            ("[]", None),
            ("7", None),
            ("null", None),
            ("{}", None),
            (r#"{"jsonrpc":"2.0","id":7}"#, Some("7")),
            (r#"{"jsonrpc":"1.0","id":7,"method":"ping"}"#, Some("7")),
            (r#"{"id":"x","method":"ping"}"#, Some("\"x\"")),
            (r#"{"jsonrpc":"2.0","id":7,"method":["ping"]}"#, Some("7")),
            (r#"{"jsonrpc":"2.0","id":7,"id":8,"method":"ping"}"#, None),
        ] {
            assert_eq!(refusal(line.as_bytes()), (INVALID_REQUEST, id.map(Into::into)), "{line}");
        }
    }

    #[test]
    fn deep_nesting_is_read_without_a_deep_stack() {
        let line = "[".repeat(100_000) + &"]".repeat(100_000);
        let Line::Batch(messages) = Line::read(line.as_bytes()) else { panic!() };
        assert!(matches!(messages[..], [Message::Refused(None, _)]));
    }

    #[test]
    fn notifications_and_responses_get_no_response() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}"#,
        ] {
            assert!(matches!(Line::read(line.as_bytes()), Line::One(Message::Silent)), "{line}");
        }
    }
}
