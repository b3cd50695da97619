//! Acknowledged events per second: many clients of the worker, compared with one transaction per
//! request.
//!
//! A client that waits for each response has one request in flight, so a sync covers as many
//! requests as there are clients. The same work is measured with more clients, and with clients
//! that pipeline several lines. That shows how many requests must be in flight until syncs are no
//! longer the bottleneck.

use std::{
    fs,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use rusqlite::Connection;
use serde_json::json;

use super::serving::{Serving, processor};
use crate::bench::{
    Contestant, Figure, Outcome, Row, Samples, Scratch, Settings, Verdict, contest, report::show,
};

/// Concurrent clients.
const CLIENTS: usize = 8;
/// The size of each observation.
const BYTES: usize = 4 << 10;
/// The required ratio to one transaction per request.
const TIMES: f64 = 20.0;

/// The protocol of a client.
#[derive(Clone, Copy)]
enum Protocol {
    /// One request after the other, over one connection.
    Http,
    /// This many lines in flight.
    Lines(usize),
}

/// A number of clients with one protocol.
#[derive(Clone, Copy)]
struct Crowd {
    way: Protocol,
    clients: usize,
}

/// The first is the one with the bound.
const CROWDS: [Crowd; 7] = [
    Crowd { way: Protocol::Http, clients: CLIENTS },
    Crowd { way: Protocol::Http, clients: 64 },
    Crowd { way: Protocol::Http, clients: 120 },
    Crowd { way: Protocol::Lines(1), clients: CLIENTS },
    Crowd { way: Protocol::Lines(4), clients: CLIENTS },
    Crowd { way: Protocol::Lines(25), clients: CLIENTS },
    Crowd { way: Protocol::Lines(25), clients: 2 },
];

impl Crowd {
    fn name(self) -> String {
        let Self { way, clients } = self;
        match way {
            Protocol::Http => format!("the worker, by HTTP, {clients} programs"),
            Protocol::Lines(1) => format!("the worker, by lines, {clients} programs"),
            Protocol::Lines(many) => {
                format!("the worker, by lines, {clients} programs, {many} at a time")
            }
        }
    }

    /// Requests in flight at the same time.
    fn outstanding(self) -> usize {
        match self.way {
            Protocol::Http => self.clients,
            Protocol::Lines(many) => self.clients * many,
        }
    }
}

/// The resources that clients and worker used, in all turns of a crowd.
#[derive(Default, Clone, Copy)]
struct ResourceUse {
    observations: usize,
    syncs: u64,
    worker: Duration,
    programs: Duration,
}

pub(super) fn measure(settings: &Settings, scratch: &Scratch) -> Outcome<Vec<Figure>> {
    let count = settings.size(1000, 120) as usize;
    let rounds = settings.size(7, 1);
    let serving = Serving::start(scratch, "worker-append", &[])?;
    let database = scratch.place("worker-append.db");
    let taken = Mutex::new([ResourceUse::default(); CROWDS.len()]);
    let mut contestants: Vec<Contestant<'_>> = Vec::new();
    for (place, crowd) in CROWDS.into_iter().enumerate() {
        let (serving, taken) = (&serving, &taken);
        contestants.push(Contestant::new(crowd.name(), move || {
            let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
            turn(serving, crowd, count, &mut taken[place])
        }));
    }
    for (name, journal) in
        [("SQLite, FULL, rollback journal", "delete"), ("SQLite, FULL, WAL", "wal")]
    {
        let database = &database;
        contestants.push(Contestant::new(name, move || insert_each(database, journal, count)));
    }
    contestants.push(Contestant::new("a write and a sync for each", || sync_each(scratch, count)));
    let samples = contest(rounds, &mut contestants)?;
    drop(contestants);
    let taken = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
    let expected: usize = taken.iter().map(|taken| taken.observations).sum();
    if serving.recorded()? != expected {
        return Err(format!("{} of {expected} are there", serving.recorded()?).into());
    }
    figure(count, &samples, &taken).map(|figure| vec![figure])
}

fn figure(count: usize, samples: &[Samples], taken: &[ResourceUse]) -> Outcome<Figure> {
    let (crowds, others) = samples.split_at(CROWDS.len());
    let [journal, wal, sync] = others else { return Err("there are three others".into()) };
    let mut rows = Vec::new();
    for ((crowd, one), taken) in CROWDS.into_iter().zip(crowds).zip(taken) {
        let each = |time: Duration| show(time / taken.observations.max(1) as u32);
        let mut values = vec![crowd.outstanding().to_string()];
        values.extend(times(one, journal));
        values.push(format!("{:.1}", taken.observations as f64 / taken.syncs.max(1) as f64));
        values.extend([each(taken.worker), each(taken.programs)]);
        rows.push(Row::new(&one.name, values));
    }
    for one in others {
        let mut values = vec!["1".to_owned()];
        values.extend(times(one, journal));
        values.extend(["1.0", "", ""].map(str::to_owned));
        rows.push(Row::new(&one.name, values));
    }
    Ok(Figure {
        title: "Observations acknowledged and kept".into(),
        about: about(count, &taken[0], &crowds[0], sync),
        columns: vec![
            "outstanding",
            "fastest",
            "median",
            "times SQLite, FULL",
            "per sync",
            "processor, worker",
            "processor, programs",
        ],
        rows,
        verdict: Some(verdict(crowds, journal, wal, sync)),
    })
}

fn times(one: &Samples, journal: &Samples) -> [String; 3] {
    [show(one.min()), show(one.median()), format!("{:.1}", journal.times_min(one))]
}

/// The description of the figure, with the result per waiting client.
fn about(count: usize, taken: &ResourceUse, http: &Samples, sync: &Samples) -> String {
    let each = |time: Duration| time / count as u32;
    let shared = sync.min() / CLIENTS as u32;
    format!(
        "{count} observations of {BYTES} bytes, each acknowledged when it is on disk. The worker \
         parses and redacts them, and appends and syncs concurrent ones together. Folding and \
         distilling run meanwhile and are awaited after each turn. SQLite gets the finished bytes \
         in its own process, without HTTP: one connection, one transaction each.\n\n\
         The limit for {CLIENTS} programs that wait for each answer: at most {CLIENTS} share a \
         sync. One sync takes {}, so {count} observations take at least {}. Measured: {} of \
         processor time in the worker and {} in the programs per observation, on the same \
         processors, and {} in total.",
        show(each(sync.min())),
        show(shared),
        show(taken.worker / taken.observations.max(1) as u32),
        show(taken.programs / taken.observations.max(1) as u32),
        show(http.min()),
    )
}

fn verdict(crowds: &[Samples], journal: &Samples, wal: &Samples, sync: &Samples) -> Verdict {
    let (http, bound) = (&crowds[0], journal.times_min(sync) * CLIENTS as f64);
    let reached = CROWDS.into_iter().zip(crowds).filter(|(_, one)| journal.times_min(one) >= TIMES);
    let first = reached.min_by_key(|(crowd, _)| crowd.outstanding());
    let enough = match first {
        Some((crowd, one)) => format!(
            "{:.0} times with {} outstanding ({})",
            journal.times_min(one),
            crowd.outstanding(),
            one.name
        ),
        None => format!("{TIMES} times with none"),
    };
    Verdict {
        target: format!("at least {TIMES} times SQLite with synchronous=FULL, or what limits it"),
        reached: format!(
            "{enough}; with {CLIENTS} programs that wait for each answer {:.1} times ({:.1} of \
             WAL), of {bound:.0} that {CLIENTS} for each sync allow",
            journal.times_min(http),
            wal.times_min(http),
        ),
        is_met: first.is_some(),
    }
}

/// Sends all events from a crowd, and waits until the worker has processed them. Returns the time
/// until the last acknowledgement, extrapolated if the events cannot be divided evenly.
fn turn(
    serving: &Serving,
    crowd: Crowd,
    count: usize,
    taken: &mut ResourceUse,
) -> Outcome<Duration> {
    let each = count / crowd.clients;
    let (worker, programs) = (serving.worker.pid(), std::process::id());
    let before = (serving.syncs()?, processor(worker)?, processor(programs)?);
    let time = at_once(crowd.clients, |client| match crowd.way {
        Protocol::Http => post(serving, client, each),
        Protocol::Lines(many) => send_lines(serving, client, each, many),
    })?;
    taken.worker += processor(worker)?.saturating_sub(before.1);
    taken.programs += processor(programs)?.saturating_sub(before.2);
    taken.syncs += serving.syncs()? - before.0;
    taken.observations += each * crowd.clients;
    // An ended session is distilled, so that nothing disturbs the other contestants.
    let mut lines = serving.worker.lines()?;
    for client in 0..crowd.clients {
        lines.ask(&json!({"type": "finalize", "session_id": format!("s{client}")}))?;
    }
    serving.wait_until_done()?;
    Ok(time.mul_f64(count as f64 / (each * crowd.clients) as f64))
}

/// Runs every client at the same time; returns the time until the last one is done.
fn at_once(clients: usize, part: impl Fn(usize) -> Outcome<()> + Sync) -> Outcome<Duration> {
    let start = Instant::now();
    let failed = thread::scope(|scope| {
        let part = &part;
        let clients: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || part(client).err().map(|error| error.to_string())))
            .collect();
        let ended: Vec<_> = clients.into_iter().map(thread::ScopedJoinHandle::join).collect();
        let failed = |ended| Result::unwrap_or_else(ended, |_| Some("a client panicked".into()));
        ended.into_iter().find_map(failed)
    });
    match failed {
        Some(error) => Err(error.into()),
        None => Ok(start.elapsed()),
    }
}

fn post(serving: &Serving, client: usize, count: usize) -> Outcome<()> {
    let mut http = serving.worker.http()?;
    let body = json!({"contentSessionId": format!("s{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
    .to_string();
    (0..count).try_for_each(|_| http.request("POST", "/api/sessions/observations", &body).map(drop))
}

fn send_lines(serving: &Serving, client: usize, count: usize, together: usize) -> Outcome<()> {
    let mut lines = serving.worker.lines()?;
    let line =
        json!({"type": "observation", "session_id": format!("s{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
        .to_string();
    let lines_text = format!("{line}\n").repeat(together);
    for _ in 0..count / together {
        lines.record(&lines_text, together)?;
    }
    let rest = count % together;
    lines.record(&lines_text[..rest * (line.len() + 1)], rest)
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
    at_once(CLIENTS, |_| {
        for _ in 0..count / CLIENTS {
            let database = database.lock().unwrap_or_else(PoisonError::into_inner);
            database.execute("insert into observations (body) values (?1)", [&body])?;
        }
        Ok(())
    })
}

/// The time of a sync on this disk.
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
