//! One running client and the conversation with it.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use claude_mem_events::FailureClass;
use serde_json::{Value, json};

use super::{
    launch::{self, LaunchConfig},
    stream::{Step, Turn},
};
use crate::providers::{Cancel, REPLY_BYTES_MAX, Refusal, Request, Response};
use claude_mem_core::os::{ARGUMENT_BYTES_MAX, ProcessTree, watched};

/// Maximum size of one message of the client. A message contains a complete response, and JSON
/// escapes can double its size.
const LINE_BYTES_MAX: u64 = 2 * REPLY_BYTES_MAX as u64;

/// Capacity of the message channel. The client blocks while it is full.
const LINES_MAX: usize = 16;

const STDERR_BYTES_MAX: usize = 8 << 10;

/// A client exits within 0.1 s after its stdin is closed, and sooner when killed.
const EXIT_TIME_MAX: Duration = Duration::from_secs(1);

const CANCEL_POLL: Duration = Duration::from_millis(100);

/// Options of a child. It serves only requests with the same options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChildSpec {
    content_session: String,
    model: String,
    system: String,
    tokens_out_max: u32,
}

impl ChildSpec {
    pub(super) fn of(request: &Request) -> Self {
        Self {
            content_session: request.content_session.clone(),
            model: request.model.clone(),
            system: request.system.clone(),
            tokens_out_max: request.limits.tokens_out_max,
        }
    }
}

/// An idle client. Killed with all its descendants when dropped.
pub(super) struct Child {
    process: std::process::Child,
    process_tree: ProcessTree,
    /// Taken to close the client's stdin.
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Line>,
    stderr: Arc<Mutex<Vec<u8>>>,
    stderr_thread: Option<JoinHandle<()>>,
    spec: ChildSpec,
    memory_session_id: Option<String>,
    /// Dollars since the start of the client, as it reports them.
    paid: f64,
    /// Requests completed.
    pub(super) turns: u32,
}

enum Line {
    Message(Value),
    TooLong,
}

impl Child {
    /// Starts a client. It prints nothing before the first request, so only that shows whether it
    /// works.
    pub(super) fn start(config: &LaunchConfig, spec: &ChildSpec) -> Result<Self, Refusal> {
        if spec.system.len() > ARGUMENT_BYTES_MAX {
            let why = format!("the instructions are longer than {ARGUMENT_BYTES_MAX} bytes");
            return Err(Refusal::of_settings(why));
        }
        let mut command = watched(&config.launcher, &config.executable);
        command.args(launch::arguments(&spec.model, &spec.system));
        command.env_clear().envs(config.environment.iter().map(|(name, value)| (name, value)));
        command.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", spec.tokens_out_max.to_string());
        command.current_dir(&config.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut process, process_tree) = ProcessTree::start(&mut command).map_err(|error| {
            let program = config.executable.display();
            Refusal::of_settings(format!("{program} cannot be started: {error}"))
        })?;
        let (input, output) = (writer(process.stdin.take()), reader(process.stdout.take()));
        let stderr = Arc::default();
        let stderr_thread = stderr_reader(process.stderr.take(), &stderr);
        Ok(Self {
            process,
            process_tree,
            input: Some(input),
            output,
            stderr,
            stderr_thread: Some(stderr_thread),
            spec: spec.clone(),
            memory_session_id: None,
            paid: 0.0,
            turns: 0,
        })
    }

    /// Whether the request continues the conversation of this child.
    pub(super) fn can_continue(&self, request: &Request) -> bool {
        request.resume.is_some()
            && request.resume == self.memory_session_id
            && self.spec == ChildSpec::of(request)
    }

    /// One turn: a message, then everything up to its `result`.
    pub(super) fn send(
        &mut self,
        request: &Request,
        deadline: Instant,
    ) -> Result<Response, Refusal> {
        let began = Instant::now();
        // Messages between two turns belong to neither.
        for _ in 0..=LINES_MAX {
            if self.output.try_recv().is_err() {
                break;
            }
        }
        self.write(&message(request, self.turns == 0));
        let mut turn = Turn::new(self.paid, request.limits.tokens_out_max);
        loop {
            if request.cancel.is_cancelled() {
                return Err(Cancel::refusal());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.output.recv_timeout(left.min(CANCEL_POLL)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if left > CANCEL_POLL => continue,
                Err(RecvTimeoutError::Timeout) => return Err(turn.timed_out(began.elapsed())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(&turn)),
            };
            let Line::Message(line) = line else {
                return Err(Refusal::too_large("claude"));
            };
            match turn.take(&line) {
                Step::More => {}
                Step::Refused(refusal) => return Err(refusal),
                Step::Answered(done) => {
                    self.turns += 1;
                    self.paid = done.paid;
                    self.memory_session_id.clone_from(&done.response.memory_session_id);
                    return Ok(Response { duration: began.elapsed(), ..done.response });
                }
            }
        }
    }

    /// Closes stdin, so that an idle client exits by itself.
    pub(super) fn end(mut self) {
        self.input = None;
        self.wait_for_exit();
    }

    /// Waits until the client and its descendants have closed stdout.
    fn wait_for_exit(&self) {
        let deadline = Instant::now() + EXIT_TIME_MAX;
        let left = || deadline.saturating_duration_since(Instant::now());
        while self.output.recv_timeout(left()).is_ok() {}
    }

    fn write(&self, message: &Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        // If the writer is gone, so is the client, and the missing response shows it.
        let _ = self.input.as_ref().map(|input| input.send(bytes));
    }

    /// The client exited within a turn.
    fn ended(&mut self, turn: &Turn) -> Refusal {
        let status = self.kill();
        if let Some(stderr_thread) = self.stderr_thread.take() {
            drop(stderr_thread.join());
        }
        let stderr = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = String::from_utf8_lossy(&stderr);
        let last_line = stderr.lines().rfind(|line| !line.trim().is_empty());
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let why = match last_line {
            Some(last_line) => format!("claude exited ({status}): {last_line}"),
            None => format!("claude exited without a response ({status})"),
        };
        // A client that never started a turn has the wrong version or is another program.
        if turn.has_begun() || self.turns > 0 {
            Refusal::new(FailureClass::Transient, why)
        } else {
            Refusal::of_settings(why)
        }
    }

    fn kill(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.process.try_wait()? {
            return Ok(status);
        }
        self.process_tree.end();
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.kill();
        self.wait_for_exit();
    }
}

/// The data is never the last block: there the client reads files for `@path`, runs commands for
/// `/name` and interprets keywords.
fn message(request: &Request, is_first: bool) -> Value {
    let digest = is_first.then_some(request.digest.as_str());
    let parts = digest.into_iter().chain([request.text.as_str()]);
    let mut content: Vec<Value> = parts
        .filter(|part| !part.trim().is_empty())
        .map(|part| json!({"type": "text", "text": part}))
        .collect();
    content.push(json!({"type": "text", "text": last_block(&request.closing)}));
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "message": message, "parent_tool_use_id": null, "client_composed": true})
}

/// The last block must not be empty.
fn last_block(closing: &str) -> &str {
    if closing.trim().is_empty() { "Answer now." } else { closing }
}

/// Writes on its own thread, so that a client that does not read cannot block us beyond the time
/// limit.
fn writer(stdin: Option<ChildStdin>) -> Sender<Vec<u8>> {
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    thread::spawn(move || {
        let Some(mut stdin) = stdin else { return };
        for bytes in receiver {
            if stdin.write_all(&bytes).and_then(|()| stdin.flush()).is_err() {
                return;
            }
        }
    });
    sender
}

/// Reads the client's output. The channel closes when the client and all processes that inherited
/// its stdout have exited.
fn reader(stdout: Option<ChildStdout>) -> Receiver<Line> {
    let (sender, receiver) = mpsc::sync_channel(LINES_MAX);
    thread::spawn(move || {
        let Some(stdout) = stdout else { return };
        let mut stdout = BufReader::new(stdout);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let read = stdout.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes);
            if !matches!(read, Ok(1..)) {
                return;
            }
            let is_too_long = bytes.len() as u64 == LINE_BYTES_MAX && !bytes.ends_with(b"\n");
            let line = match serde_json::from_slice(&bytes) {
                Ok(message) => Line::Message(message),
                Err(_) if is_too_long => Line::TooLong,
                // Stray text on stdout, or a partial line of a killed client.
                Err(_) => continue,
            };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn stderr_reader(stderr: Option<ChildStderr>, into: &Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    let into = Arc::clone(into);
    thread::spawn(move || {
        let Some(mut stderr) = stderr else { return };
        let mut piece = [0; 1024];
        while let Ok(read @ 1..) = stderr.read(&mut piece) {
            let mut kept = into.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend_from_slice(&piece[..read]);
            let excess = kept.len().saturating_sub(STDERR_BYTES_MAX);
            kept.drain(..excess);
        }
    })
}
