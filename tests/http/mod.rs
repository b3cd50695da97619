//! The HTTP API of a real worker.

mod database;
mod extension;
mod limits;
mod load;
mod openapi;
mod reading;
mod recording;
mod security;
mod stream;
mod writing;

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
};

use serde_json::{Value, json};

use crate::{
    sandbox::Sandbox,
    serving::{Serving, until},
};

/// A worker, and the sandbox of its data.
pub(crate) struct Site {
    pub(crate) sandbox: Sandbox,
    serving: Serving,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Site {
    pub(crate) fn new() -> Self {
        Self::with(&[])
    }

    pub(crate) fn with(environment: &[(&str, &str)]) -> Self {
        let sandbox = Sandbox::new();
        let serving = Serving::start(&sandbox, environment);
        Self { sandbox, serving }
    }

    /// Kills the worker and starts another one.
    fn restart(&mut self) {
        self.serving.child.kill().unwrap();
        self.serving.child.wait().unwrap();
        self.serving = Serving::start(&self.sandbox, &[]);
    }

    fn port(&self) -> u64 {
        self.serving.presence["port"].as_u64().unwrap()
    }

    fn token(&self) -> &str {
        self.serving.presence["token"].as_str().unwrap()
    }

    /// The origin, as a browser sends it.
    fn authority(&self) -> String {
        format!("127.0.0.1:{}", self.port())
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port() as u16)).unwrap()
    }

    /// Sends exactly these lines and this body.
    fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Reply {
        let mut stream = self.connect();
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            head += &[name, ": ", value, "\r\n"].concat();
        }
        if !body.is_empty() {
            head += &["content-length: ", &body.len().to_string(), "\r\n"].concat();
        }
        // The worker may refuse a request before it has read all of it.
        let _ = stream.write_all(format!("{head}\r\n{body}").as_bytes());
        Reply::read(&mut BufReader::new(stream))
    }

    /// Sends a request with the token.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Reply {
        let bearer = format!("Bearer {}", self.token());
        let authority = self.authority();
        let mut headers = vec![("host", authority.as_str()), ("authorization", bearer.as_str())];
        if body.is_some() {
            headers.push(("content-type", "application/json"));
        }
        self.raw(method, path, &headers, &body.map(Value::to_string).unwrap_or_default())
    }

    /// The JSON response to a GET, which must succeed.
    pub(crate) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, None).ok()
    }

    /// The JSON response to a POST, which must succeed.
    pub(crate) fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, Some(body)).ok()
    }

    /// Sends one turn of a session over HTTP, and waits until it is distilled.
    pub(crate) fn remember_turn(&self, session: &str, prompt: &str, file: &str) {
        let cwd = self.sandbox.home().join("shop").display().to_string();
        let before = self.get("/api/stats")["database"]["summaries"].as_u64().unwrap();
        let init = json!({"contentSessionId": session, "cwd": cwd, "prompt": prompt});
        assert_eq!(self.post("/api/sessions/init", &init)["status"], "initialized");
        let input =
            json!({"file_path": format!("{cwd}/{file}"), "old_string": "a", "new_string": "b"});
        let used = json!({"contentSessionId": session, "cwd": cwd, "tool_name": "Edit",
            "tool_input": input, "tool_response": {"filePath": file}, "tool_use_id": format!("t-{prompt}")});
        assert_eq!(self.post("/api/sessions/observations", &used), json!({"status": "queued"}));
        let stop =
            json!({"contentSessionId": session, "cwd": cwd, "last_assistant_message": "Done."});
        assert_eq!(self.post("/api/sessions/summarize", &stop), json!({"status": "queued"}));
        until(|| self.get("/api/stats")["database"]["summaries"].as_u64().unwrap() > before);
    }
}

impl Reply {
    fn read(stream: &mut impl BufRead) -> Self {
        Self::next(stream).unwrap_or_else(|| panic!("there is no answer"))
    }

    /// The next response; `None` if the connection closes before it is complete.
    fn next(stream: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no answer: {line:?}"));
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).ok().filter(|count| *count > 0)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut reply = Self { status, headers, body: String::new() };
        let length = reply.header("content-length").and_then(|length| length.parse().ok());
        if let Some(length) = length {
            let mut body = vec![0; length];
            stream.read_exact(&mut body).ok()?;
            reply.body = String::from_utf8(body).unwrap();
        }
        Some(reply)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// The body of a successful response.
    fn ok(self) -> Value {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()
    }
}
