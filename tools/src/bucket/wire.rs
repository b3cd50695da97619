//! HTTP for the test bucket.

use std::{
    collections::BTreeMap,
    io::{self, BufRead, BufReader, Read, Write},
    net::TcpStream,
};

/// A request.
pub(super) struct Request {
    pub(super) method: String,
    /// The decoded path, without its first slash. That of an object starts with the name of its
    /// bucket.
    pub(super) key: String,
    query: String,
    /// By lower-case names.
    headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Request {
    /// Reads the next request of a connection; `None` at its end.
    pub(super) fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Self>> {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let method = words.next().unwrap_or_default().to_owned();
        let target = words.next().unwrap_or_default();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let (key, query) = (decoded(path.trim_start_matches('/')), query.to_owned());
        let mut request = Self { method, key, query, headers: BTreeMap::new(), body: Vec::new() };
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.split_once(':') else { break };
            request.headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let len = request.header("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
        request.body.resize(len, 0);
        reader.read_exact(&mut request.body)?;
        Ok(Some(request))
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// A query parameter; empty if missing.
    pub(super) fn asked(&self, name: &str) -> Option<String> {
        let mut pairs =
            self.query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
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

    /// Sends the response, only its head, or only its first half.
    pub(super) fn write(
        &self,
        mut stream: &TcpStream,
        is_head: bool,
        is_cut: bool,
    ) -> io::Result<()> {
        let Self { status, body } = self;
        // Every object has generation 1, which no request refers to.
        let mut answer = format!(
            "HTTP/1.1 {status} As Scripted\r\nContent-Length: {}\r\nETag: \"0\"\r\n\
             x-goog-generation: 1\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
            body.len()
        )
        .into_bytes();
        if !is_head {
            let len = if is_cut { body.len() / 2 } else { body.len() };
            answer.extend_from_slice(&body[..len]);
        }
        stream.write_all(&answer)?;
        stream.flush()
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
