//! Observations acknowledged and kept: many programs at once against one transaction for each request.
//!
//! Who waits for each answer has one request outstanding, so that as many are synced together as there are
//! programs. The same work is measured with more programs, and with programs that say several lines before they
//! wait: that shows how many have to be outstanding for a sync not to be what counts.

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

/// Programs that tell at the same time.
const CLIENTS: usize = 8;
/// What each observation is long.
const BYTES: usize = 4 << 10;
/// How much faster it is to be than one transaction for each.
const TIMES: f64 = 20.0;

/// How programs tell.
#[derive(Clone, Copy)]
enum Way {
    /// One request after the other, over a connection that stays.
    Http,
    /// So many lines before the first answer is waited for.
    Lines(usize),
}

/// Some programs that tell in one way.
#[derive(Clone, Copy)]
struct Crowd {
    way: Way,
    clients: usize,
}

/// The first is what was asked for.
const CROWDS: [Crowd; 7] = [
    Crowd { way: Way::Http, clients: CLIENTS },
    Crowd { way: Way::Http, clients: 64 },
    Crowd { way: Way::Http, clients: 120 },
    Crowd { way: Way::Lines(1), clients: CLIENTS },
    Crowd { way: Way::Lines(4), clients: CLIENTS },
    Crowd { way: Way::Lines(25), clients: CLIENTS },
    Crowd { way: Way::Lines(25), clients: 2 },
];

impl Crowd {
    fn name(self) -> String {
        let Self { way, clients } = self;
        match way {
            Way::Http => format!("the worker, by HTTP, {clients} programs"),
            Way::Lines(1) => format!("the worker, by lines, {clients} programs"),
            Way::Lines(many) => {
                format!("the worker, by lines, {clients} programs, {many} at a time")
            }
        }
    }

    /// Requests that may be without an answer at the same time.
    fn outstanding(self) -> usize {
        match self.way {
            Way::Http => self.clients,
            Way::Lines(many) => self.clients * many,
        }
    }
}

/// What programs and the worker took, in all turns of a crowd.
#[derive(Default, Clone, Copy)]
struct Taken {
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
    let taken = Mutex::new([Taken::default(); CROWDS.len()]);
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

fn figure(count: usize, samples: &[Samples], taken: &[Taken]) -> Outcome<Figure> {
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

/// What was done, and what it comes to for programs that wait for each answer.
fn about(count: usize, taken: &Taken, http: &Samples, sync: &Samples) -> String {
    let each = |time: Duration| time / count as u32;
    let shared = sync.min() / CLIENTS as u32;
    format!(
        "{count} observations of {BYTES} bytes, each acknowledged when it is on disk. The worker takes them apart, \
         cleans them of what is private, and appends and syncs those together that wait together; folding them \
         and asking about them goes on beside it, and is waited for after each turn. SQLite is given the finished \
         bytes in its own process, without HTTP: one connection, one transaction for each.\n\n\
         What limits {CLIENTS} programs that wait for each answer: at most {CLIENTS} share a sync. One sync takes \
         {}, so that {count} observations take {} if nothing else takes any time; what they did take is {} of \
         processor time in the worker and {} in the programs for each, on the same processors, and {} in all.",
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
            "{enough}; with {CLIENTS} programs that wait for each answer {:.1} times ({:.1} of WAL), of {bound:.0} \
             that {CLIENTS} for each sync allow",
            journal.times_min(http),
            wal.times_min(http),
        ),
        is_met: first.is_some(),
    }
}

/// Has a crowd tell all of it, and waits until the worker has made of it what there is to be made. How long until
/// the last was acknowledged; if they cannot be shared out evenly, how long all would have taken.
fn turn(serving: &Serving, crowd: Crowd, count: usize, taken: &mut Taken) -> Outcome<Duration> {
    let each = count / crowd.clients;
    let (worker, programs) = (serving.pid(), std::process::id());
    let before = (serving.syncs()?, processor(worker)?, processor(programs)?);
    let time = at_once(crowd.clients, |client| match crowd.way {
        Way::Http => post(serving, client, each),
        Way::Lines(many) => tell(serving, client, each, many),
    })?;
    taken.worker += processor(worker)?.saturating_sub(before.1);
    taken.programs += processor(programs)?.saturating_sub(before.2);
    taken.syncs += serving.syncs()? - before.0;
    taken.observations += each * crowd.clients;
    // An ended session is distilled, so that nothing disturbs the other contestants.
    let mut lines = serving.lines()?;
    for client in 0..crowd.clients {
        lines.ask(&json!({"type": "finalize", "session_id": format!("s{client}")}))?;
    }
    serving.wait_until_done()?;
    Ok(time.mul_f64(count as f64 / (each * crowd.clients) as f64))
}

/// Has every client do its part at the same time; how long until the last was done.
fn at_once(clients: usize, part: impl Fn(usize) -> Outcome<()> + Sync) -> Outcome<Duration> {
    let start = Instant::now();
    let failed = thread::scope(|scope| {
        let part = &part;
        let clients: Vec<_> = (0..clients)
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
    let body = json!({"contentSessionId": format!("s{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
    .to_string();
    (0..count).try_for_each(|_| http.post("/api/sessions/observations", &body))
}

fn tell(serving: &Serving, client: usize, count: usize, together: usize) -> Outcome<()> {
    let mut lines = serving.lines()?;
    let line =
        json!({"type": "observation", "session_id": format!("s{client}"), "tool_name": "Bash",
        "tool_input": {"command": "cargo test"}, "tool_response": "x".repeat(BYTES)})
        .to_string();
    let said = format!("{line}\n").repeat(together);
    for _ in 0..count / together {
        lines.say(&said, together)?;
    }
    let rest = count % together;
    lines.say(&said[..rest * (line.len() + 1)], rest)
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
