//! `worker.sock`: JSON lines for programs that are not hooks, and for hooks that request a ranking.
//!
//! Each line is an object with a `type`, and gets one line in response, in order. Events are
//! captured and redacted like hook payloads, and are on disk before the response. Lines that arrive
//! together are appended together.
//!
//! At the limit, a new connection replaces the one that has been idle longest, or waits while all
//! are busy. So programs that leave connections open block neither commands nor hooks.

use std::{
    io,
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use claude_mem_events::{Envelope, Event, Id};
use memchr::memchr;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
};

use super::recall::RecallMessage;
use crate::shared::{Shared, health::Health};
use claude_mem_capture::{
    CLAUDE_CODE, Captured, IncomingKind,
    external::{ExternalEvent, Message, accept},
    project::ProjectId,
};
use claude_mem_core::os::{self, Listener, Listening};
use claude_mem_privacy::{Policy, redact_text};

/// The stream socket in the data directory. The wake socket is `worker.wake`.
pub(super) const SOCKET: &str = "worker.sock";
/// Maximum number of connections.
const CONNECTIONS_MAX: usize = 64;
/// Maximum length of a line; longer ones are skipped with an error.
const LINE_BYTES_MAX: usize = 8 << 20;
/// Maximum response time of a healthy worker.
const RESPONSE_MAX: Duration = Duration::from_secs(5);
/// Minimum time after a response after which a connection can be closed for another.
const IDLE_TIME_MIN: Duration = Duration::from_secs(1);
/// Maximum time for which a program reads nothing of a response.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum number of lines per append.
const TOGETHER_MAX: usize = 64;
/// Size of the read buffer. Pipelined lines are appended together as far as they fit: about thirty
/// of 4 KB. Only the used part takes memory.
const READ_BYTES: usize = 128 << 10;

/// Creates the socket in the current directory.
pub(super) fn listen_here() -> io::Result<Listener> {
    Listener::here(SOCKET)
}

/// Sends one line to the worker of this data directory and returns its response.
pub fn ask(data: &Path, message: &Value) -> io::Result<Value> {
    let answer = os::ask(data, SOCKET, &message.to_string(), RESPONSE_MAX)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Serves connections until the worker stops.
pub(super) async fn serve(mut listening: Listening, shared: Arc<Shared>) {
    let slots = Arc::new(Slots::new());
    loop {
        let Ok((reader, writer)) = listening.accept().await else {
            // Probably too many open files, which is temporary.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let Some((connection, place)) = slots.take().await else { return };
        let (shared, slots) = (Arc::clone(&shared), Arc::clone(&slots));
        tokio::spawn(async move {
            tokio::select! {
                // A program may disconnect in the middle of a line.
                _ = talk(reader, writer, &shared, |activity| slots.note(&connection, activity)) => {}
                () = connection.closing.notified() => {}
            }
            slots.release(&connection);
            drop(place);
        });
    }
}

#[derive(Debug, Default)]
struct Connection {
    /// Milliseconds from `Slots::start` to its last response, or [`BUSY`].
    idle_since_ms: AtomicU64,
    closing: Notify,
}

impl Connection {
    fn idle_since(&self) -> Duration {
        Duration::from_millis(self.idle_since_ms.load(Ordering::Relaxed))
    }
}

/// A line is being processed. Closing the connection now would lose its response.
const BUSY: u64 = u64::MAX;

#[derive(Debug, Clone, Copy)]
enum Activity {
    Busy,
    Idle,
}

/// All open connections.
#[derive(Debug)]
struct Slots {
    free: Arc<Semaphore>,
    open: Mutex<Vec<Arc<Connection>>>,
    start: Instant,
}

impl Slots {
    fn new() -> Self {
        let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        Self { free, open: Mutex::default(), start: Instant::now() }
    }

    /// Takes a slot, if necessary from the connection that has been idle longest. Waits while none
    /// is idle.
    async fn take(&self) -> Option<(Arc<Connection>, OwnedSemaphorePermit)> {
        let place = loop {
            let free = Arc::clone(&self.free).acquire_owned();
            if self.free.available_permits() > 0 {
                break free.await.ok()?;
            }
            let idlest = self.open().iter().min_by_key(|open| open.idle_since()).map(Arc::clone);
            let busy = idlest.as_ref().map_or(IDLE_TIME_MIN, |idlest| {
                let until = idlest.idle_since() + IDLE_TIME_MIN;
                until.saturating_sub(self.start.elapsed()).min(IDLE_TIME_MIN)
            });
            if let Some(idlest) = idlest.filter(|_| busy.is_zero()) {
                idlest.closing.notify_one();
                break free.await.ok()?;
            }
            if let Ok(place) = tokio::time::timeout(busy, free).await {
                break place.ok()?;
            }
        };
        let connection = Arc::new(Connection::default());
        self.note(&connection, Activity::Idle);
        self.open().push(Arc::clone(&connection));
        Some((connection, place))
    }

    fn note(&self, connection: &Connection, activity: Activity) {
        let idle_since_ms = match activity {
            Activity::Busy => BUSY,
            Activity::Idle => self.start.elapsed().as_millis() as u64,
        };
        connection.idle_since_ms.store(idle_since_ms, Ordering::Relaxed);
    }

    fn release(&self, connection: &Arc<Connection>) {
        self.open().retain(|open| !Arc::ptr_eq(open, connection));
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A parsed line, before anything is appended.
enum ParsedLine {
    /// Events to append and acknowledge.
    Facts(Vec<(Envelope, Event)>),
    /// A response.
    Response(Value),
    /// A health request.
    Health,
    /// A request for the memories relevant to a prompt.
    Recall(RecallMessage<'static>),
}

async fn talk(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    shared: &Arc<Shared>,
    note: impl Fn(Activity),
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    let mut line = Vec::new();
    loop {
        let mut parsed = Vec::new();
        loop {
            let is_whole = read_line(&mut reader, &mut line).await?;
            if line.is_empty() {
                return Ok(());
            }
            if let Some(one) = parse_line(shared, &line, is_whole) {
                parsed.push(one);
            }
            let has_more = reader.buffer().contains(&b'\n');
            if !has_more || parsed.len() >= TOGETHER_MAX {
                break;
            }
        }
        shared.touch();
        note(Activity::Busy);
        let response = answer(shared, parsed).await;
        tokio::time::timeout(WRITE_TIME_MAX, writer.write_all(response.as_bytes())).await??;
        note(Activity::Idle);
    }
}

/// Reads one line with its end, or the rest of the stream. Returns whether it is complete: a line
/// that is too long is cut.
async fn read_line(
    reader: &mut (impl AsyncBufReadExt + Unpin),
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    let mut is_whole = true;
    loop {
        let buffer = reader.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(is_whole);
        }
        let end = memchr(b'\n', buffer).map(|at| at + 1);
        let taken = end.unwrap_or(buffer.len());
        if line.len() + taken <= LINE_BYTES_MAX {
            line.extend_from_slice(&buffer[..taken]);
        } else {
            is_whole = false;
        }
        reader.consume(taken);
        if end.is_some() {
            if line.is_empty() {
                line.push(b'\n');
            }
            return Ok(is_whole);
        }
    }
}

/// Appends all events at once, and responds to each line.
async fn answer(shared: &Arc<Shared>, parsed: Vec<ParsedLine>) -> String {
    let mut facts = Vec::new();
    let mut counts: Vec<Result<usize, Value>> = Vec::new();
    for one in parsed {
        counts.push(match one {
            ParsedLine::Facts(of_line) => {
                let count = of_line.len();
                facts.extend(of_line);
                Ok(count)
            }
            ParsedLine::Response(answer) => Err(answer),
            ParsedLine::Health => Err(health(shared).await),
            ParsedLine::Recall(message) => Err(message.answer(shared).await),
        });
    }
    let appended = if facts.is_empty() { Ok(Vec::new()) } else { shared.append_all(facts).await };
    let mut ids = appended.as_deref().unwrap_or_default().iter();
    let mut text = String::new();
    for count in counts {
        let answer = match (count, &appended) {
            (Err(answer), _) => answer,
            (Ok(count), Ok(_)) => {
                let ids: Vec<String> = ids.by_ref().take(count).map(Id::to_string).collect();
                json!({"status": "recorded", "events": ids})
            }
            (Ok(_), Err(error)) => failed(&format!("the event could not be recorded: {error}")),
        };
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    text
}

/// None for an empty line.
fn parse_line(shared: &Arc<Shared>, line: &[u8], is_whole: bool) -> Option<ParsedLine> {
    if line.trim_ascii().is_empty() && is_whole {
        return None;
    }
    if !is_whole {
        let error = format!("the line is longer than {LINE_BYTES_MAX} bytes");
        return Some(ParsedLine::Response(failed(&error)));
    }
    let parsed = match std::str::from_utf8(line) {
        Ok(line) => of_line(shared, line),
        Err(error) => Err(format!("the line is not UTF-8 (from byte {})", error.valid_up_to())),
    };
    Some(parsed.unwrap_or_else(|error| ParsedLine::Response(failed(&error))))
}

fn of_line(shared: &Arc<Shared>, line: &str) -> Result<ParsedLine, String> {
    let mut message = Message::read(line)?;
    let kind = message.take("type").ok_or("`type` is missing")?;
    match &*kind {
        "session" => facts(shared, &[IncomingKind::SessionStart], message),
        "prompt" => facts(shared, &[IncomingKind::Prompt], message),
        "observation" => facts(shared, &[IncomingKind::ToolUse], message),
        "summarize" => facts(shared, &[IncomingKind::Stop], message),
        // With a last message the turn is summarized; without, only the session ends.
        "finalize" if message.has("last_assistant_message") => {
            facts(shared, &[IncomingKind::Stop, IncomingKind::SessionEnd], message)
        }
        "finalize" => facts(shared, &[IncomingKind::SessionEnd], message),
        "ping" => Ok(ParsedLine::Response(json!({
            "status": "ok",
            "version": shared.instance.version,
            "instance": shared.instance.run_id,
            "pid": shared.instance.pid,
        }))),
        "health" => Ok(ParsedLine::Health),
        "recall" => RecallMessage::read(line).map(ParsedLine::Recall),
        "stop" => {
            shared.end();
            Ok(ParsedLine::Response(json!({"status": "ending"})))
        }
        other => Err(format!("there is no type `{}`", other.escape_debug())),
    }
}

fn facts(
    shared: &Arc<Shared>,
    kinds: &[IncomingKind],
    mut message: Message<'_>,
) -> Result<ParsedLine, String> {
    let named =
        ["session_id", "content_session_id", "contentSessionId"].map(|name| message.take(name));
    let session = named.into_iter().flatten().next().ok_or("`session_id` is missing")?;
    let client = message.take("platform");
    // Without a folder the event belongs to the project of its session. The folder is redacted
    // first, as in hooks: after splitting, its last part alone no longer shows that it contains a
    // password.
    let cwd = message.peek("cwd").map(|cwd| redact_text(&cwd, Policy::default()).text);
    let project = cwd.map_or_else(ProjectId::of_session, |cwd| ProjectId::of(Path::new(&cwd)));
    let (mut facts, mut skipped) = (Vec::new(), None);
    let recorder = shared.recorder.current();
    for &kind in kinds {
        let event = ExternalEvent {
            kind,
            session: &session,
            message: message.clone(),
            client: client.as_deref().unwrap_or(CLAUDE_CODE.name),
            project: project.clone(),
        };
        match accept(&recorder, event)? {
            Captured::Event { envelope, event } => facts.push((envelope, event)),
            Captured::Skipped(skip) => skipped = Some(skip.reason()),
        }
    }
    Ok(match facts.is_empty() {
        true => ParsedLine::Response(json!({"status": "skipped", "reason": skipped})),
        false => ParsedLine::Facts(facts),
    })
}

async fn health(shared: &Arc<Shared>) -> Value {
    let of_thread = Arc::clone(shared);
    let looked = tokio::task::spawn_blocking(move || Health::look(&of_thread)).await;
    match looked.map(serde_json::to_value) {
        Ok(Ok(health)) => health,
        _ => failed("the health check failed"),
    }
}

pub(super) fn failed(error: &str) -> Value {
    json!({"status": "error", "error": error})
}
