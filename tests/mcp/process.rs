//! An MCP server, and a client that sends exactly the given messages.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// A time limit that no machine reaches.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// A server; the test is its client.
pub(crate) struct McpProcess {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) lines: Receiver<String>,
    calls: u64,
}

impl McpProcess {
    pub(crate) fn with(sandbox: &Sandbox) -> Self {
        Self::start(&mut sandbox.command(&["mcp"]))
    }

    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            stdout.lines().map_while(Result::ok).for_each(|line| drop(sender.send(line)));
        });
        Self { stdin: child.stdin.take(), child, lines, calls: 0 }
    }

    pub(crate) fn send(&mut self, line: impl AsRef<[u8]>) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(line.as_ref()).unwrap();
        stdin.write_all(b"\n").unwrap();
    }

    pub(crate) fn receive(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(WAIT_MAX).unwrap()).unwrap()
    }

    pub(crate) fn ask(&mut self, line: impl AsRef<[u8]>) -> Value {
        self.send(line);
        self.receive()
    }

    /// The text of a tool's result, and whether it is an error.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> (String, bool) {
        self.calls += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.calls, "method": "tools/call",
            "params": {"name": tool, "arguments": arguments}});
        let answer = self.ask(request.to_string());
        assert_eq!(answer["id"], self.calls, "{answer}");
        let result = &answer["result"];
        (result["content"][0]["text"].as_str().unwrap().to_owned(), result["isError"] == true)
    }

    /// The text of a successful tool call.
    pub(crate) fn call_ok(&mut self, tool: &str, arguments: &Value) -> String {
        let (text, is_error) = self.call(tool, arguments);
        assert!(!is_error, "{text}");
        text
    }

    /// Closes stdin; the server exits without further output.
    pub(crate) fn end(mut self) {
        self.stdin = None;
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        assert_eq!(self.lines.recv_timeout(WAIT_MAX).ok(), None);
    }
}
