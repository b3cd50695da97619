//! The soak: steady load on a worker, through HTTP and hooks, while its memory, descriptors and
//! threads are watched.
//!
//! A round is one session over HTTP, one by hooks, and some searches; an event stream is open all
//! the time. A long soak paces its rounds and measures the memory of the process. A short one does
//! not, and counts possible leaks: descriptors, threads, and the entries of the worker's own
//! tables.
//!
//! The caches of SQLite and the candidates of a search are bounded, and an empty database does not
//! reach the bounds. So a long soak first fills the database without pauses. Growth is judged from
//! one minute after that, without mapped pages: those of the embedding model belong to the page
//! cache.

use std::{
    error::Error,
    fs,
    io::{BufRead, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;
use serde_json::{Value, json};

use crate::worker_process::{WorkerHttp, WorkerProcess, command, wait_for};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Tool uses of a session over HTTP.
const TOOL_USES: usize = 10;
/// Tool uses of a session by hooks.
const HOOKS: usize = 3;
const SEARCHES: usize = 6;
/// Rounds after which the stream is reopened, as when a page is reloaded.
const STREAM_ROUNDS: u32 = 30;
/// Rounds between two samples during the warm-up.
const WARM_UP_SAMPLE_ROUNDS: u32 = 100;
const WORDS: [&str; 16] = [
    "cart", "till", "parser", "index", "cache", "socket", "lock", "token", "build", "test",
    "error", "page", "session", "route", "query", "field",
];

/// Options of a soak.
#[derive(Debug, Clone)]
pub struct Soak {
    /// The program under test.
    pub binary: PathBuf,
    /// An empty directory, used as the home directory.
    pub home: PathBuf,
    /// Rounds without a pause before the steady load.
    pub warm_up_rounds: u32,
    /// Maximum number of rounds of steady load.
    pub rounds: u32,
    /// Maximum duration of the steady load.
    pub time_max: Duration,
    /// Minimum duration of a round of steady load.
    pub pace: Duration,
    /// Rounds between two samples.
    pub sample_rounds: u32,
}

/// The resources of the worker at one time.
#[derive(Debug, Clone, Serialize)]
pub struct Sample {
    /// After which round.
    pub round: u32,
    /// Since the first round began.
    pub seconds: f64,
    /// Resident memory in megabytes.
    pub rss_mb: f64,
    /// The same without pages of files.
    pub anonymous_mb: f64,
    /// Open files and sockets.
    pub descriptors: usize,
    /// Threads of the process.
    pub threads: usize,
    /// Entries of the worker's own tables, as `/health` counts them.
    pub tables: Value,
    /// Megabytes of the database file.
    pub database_mb: f64,
    /// Megabytes of the vector files.
    pub vectors_mb: f64,
}

/// The load, and the samples.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Events sent.
    pub events: u64,
    /// Searches made.
    pub searches: u64,
    /// Lines received from the stream.
    pub streamed: u64,
    /// When the steady load began, in seconds since the first round.
    pub steady_from: f64,
    /// In order.
    pub samples: Vec<Sample>,
}

impl Report {
    /// Samples after the first minute of steady load.
    pub fn settled(&self) -> &[Sample] {
        let from = self.steady_from + 60.0;
        let first = self.samples.iter().position(|sample| sample.seconds >= from);
        &self.samples[first.unwrap_or(0)..]
    }

    /// Growth of memory, without mapped files, after the first minute of steady load, in megabytes
    /// a minute, by least squares.
    pub fn slope(&self) -> f64 {
        let samples = self.settled();
        let count = samples.len() as f64;
        let minutes = |sample: &Sample| sample.seconds / 60.0;
        let mean_x = samples.iter().map(minutes).sum::<f64>() / count;
        let mean_y = samples.iter().map(|sample| sample.anonymous_mb).sum::<f64>() / count;
        let covariance: f64 = samples
            .iter()
            .map(|sample| (minutes(sample) - mean_x) * (sample.anonymous_mb - mean_y))
            .sum();
        let variance: f64 = samples.iter().map(|sample| (minutes(sample) - mean_x).powi(2)).sum();
        if variance > 0.0 { covariance / variance } else { 0.0 }
    }

    /// The report as Markdown, with one line a minute.
    pub fn markdown(&self) -> String {
        let mut text = format!(
            "# Soak\n\n\
             {} events over HTTP and hooks, {} searches, {} lines of the stream.\n\n\
             The database is filled without pauses until minute {:.1}; then the load is \
             steady.\n\n\
             Memory without mapped files, after the first minute of steady load: {:+.3} MB a \
             minute.\n\n\
             | minute | resident MB | anonymous MB | descriptors | threads | database MB | \
             vectors MB | tables |\n\
             |---|---|---|---|---|---|---|---|\n",
            self.events,
            self.searches,
            self.streamed,
            self.steady_from / 60.0,
            self.slope()
        );
        let mut minute = 0.0;
        for sample in &self.samples {
            if sample.seconds >= minute * 60.0 {
                minute = (sample.seconds / 60.0).floor() + 1.0;
                let line = format!(
                    "| {:.1} | {:.1} | {:.1} | {} | {} | {:.1} | {:.1} | `{}` |",
                    sample.seconds / 60.0,
                    sample.rss_mb,
                    sample.anonymous_mb,
                    sample.descriptors,
                    sample.threads,
                    sample.database_mb,
                    sample.vectors_mb,
                    sample.tables
                );
                text.push_str(&line);
                text.push('\n');
            }
        }
        text
    }
}

/// Runs the load, and calls back with each sample.
pub fn soak(soak: &Soak, mut sampled: impl FnMut(&Sample)) -> Outcome<Report> {
    let worker = WorkerProcess::start(&soak.binary, &soak.home, &[])?;
    let mut http = worker.http()?;
    let streamed = Arc::new(AtomicU64::new(0));
    let mut stream = Stream::open(&worker, &streamed)?;
    let mut report =
        Report { events: 0, searches: 0, streamed: 0, steady_from: 0.0, samples: Vec::new() };
    let began = Instant::now();
    let mut steady = began;
    let rounds = soak.warm_up_rounds + soak.rounds;
    for round in 0..rounds {
        if let Some(paced) = round.checked_sub(soak.warm_up_rounds) {
            if paced == 0 {
                steady = Instant::now();
                report.steady_from = began.elapsed().as_secs_f64();
            }
            let due = steady + soak.pace * paced;
            thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        if round % STREAM_ROUNDS == STREAM_ROUNDS - 1 {
            drop(stream);
            stream = Stream::open(&worker, &streamed)?;
        }
        send_over_http(&mut http, round)?;
        send_by_hooks(soak, round)?;
        report.events += (TOOL_USES + HOOKS + 3) as u64;
        for number in 0..SEARCHES {
            let words = [word(round as usize + number), word(round as usize * 7 + 3 * number)];
            http.ask("GET", &format!("/api/search?query={}+{}", words[0], words[1]), None)?;
            report.searches += 1;
        }
        let is_steady = round >= soak.warm_up_rounds;
        let is_over = is_steady && steady.elapsed() >= soak.time_max;
        let is_last = round + 1 == rounds || is_over;
        let sample_rounds = if is_steady { soak.sample_rounds } else { WARM_UP_SAMPLE_ROUNDS };
        if round % sample_rounds == 0 || is_last {
            let sample = sample(&worker, &mut http, round, began.elapsed())?;
            sampled(&sample);
            report.samples.push(sample);
        }
        if is_last {
            break;
        }
    }
    report.streamed = streamed.load(Ordering::Relaxed);
    Ok(report)
}

fn word(number: usize) -> &'static str {
    WORDS[number % WORDS.len()]
}

fn filling(number: usize, count: usize) -> String {
    (0..count).map(|index| word(number * 5 + index * index)).collect::<Vec<_>>().join(" ")
}

fn send_over_http(http: &mut WorkerHttp, round: u32) -> Outcome<()> {
    let (session, number) = (format!("http-{round}"), round as usize);
    let cwd = format!("/work/project-{}", round % 5);
    let prompt = format!("fix the {} of round {round}", word(number));
    let body = json!({"contentSessionId": session, "cwd": cwd, "prompt": prompt});
    http.ask("POST", "/api/sessions/init", Some(&body))?;
    for index in 0..TOOL_USES {
        let file = format!("{cwd}/{}-{}.rs", word(number + index), number % 100);
        let input = json!({"file_path": file, "old_string": "a", "new_string": filling(index, 30)});
        let body = json!({"contentSessionId": session, "cwd": cwd, "tool_name": "Edit",
            "tool_input": input, "tool_response": {"filePath": file, "text": filling(number, 150)},
            "tool_use_id": format!("{session}-{index}")});
        http.ask("POST", "/api/sessions/observations", Some(&body))?;
    }
    let body = json!({"contentSessionId": session, "cwd": cwd,
        "last_assistant_message": format!("The {} works again.", word(number))});
    http.ask("POST", "/api/sessions/summarize", Some(&body))?;
    Ok(())
}

fn send_by_hooks(soak: &Soak, round: u32) -> Outcome<()> {
    let hook = |name: &str, mut payload: Value| -> Outcome<()> {
        payload["session_id"] = json!(format!("hook-{round}"));
        payload["cwd"] = json!(soak.home);
        let mut child = command(&soak.binary, &soak.home, &[name])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()?;
        let mut stdin = child.stdin.take().ok_or("a hook reads")?;
        stdin.write_all(payload.to_string().as_bytes())?;
        drop(stdin);
        match child.wait()?.success() {
            true => Ok(()),
            false => Err(format!("the hook {name} failed").into()),
        }
    };
    for index in 0..HOOKS {
        hook(
            "save",
            json!({"hook_event_name": "PostToolUse", "tool_name": "Bash",
                "tool_input": {"command": format!("cargo test {}", word(round as usize + index))},
                "tool_response": {"stdout": filling(round as usize, 100)},
                "tool_use_id": format!("hook-{round}-{index}")}),
        )?;
    }
    hook("summary", json!({"hook_event_name": "Stop", "last_assistant_message": "Done."}))
}

/// Waits until nothing is pending, and takes a sample.
fn sample(
    worker: &WorkerProcess,
    http: &mut WorkerHttp,
    round: u32,
    elapsed: Duration,
) -> Outcome<Sample> {
    let tables = wait_for("a worker without work", || {
        let health = http.ask("GET", "/health", None).ok()?;
        let is_none = |name: &str| health[name]["events"] == 0;
        (is_none("unfolded") && is_none("unanswered")).then(|| health["tables"].clone())
    })?;
    let place = format!("/proc/{}", worker.pid());
    let status = fs::read_to_string(format!("{place}/status"))?;
    let field = |name: &str| -> Outcome<f64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let value = line.and_then(|line| line.split_whitespace().nth(1));
        Ok(value.ok_or("/proc has the resources of a process")?.parse()?)
    };
    // Some descriptors are open for a short time only, such as those of a read of the log.
    let descriptors = || Ok(fs::read_dir(format!("{place}/fd"))?.count());
    let looks: Outcome<Vec<usize>> = (0..20).map(|_| descriptors()).collect();
    Ok(Sample {
        round,
        seconds: elapsed.as_secs_f64(),
        rss_mb: field("VmRSS")? / 1024.0,
        anonymous_mb: field("RssAnon")? / 1024.0,
        descriptors: looks?.into_iter().min().unwrap_or(0),
        threads: field("Threads")? as usize,
        tables,
        database_mb: size(&worker.data().join("memory.db")) as f64 / 1e6,
        vectors_mb: fs::read_dir(worker.data().join("vectors"))
            .map_or(0, |files| files.flatten().map(|file| size(&file.path())).sum::<u64>())
            as f64
            / 1e6,
    })
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

/// An event stream that is read until this is dropped.
struct Stream(TcpStream);

impl Stream {
    /// Opens a stream, and counts its lines.
    fn open(worker: &WorkerProcess, lines: &Arc<AtomicU64>) -> Outcome<Self> {
        let mut http = worker.http()?;
        http.send("GET", "/stream", "")?;
        let responses = http.into_stream();
        let connection = responses.get_ref().try_clone()?;
        let counted = Arc::clone(lines);
        thread::spawn(move || {
            for _ in responses.lines().map_while(Result::ok) {
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(Self(connection))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.shutdown(std::net::Shutdown::Both);
    }
}
