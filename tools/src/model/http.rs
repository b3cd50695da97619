//! The part of HTTP/1.1 that clients use: one request and one response per connection.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use super::request::Request;

/// More than any client sends: the largest messages they accept are below 32 MB.
const BODY_BYTES_MAX: u64 = 64 << 20;
const HEAD_BYTES_MAX: u64 = 256 << 10;

/// A complete response; the server may send only a part of it.
#[derive(Debug, PartialEq)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) content_type: String,
    pub(super) body: Body,
}

#[derive(Debug, PartialEq)]
pub(super) enum Body {
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
        let content_type = content_type.to_owned();
        Self { status, headers: Vec::new(), content_type, body: Body::Whole(body) }
    }

    pub(super) fn events(events: Vec<String>) -> Self {
        let content_type = "text/event-stream; charset=utf-8".to_owned();
        Self { status: 200, headers: Vec::new(), content_type, body: Body::Events(events) }
    }

    /// The head of a response with this body.
    pub(super) fn head(&self, body: &Body) -> String {
        let framing = match body {
            Body::Whole(body) => format!("content-length: {}", body.len()),
            Body::Events(_) => "transfer-encoding: chunked\r\ncache-control: no-cache".to_owned(),
        };
        let (status, reason) = (self.status, reason(self.status));
        let mut lines = vec![format!("HTTP/1.1 {status} {reason}"), framing];
        lines.push(format!("content-type: {}", self.content_type));
        lines.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        lines.push("connection: close\r\n\r\n".to_owned());
        lines.join("\r\n")
    }
}

impl Body {
    /// The first half, for truncated responses.
    pub(super) fn halved(&self) -> Self {
        match self {
            Self::Whole(body) => Self::Whole(body.chars().take(body.chars().count() / 2).collect()),
            Self::Events(events) => Self::Events(events[..events.len() / 2].to_vec()),
        }
    }

    /// The end of a chunked body.
    pub(super) fn end(&self) -> &'static [u8] {
        match self {
            Self::Whole(_) => b"",
            Self::Events(_) => b"0\r\n\r\n",
        }
    }
}

/// Reads one request; `None` if the client closed the connection without sending one. The server
/// sets its number.
pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Request>> {
    let mut reader = BufReader::new(stream);
    let head = read_head(&mut reader)?;
    let mut lines = head.lines();
    let Some(first) = lines.next() else { return Ok(None) };
    let mut words = first.split(' ');
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(invalid("the request line has no target"));
    };
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let mut request = Request {
        number: 0,
        method: method.to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        headers,
        body: Value::Null,
    };
    if request.header("expect").is_some() {
        let mut writer = stream;
        writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
    }
    request.body = serde_json::from_slice(&read_body(&mut reader, &request)?).unwrap_or_default();
    Ok(Some(request))
}

fn read_head(reader: &mut impl BufRead) -> io::Result<String> {
    let mut head = String::new();
    let mut limited = reader.take(HEAD_BYTES_MAX);
    while limited.read_line(&mut head)? > 2 {}
    Ok(head)
}

fn header(line: &str) -> Option<(String, String)> {
    let (name, value) = line.split_once(':')?;
    Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
}

fn read_body(reader: &mut impl BufRead, request: &Request) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if request.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
        while read_chunk(reader, &mut body)? > 0 {}
        return Ok(body);
    }
    let length = request.header("content-length").unwrap_or("0");
    let length = length.parse().map_err(|_| invalid("the content length is not a number"))?;
    read_exactly(reader, length, &mut body)?;
    Ok(body)
}

/// Adds one chunk to the body and returns its length; the last one is empty.
fn read_chunk(reader: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<u64> {
    let mut line = String::new();
    reader.take(HEAD_BYTES_MAX).read_line(&mut line)?;
    let digits = line.split(';').next().unwrap_or_default().trim();
    let length = u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk has no length"))?;
    read_exactly(reader, length, body)?;
    reader.take(2).read_to_end(&mut Vec::new())?;
    Ok(length)
}

fn read_exactly(reader: &mut impl BufRead, length: u64, body: &mut Vec<u8>) -> io::Result<()> {
    if body.len() as u64 + length > BODY_BYTES_MAX {
        return Err(invalid("the body is larger than 64 MB"));
    }
    if reader.take(length).read_to_end(body)? as u64 == length {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        _ => "Scripted",
    }
}
