//! A storm of events through `worker.sock`, and the check that all of them are indexed.
//!
//! Clients send lines to one worker as fast as it accepts them, while it indexes them. At the end the log and the
//! tables must contain the same events: each acknowledged one exactly once.

use std::{
    collections::HashSet,
    error::Error,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use claude_mem_events::{EventItem, EventReader, Seq};
use claude_mem_log::{Log, Options};
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value, json};

/// Options of the storm.
#[derive(Debug, Clone)]
pub struct SocketStorm {
    /// The `claude-mem` program.
    pub program: PathBuf,
    /// An empty directory, used as the home directory.
    pub home: PathBuf,
    /// Number of events to send.
    pub events: u64,
    /// Number of concurrent clients.
    pub connections: u64,
}

/// The result.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Events that the worker acknowledged.
    pub acknowledged: u64,
    /// Events in the log.
    pub in_log: usize,
    /// Events in the tables.
    pub in_tables: usize,
    /// Events in the log that are not in the tables, or vice versa.
    pub different: usize,
    /// Damaged places, according to the tables.
    pub gaps: u64,
}

impl Outcome {
    /// Whether log and tables are equal and nothing that was acknowledged is missing.
    pub fn is_good(&self) -> bool {
        self.different == 0 && self.gaps == 0 && self.in_log as u64 == self.acknowledged
    }
}

/// Lines that a client pipelines.
const PIPELINED: u64 = 64;
/// Time limit for the start of the worker, and for indexing all events.
const PATIENCE: Duration = Duration::from_secs(900);
const PAUSE: Duration = Duration::from_millis(100);

/// Sends everything, waits until it is indexed, stops the worker and compares.
pub fn storm(storm: &SocketStorm) -> Result<Outcome, Box<dyn Error>> {
    let data = storm.home.join(".claude-mem");
    let mut worker = start(storm)?;
    let socket = data.join("worker.sock");
    until("the worker to start", || UnixStream::connect(&socket).is_ok())?;
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        let senders: Vec<_> = (0..storm.connections)
            .map(|number| {
                let (socket, acknowledged) = (&socket, &acknowledged);
                let share = storm.events / storm.connections
                    + u64::from(number < storm.events % storm.connections);
                scope.spawn(move || {
                    send(socket, number, share, acknowledged).map_err(|error| error.to_string())
                })
            })
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().map_err(|_| "panic")?)
    })?;
    until("everything to be folded", || {
        ask(&socket, &json!({"type": "health"}))
            .is_ok_and(|health| health["unfolded"]["events"] == 0)
    })?;
    ask(&socket, &json!({"type": "stop"}))?;
    worker.0.wait()?;
    compare(&data, acknowledged.into_inner())
}

/// Killed when dropped.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(storm: &SocketStorm) -> std::io::Result<Worker> {
    fs::create_dir_all(&storm.home)?;
    let mut command = Command::new(&storm.program);
    command.args(["worker", "run"]).env_clear().current_dir(&storm.home);
    command.env("HOME", &storm.home).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_MEM_WORKER_PORT", "0").env("CLAUDE_MEM_PROVIDER", "extract");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Worker)
}

/// Sends `count` prompts of one session after another over one connection.
fn send(
    socket: &Path,
    number: u64,
    count: u64,
    acknowledged: &AtomicU64,
) -> Result<(), Box<dyn Error>> {
    let mut stream = UnixStream::connect(socket)?;
    let mut answers = BufReader::new(stream.try_clone()?);
    let mut sent = 0;
    let mut lines = String::new();
    let mut answer = String::new();
    while sent < count {
        let together = PIPELINED.min(count - sent);
        lines.clear();
        for event in sent..sent + together {
            let session = format!("storm-{number}-{}", event / 1000);
            let line =
                json!({"type": "prompt", "session_id": session, "prompt": text(number, event)});
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        stream.write_all(lines.as_bytes())?;
        for _ in 0..together {
            answer.clear();
            answers.read_line(&mut answer)?;
            if !answer.contains("\"recorded\"") {
                return Err(format!("the worker answered {answer:?}").into());
            }
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        sent += together;
    }
    Ok(())
}

/// Mostly some hundred bytes; one in a hundred is longer than several memory pages, which makes a partial read
/// likely.
fn text(number: u64, event: u64) -> String {
    let mixed = (number << 32 | event).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let len = if mixed.is_multiple_of(100) { 8_000 + mixed % 20_000 } else { 20 + mixed % 500 };
    let word = format!("prompt {event} of {number} ");
    word.repeat(len as usize / word.len() + 1)
}

fn ask(socket: &Path, message: &Value) -> Result<Value, Box<dyn Error>> {
    let mut stream = UnixStream::connect(socket)?;
    writeln!(stream, "{message}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Result<(), Box<dyn Error>> {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() > deadline {
            return Err(format!("waited too long for {what}").into());
        }
        thread::sleep(PAUSE);
    }
    Ok(())
}

fn compare(data: &Path, acknowledged: u64) -> Result<Outcome, Box<dyn Error>> {
    let mut outcome = Outcome { acknowledged, ..Outcome::default() };
    let log = Log::open(&data.join("log"), Options::default())?;
    let mut reader = EventReader::from(&log, Seq::START);
    let mut in_log: HashSet<[u8; 16]> = HashSet::new();
    while let Some(met) = reader.next()? {
        match met {
            EventItem::Event(recorded) if in_log.insert(*recorded.id.as_bytes()) => {
                outcome.in_log += 1;
            }
            EventItem::Event(_) => outcome.different += 1,
            EventItem::Gap(_) => outcome.gaps += 1,
        }
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY;
    let database = Connection::open_with_flags(data.join("memory.db"), flags)?;
    let sql = "select count(*) from gaps";
    outcome.gaps += u64::from(database.query_row(sql, (), |row| row.get::<_, u32>(0))?);
    let mut statement = database.prepare("select event from events")?;
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        outcome.in_tables += 1;
        outcome.different += usize::from(!in_log.remove(&row.get::<_, [u8; 16]>(0)?));
    }
    outcome.different += in_log.len();
    Ok(outcome)
}
