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
    stream::{Step, Turn},
    world::{self, World},
};
use crate::providers::{Answer, Ask, Cancel, REPLY_BYTES_MAX, Refusal};
use claude_mem_core::os::{ARGUMENT_BYTES_MAX, ProcessTree, watched};

/// One message of the client; a whole answer is in one, and as JSON it is up to twice as long.
const LINE_BYTES_MAX: u64 = 2 * REPLY_BYTES_MAX as u64;

/// Capacity of the message channel. The client blocks while it is full.
const LINES_MAX: usize = 16;

/// What the client complains about is kept up to here.
const STDERR_BYTES_MAX: usize = 8 << 10;

/// A client whose stdin is closed ends by itself within a tenth of a second; one that is killed, sooner.
const FAREWELL_MAX: Duration = Duration::from_secs(1);

/// Between two looks whether the question was cancelled.
const CANCEL_LOOK: Duration = Duration::from_millis(100);

/// What a child is started for. It serves no question that differs in any of this.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    content_session: String,
    model: String,
    system: String,
    tokens_out_max: u32,
}

impl Start {
    pub(super) fn of(question: &Ask) -> Self {
        Self {
            content_session: question.content_session.clone(),
            model: question.model.clone(),
            system: question.system.clone(),
            tokens_out_max: question.limits.tokens_out_max,
        }
    }
}

/// A client that waits for a question. Dropped, it is killed with all that it started.
pub(super) struct Child {
    process: std::process::Child,
    family: ProcessTree,
    /// Taken to say that nothing more comes.
    input: Option<Sender<Vec<u8>>>,
    output: Receiver<Line>,
    complaints: Arc<Mutex<Vec<u8>>>,
    complaining: Option<JoinHandle<()>>,
    started_for: Start,
    memory_session_id: Option<String>,
    /// Dollars; the client tells what it has cost since it was started.
    paid: f64,
    /// Questions answered.
    pub(super) turns: u32,
}

enum Line {
    Message(Value),
    TooLong,
}

impl Child {
    /// Starts a client. It says nothing before it is asked, so that whether it works is known only then.
    pub(super) fn start(world: &World, start: &Start) -> Result<Self, Refusal> {
        if start.system.len() > ARGUMENT_BYTES_MAX {
            let why = format!("the instructions are longer than {ARGUMENT_BYTES_MAX} bytes");
            return Err(Refusal::of_settings(why));
        }
        let mut command = watched(&world.launcher, &world.executable);
        command.args(world::arguments(&start.model, &start.system));
        command.env_clear().envs(world.environment.iter().map(|(name, value)| (name, value)));
        command.env("CLAUDE_CODE_MAX_OUTPUT_TOKENS", start.tokens_out_max.to_string());
        command.current_dir(&world.cwd);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut process, family) = ProcessTree::start(&mut command).map_err(|error| {
            let program = world.executable.display();
            Refusal::of_settings(format!("{program} cannot be started: {error}"))
        })?;
        let (input, output) = (writer(process.stdin.take()), reader(process.stdout.take()));
        let complaints = Arc::default();
        let complaining = listener(process.stderr.take(), &complaints);
        Ok(Self {
            process,
            family,
            input: Some(input),
            output,
            complaints,
            complaining: Some(complaining),
            started_for: start.clone(),
            memory_session_id: None,
            paid: 0.0,
            turns: 0,
        })
    }

    /// Whether this is the conversation the question belongs to.
    pub(super) fn can_go_on_with(&self, question: &Ask) -> bool {
        question.resume.is_some()
            && question.resume == self.memory_session_id
            && self.started_for == Start::of(question)
    }

    /// One turn: a message, then everything up to its `result`.
    pub(super) fn ask(&mut self, question: &Ask, deadline: Instant) -> Result<Answer, Refusal> {
        let began = Instant::now();
        // What came between two turns belongs to neither.
        for _ in 0..=LINES_MAX {
            if self.output.try_recv().is_err() {
                break;
            }
        }
        self.send(&message(question, self.turns == 0));
        let mut turn = Turn::new(self.paid, question.limits.tokens_out_max);
        loop {
            if question.cancel.is_cancelled() {
                return Err(Cancel::refusal());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let line = match self.output.recv_timeout(left.min(CANCEL_LOOK)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Timeout) if left > CANCEL_LOOK => continue,
                Err(RecvTimeoutError::Timeout) => return Err(turn.timed_out(began.elapsed())),
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended(&turn)),
            };
            let Line::Message(line) = line else {
                return Err(Refusal::too_large("claude"));
            };
            match turn.take(&line) {
                Step::More => {}
                Step::Refused(refusal) => return Err(refusal),
                Step::Answered(said) => {
                    self.turns += 1;
                    self.paid = said.paid;
                    self.memory_session_id.clone_from(&said.answer.memory_session_id);
                    return Ok(Answer { duration: began.elapsed(), ..said.answer });
                }
            }
        }
    }

    /// Lets an idle client go: it ends by itself when told that nothing more comes.
    pub(super) fn end(mut self) {
        self.input = None;
        self.await_silence();
    }

    /// Waits until nobody is left who could say anything.
    fn await_silence(&self) {
        let deadline = Instant::now() + FAREWELL_MAX;
        let left = || deadline.saturating_duration_since(Instant::now());
        while self.output.recv_timeout(left()).is_ok() {}
    }

    fn send(&self, message: &Value) {
        let mut bytes = message.to_string().into_bytes();
        bytes.push(b'\n');
        // If the writer is gone so is the client, and the missing answer tells.
        let _ = self.input.as_ref().map(|input| input.send(bytes));
    }

    /// The client ended in the middle of a turn.
    fn ended(&mut self, turn: &Turn) -> Refusal {
        let status = self.kill();
        if let Some(complaining) = self.complaining.take() {
            drop(complaining.join());
        }
        let complaints = self.complaints.lock().unwrap_or_else(PoisonError::into_inner);
        let complaints = String::from_utf8_lossy(&complaints);
        let complaint = complaints.lines().rfind(|line| !line.trim().is_empty());
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let why = match complaint {
            Some(complaint) => format!("claude ended ({status}): {complaint}"),
            None => format!("claude ended without an answer ({status})"),
        };
        // A client that never began does not understand us, or is none.
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
        self.family.end();
        self.process.wait()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.kill();
        self.await_silence();
    }
}

/// The data is never the last block: in that one the client reads files for `@path`, runs commands for
/// `/name` and heeds magic words.
fn message(question: &Ask, is_first: bool) -> Value {
    let digest = is_first.then_some(question.digest.as_str());
    let parts = digest.into_iter().chain([question.text.as_str()]);
    let mut content: Vec<Value> = parts
        .filter(|part| !part.trim().is_empty())
        .map(|part| json!({"type": "text", "text": part}))
        .collect();
    content.push(json!({"type": "text", "text": last_block(&question.closing)}));
    let message = json!({"role": "user", "content": content});
    json!({"type": "user", "message": message, "parent_tool_use_id": null, "client_composed": true})
}

/// Some last words there must be.
fn last_block(closing: &str) -> &str {
    if closing.trim().is_empty() { "Answer now." } else { closing }
}

/// Writes on a thread of its own, so that a client that does not read cannot keep us beyond the limit.
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

/// The channel closes when the client, and all that holds its output, has ended.
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
                // A stray word on stdout, or half a line of a client that was killed.
                Err(_) => continue,
            };
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn listener(stderr: Option<ChildStderr>, into: &Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
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
