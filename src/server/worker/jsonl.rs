//! `worker.sock`: JSON lines for programs that are not hooks.
//!
//! Each line is an object with a `type`, each gets one line for an answer, in order. What is told goes the way
//! of what hooks are given, privacy included, and is on disk before the answer. Lines that come together are
//! appended together.

use std::{io, path::Path, sync::Arc, time::Duration};

use claude_mem_events::{Envelope, Event, Id};
use memchr::memchr;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Semaphore,
};

use crate::shared::{Shared, health::Health};
use claude_mem_capture::{
    CLAUDE_CODE, Captured, IncomingKind,
    external::{ExternalEvent, Message, accept},
    project::ProjectId,
};
use claude_mem_core::os::{self, Listener, Listening};

/// The stream socket in the data directory. The one for wake-ups is `worker.wake`.
pub(super) const SOCKET: &str = "worker.sock";
/// Programs that may be connected; others wait until one leaves.
const CONNECTIONS_MAX: usize = 64;
/// A longer line is an error, and is skipped. Hooks cut what tools say long before.
const LINE_BYTES_MAX: usize = 8 << 20;
/// How long an answer may take of a worker that is well.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Lines that are appended together at most.
const TOGETHER_MAX: usize = 64;
/// What is read at once. Whoever says many lines before it waits has them appended together as far as they fit:
/// thirty or so of 4 KB. Only what is used of it takes memory.
const READ_BYTES: usize = 128 << 10;

/// Makes the socket in the directory that this process stands in.
pub(super) fn listen_here() -> io::Result<Listener> {
    Listener::here(SOCKET)
}

/// Says one line to the worker of this data directory and returns what it answers.
pub fn ask(data: &Path, message: &Value) -> io::Result<Value> {
    let answer = os::ask(data, SOCKET, &message.to_string(), ANSWER_MAX)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Answers whoever connects, until the worker ends.
pub(super) async fn serve(mut listening: Listening, shared: Arc<Shared>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while let Ok(place) = Arc::clone(&room).acquire_owned().await {
        let Ok((reader, writer)) = listening.accept().await else {
            // Too many open files, most likely. They become fewer by and by.
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            // A program that goes away in the middle of a line has its reasons.
            let _ = talk(reader, writer, &shared).await;
            drop(place);
        });
    }
}

/// What a line came to, before anything is appended.
enum Understood {
    /// Events to append, and then to acknowledge.
    Facts(Vec<(Envelope, Event)>),
    /// An answer.
    Answer(Value),
    /// It wants to know how the worker is.
    Health,
}

async fn talk(
    reader: impl AsyncRead + Unpin,
    mut writer: impl AsyncWrite + Unpin,
    shared: &Arc<Shared>,
) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(READ_BYTES, reader);
    let mut line = Vec::new();
    loop {
        let mut understood = Vec::new();
        loop {
            let is_whole = read_line(&mut reader, &mut line).await?;
            if line.is_empty() {
                return Ok(());
            }
            if let Some(one) = understand(shared, &line, is_whole) {
                understood.push(one);
            }
            let has_more = reader.buffer().contains(&b'\n');
            if !has_more || understood.len() >= TOGETHER_MAX {
                break;
            }
        }
        shared.touch();
        writer.write_all(answer(shared, understood).await.as_bytes()).await?;
    }
}

/// Reads one line with its end, or what there is at the end of the stream. Says whether it is whole: of one
/// that is too long only the beginning is kept.
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

/// Appends all that is to be appended at once, and answers each line.
async fn answer(shared: &Arc<Shared>, understood: Vec<Understood>) -> String {
    let mut facts = Vec::new();
    let mut counts: Vec<Result<usize, Value>> = Vec::new();
    for one in understood {
        counts.push(match one {
            Understood::Facts(of_line) => {
                let count = of_line.len();
                facts.extend(of_line);
                Ok(count)
            }
            Understood::Answer(answer) => Err(answer),
            Understood::Health => Err(health(shared).await),
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
            (Ok(_), Err(error)) => failed(&format!("it could not be recorded: {error}")),
        };
        text.push_str(&answer.to_string());
        text.push('\n');
    }
    text
}

/// Nothing, of an empty line.
fn understand(shared: &Arc<Shared>, line: &[u8], is_whole: bool) -> Option<Understood> {
    if line.trim_ascii().is_empty() && is_whole {
        return None;
    }
    if !is_whole {
        let error = format!("a line may have {LINE_BYTES_MAX} bytes");
        return Some(Understood::Answer(failed(&error)));
    }
    let understood = match std::str::from_utf8(line) {
        Ok(line) => of_line(shared, line),
        Err(error) => Err(format!("it is not UTF-8 (from byte {} on)", error.valid_up_to())),
    };
    Some(understood.unwrap_or_else(|error| Understood::Answer(failed(&error))))
}

fn of_line(shared: &Arc<Shared>, line: &str) -> Result<Understood, String> {
    let mut message = Message::read(line)?;
    let kind = message.take("type").ok_or("it has no `type`")?;
    match &*kind {
        "session" => facts(shared, &[IncomingKind::SessionStart], message),
        "prompt" => facts(shared, &[IncomingKind::Prompt], message),
        "observation" => facts(shared, &[IncomingKind::ToolUse], message),
        "summarize" => facts(shared, &[IncomingKind::Stop], message),
        // With last words a summary is due; without, the end of the session is reason enough.
        "finalize" if message.has("last_assistant_message") => {
            facts(shared, &[IncomingKind::Stop, IncomingKind::SessionEnd], message)
        }
        "finalize" => facts(shared, &[IncomingKind::SessionEnd], message),
        "ping" => Ok(Understood::Answer(json!({
            "status": "ok",
            "version": shared.presence.version,
            "instance": shared.presence.instance,
            "pid": shared.presence.pid,
        }))),
        "health" => Ok(Understood::Health),
        "stop" => {
            shared.end();
            Ok(Understood::Answer(json!({"status": "ending"})))
        }
        other => Err(format!("there is no type `{}`", other.escape_debug())),
    }
}

fn facts(
    shared: &Arc<Shared>,
    kinds: &[IncomingKind],
    mut message: Message<'_>,
) -> Result<Understood, String> {
    let named =
        ["session_id", "content_session_id", "contentSessionId"].map(|name| message.take(name));
    let session = named.into_iter().flatten().next().ok_or("it has no `session_id`")?;
    let client = message.take("platform");
    // Without a folder it belongs to the project of its session.
    let cwd = message.peek("cwd");
    let project = cwd.map_or_else(ProjectId::of_session, |cwd| ProjectId::of(Path::new(&*cwd)));
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
        true => Understood::Answer(json!({"status": "skipped", "reason": skipped})),
        false => Understood::Facts(facts),
    })
}

async fn health(shared: &Arc<Shared>) -> Value {
    let of_thread = Arc::clone(shared);
    let looked = tokio::task::spawn_blocking(move || Health::look(&of_thread)).await;
    match looked.map(serde_json::to_value) {
        Ok(Ok(health)) => health,
        _ => failed("how it is could not be found out"),
    }
}

fn failed(error: &str) -> Value {
    json!({"status": "error", "error": error})
}
