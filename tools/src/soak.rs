//! The soak: steady load on a worker, through HTTP and hooks, while its descriptors and threads are
//! watched.
//!
//! A round is one session over HTTP, one by hooks, and some searches; an event stream is open all
//! the time. Possible leaks are counted: descriptors, threads, and the entries of the worker's own
//! tables.

use std::{
    error::Error,
    fs,
    io::{BufRead, Write},
    net::TcpStream,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

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
    /// Number of rounds.
    pub rounds: u32,
    /// Rounds between two samples.
    pub sample_rounds: u32,
}

/// The resources of the worker at one time.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Open files and sockets.
    pub descriptors: usize,
    /// Threads of the process.
    pub threads: usize,
    /// Entries of the worker's own tables, as `/health` counts them.
    pub tables: Value,
}

/// The load, and the samples.
#[derive(Debug, Default)]
pub struct Report {
    /// Events sent.
    pub events: u64,
    /// Lines received from the stream.
    pub streamed: u64,
    /// In order.
    pub samples: Vec<Sample>,
}

/// Runs the load.
pub fn soak(soak: &Soak) -> Outcome<Report> {
    let worker = WorkerProcess::start(&soak.binary, &soak.home, &[])?;
    let mut http = worker.http()?;
    let streamed = Arc::new(AtomicU64::new(0));
    let mut stream = Stream::open(&worker, &streamed)?;
    let mut report = Report::default();
    for round in 0..soak.rounds {
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
        }
        if round % soak.sample_rounds == 0 || round + 1 == soak.rounds {
            report.samples.push(sample(&worker, &mut http)?);
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
fn sample(worker: &WorkerProcess, http: &mut WorkerHttp) -> Outcome<Sample> {
    let tables = wait_for("a worker without work", || {
        let health = http.ask("GET", "/health", None).ok()?;
        let is_none = |name: &str| health[name]["events"] == 0;
        (is_none("unfolded") && is_none("unanswered")).then(|| health["tables"].clone())
    })?;
    let entries = |name: &str| -> Outcome<usize> {
        Ok(fs::read_dir(format!("/proc/{}/{name}", worker.pid()))?.count())
    };
    // Some descriptors are open for a short time only, such as those of a read of the log.
    let looks: Outcome<Vec<usize>> = (0..20).map(|_| entries("fd")).collect();
    let descriptors = looks?.into_iter().min().unwrap_or(0);
    Ok(Sample { descriptors, threads: entries("task")?, tables })
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
