//! A storm of events through `worker.sock`, and the check that all of them are indexed.
//!
//! Clients send lines to one worker as fast as it accepts them, while it indexes them. At the end
//! the log and the tables must contain the same events: each acknowledged one exactly once.

use std::{
    collections::HashSet,
    error::Error,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
};

use claude_mem_events::{EventItem, EventReader, Seq};
use claude_mem_log::{Log, Options};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use crate::worker_process::{WorkerProcess, wait_for};

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

/// Sends everything, waits until it is indexed, stops the worker and compares.
pub fn storm(storm: &SocketStorm) -> Result<Outcome, Box<dyn Error>> {
    let mut worker = WorkerProcess::start(&storm.program, &storm.home, &[])?;
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        let senders: Vec<_> = (0..storm.connections)
            .map(|number| {
                let (worker, acknowledged) = (&worker, &acknowledged);
                let share = storm.events / storm.connections
                    + u64::from(number < storm.events % storm.connections);
                scope.spawn(move || {
                    send(worker, number, share, acknowledged).map_err(|error| error.to_string())
                })
            })
            .collect();
        senders.into_iter().try_for_each(|sender| sender.join().map_err(|_| "panic")?)
    })?;
    let mut lines = worker.lines()?;
    wait_for("everything to be indexed", || {
        let health = lines.ask(&json!({"type": "health"})).ok()?;
        (health["unfolded"]["events"] == 0).then_some(())
    })?;
    lines.ask(&json!({"type": "stop"}))?;
    drop(lines);
    worker.wait()?;
    compare(worker.data(), acknowledged.into_inner())
}

/// Sends `count` prompts of one session after another over one connection.
fn send(
    worker: &WorkerProcess,
    number: u64,
    count: u64,
    acknowledged: &AtomicU64,
) -> Result<(), Box<dyn Error>> {
    let mut connection = worker.lines()?;
    let mut sent = 0;
    let mut lines = String::new();
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
        connection.record(&lines, together as usize)?;
        acknowledged.fetch_add(together, Ordering::Relaxed);
        sent += together;
    }
    Ok(())
}

/// Mostly some hundred bytes; one in a hundred is longer than several memory pages, which makes a
/// partial read likely.
fn text(number: u64, event: u64) -> String {
    let mixed = (number << 32 | event).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let len = if mixed.is_multiple_of(100) { 8_000 + mixed % 20_000 } else { 20 + mixed % 500 };
    let word = format!("prompt {event} of {number} ");
    word.repeat(len as usize / word.len() + 1)
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
