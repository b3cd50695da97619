//! A worker in a sandbox, stopped at the end of its test.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    process::{Child, Stdio},
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::sandbox::Sandbox;

/// A running worker.
pub(crate) struct Serving {
    pub(crate) child: Child,
    /// The content of its `worker.json`.
    pub(crate) presence: Value,
}

impl Serving {
    /// Starts a worker on a free port, with the rules as provider, and waits until it responds.
    pub(crate) fn start(sandbox: &Sandbox, environment: &[(&str, &str)]) -> Self {
        let mut command = sandbox.command(&["worker", "run"]);
        command.env("CLAUDE_MEM_WORKER_PORT", "0").env("CLAUDE_MEM_PROVIDER", "extract");
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let data = environment.iter().find(|(name, _)| *name == "CLAUDE_MEM_DATA_DIR");
        let data = data.map_or_else(|| sandbox.data(), |(_, dir)| dir.into());
        let mut presence = Value::Null;
        until(|| {
            assert!(child.try_wait().unwrap().is_none(), "the worker ended");
            let text = fs::read_to_string(data.join("worker.json")).unwrap_or_default();
            presence = serde_json::from_str(&text).unwrap_or_default();
            presence["pid"] == child.id()
        });
        Self { child, presence }
    }

    /// Kills it, as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection to `worker.sock`.
pub(crate) struct Lines {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Lines {
    pub(crate) fn open(sandbox: &Sandbox) -> Self {
        let stream = UnixStream::connect(sandbox.data().join("worker.sock")).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Self { stream, answers }
    }

    /// Sends these bytes.
    pub(crate) fn say(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// The writing half of the connection.
    pub(crate) fn stream(&mut self) -> &mut UnixStream {
        &mut self.stream
    }

    /// The next response; `None` at the end.
    pub(crate) fn answer(&mut self) -> Option<Value> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok().filter(|count| *count > 0)?;
        serde_json::from_str(&line).ok()
    }

    /// Sends one line and returns the response.
    pub(crate) fn ask(&mut self, message: &Value) -> Value {
        self.say(&format!("{message}\n"));
        self.answer().unwrap()
    }
}

/// Polls until the condition holds; if it never does, the test runner's time limit fails the test.
/// The pauses leave the processor to others.
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let mut pause = Duration::from_millis(1);
    while !holds() {
        thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}
