//! Observations acknowledged and kept: many programs at once against one transaction for each request.

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;

use super::serving::Serving;
use crate::bench::{
    Contestant, Figure, Outcome, Scratch, Settings, Verdict, contest,
    report::{TIMES, against_first},
};

/// Programs that tell at the same time.
const CLIENTS: usize = 8;
/// What each observation is long.
const BYTES: usize = 4 << 10;
/// Lines that a program says before it waits for the answers.
const TOGETHER: usize = 25;

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let count = settings.size(1000, 40) as usize / CLIENTS * CLIENTS;
    let rounds = settings.size(7, 1);
    let serving = Serving::start(scratch, "worker-append", &[])?;
    let database = scratch.place("worker-append.db");
    let told = |part: fn(&Serving, usize, usize) -> Outcome<()>| {
        let taken = at_once(|client| part(&serving, client, count / CLIENTS))?;
        // What the worker makes of them is nobody else's turn.
        serving.wait_until_folded()?;
        Ok(taken)
    };
    let samples = contest(
        rounds,
        &mut [
            Contestant::new("the worker, by HTTP", || told(post)),
            Contestant::new("the worker, by lines, 25 at a time", || told(tell)),
            Contestant::new("SQLite, FULL, rollback journal", || {
                insert_each(&database, "delete", count)
            }),
            Contestant::new("SQLite, FULL, WAL", || insert_each(&database, "wal", count)),
            Contestant::new("as many syncs of a file", || sync_each(scratch, count)),
        ],
    )?;
    let expected = 2 * count * rounds as usize;
    if serving.recorded()? != expected {
        return Err(format!("{} of {expected} are there", serving.recorded()?).into());
    }
    let [http, lines, journal, wal, _] = &samples[..] else {
        return Err("there are five contestants".into());
    };
    let (times, times_wal) = (journal.times_min(http), wal.times_min(http));
    let (by_lines, by_lines_wal) = (journal.times_min(lines), wal.times_min(lines));
    Ok(vec![Figure {
        title: "Observations acknowledged and kept".into(),
        about: format!(
            "{count} observations of {BYTES} bytes from {CLIENTS} programs, each acknowledged when it is on disk. \
             The worker takes them apart, cleans them of what is private, and appends and syncs those together that \
             wait together. SQLite is given the finished bytes in its own process, without HTTP: one connection, \
             one transaction for each. A program that waits for each answer leaves at most {CLIENTS} to be synced \
             together, which limits what HTTP can gain; one that says several lines before it waits does not."
        ),
        columns: TIMES.to_vec(),
        rows: against_first(&samples),
        verdict: Some(Verdict {
            target: "at least 20 times SQLite with synchronous=FULL, or what limits it".into(),
            reached: format!(
                "by HTTP {times:.1} times ({times_wal:.1} of WAL), by lines {by_lines:.1} times \
                 ({by_lines_wal:.1} of WAL)"
            ),
            is_met: times >= 20.0 || by_lines >= 20.0,
        }),
    }])
}

/// Has every client do its part at the same time; how long until the last was done.
fn at_once(part: impl Fn(usize) -> Outcome<()> + Sync) -> Outcome<Duration> {
    let start = Instant::now();
    let failed = thread::scope(|scope| {
        let part = &part;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || part(client).err().map(|error| error.to_string())))
            .collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let failed = |ended| Result::unwrap_or_else(ended, |_| Some("a client gave up".into()));
        ended.into_iter().find_map(failed)
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(start.elapsed()),
    }
}

fn post(serving: &Serving, client: usize, count: usize) -> Outcome<()> {
    let mut http = serving.http()?;
    let body = json!({"contentSessionId": format!("h{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
    .to_string();
    (0..count).try_for_each(|_| http.post("/api/sessions/observations", &body))
}

fn tell(serving: &Serving, client: usize, count: usize) -> Outcome<()> {
    let mut lines = serving.lines()?;
    let line =
        json!({"type": "observation", "session_id": format!("l{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
        .to_string();
    let lines_of = |count: usize| vec![line.clone(); count];
    for _ in 0..count / TOGETHER {
        lines.say(&lines_of(TOGETHER))?;
    }
    lines.say(&lines_of(count % TOGETHER))
}

fn insert_each(path: &Path, journal: &str, count: usize) -> Outcome<Duration> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let _ = fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let database = Connection::open(path)?;
    database.pragma_update(None, "journal_mode", journal)?;
    database.pragma_update(None, "synchronous", "FULL")?;
    database.execute_batch("create table observations (id integer primary key, body blob)")?;
    let database = Mutex::new(database);
    let body = vec![b'x'; BYTES];
    at_once(|_| {
        for _ in 0..count / CLIENTS {
            let database = database.lock().unwrap_or_else(PoisonError::into_inner);
            database.execute("insert into observations (body) values (?1)", [&body])?;
        }
        Ok(())
    })
}

/// What a disk makes one wait for, whoever asks.
fn sync_each(scratch: &Scratch, count: usize) -> Outcome<Duration> {
    use std::io::Write as _;
    let mut file = fs::File::create(scratch.place("worker-append.file"))?;
    let body = vec![b'x'; BYTES];
    let start = Instant::now();
    for _ in 0..count {
        file.write_all(&body)?;
        file.sync_data()?;
    }
    Ok(start.elapsed())
}
