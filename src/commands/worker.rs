//! `claude-mem worker`: the background process.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek, SeekFrom},
    thread,
    time::Duration,
};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};

use claude_mem_core::{
    app::App,
    diagnostics::{Level, worker_log},
    failure::Failure,
    format::count,
    settings::{
        Settings,
        table::{WORKER_AUTOSTART, WORKER_PORT},
    },
    worker_process::is_worker_running,
};
use claude_mem_distill::{dollars, tokens};
use claude_mem_server::{
    shared::End,
    worker::{
        self,
        client::{self, Started},
    },
};

/// Start, stop and inspect the background worker
///
/// The worker distills events while you work. Hooks start it when needed, and it exits when idle.
/// You can kill it at any time: everything is in the log, and the next worker continues.
#[derive(Debug, Args)]
pub(crate) struct Worker {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start the worker; replaces an older version
    Start(OutputFormat),
    /// Stop the worker
    Stop(OutputFormat),
    /// Restart the worker
    Restart(OutputFormat),
    /// Show whether the worker is running, and its health
    Status(OutputFormat),
    /// Run the worker in the foreground
    Run {
        /// Detach from the session, as hooks do
        #[arg(long, hide = true)]
        background: bool,
    },
    /// Show the worker's log file
    Logs {
        /// Maximum number of lines
        #[arg(long, short = 'n', value_name = "LINES", default_value_t = 50)]
        lines: usize,
        /// Only lines of this level or a more severe one
        #[arg(long, value_enum, default_value_t = LogLevel::Trace)]
        level: LogLevel,
        /// Keep printing new lines
        #[arg(long, short)]
        follow: bool,
    },
}

/// How severe a line is.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::Error,
            LogLevel::Warn => Self::Warn,
            LogLevel::Info => Self::Info,
            LogLevel::Debug => Self::Debug,
            LogLevel::Trace => Self::Trace,
        }
    }
}

#[derive(Debug, Args)]
struct OutputFormat {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Worker {
    /// Exits with code 1 if the worker could not be started or stopped, or is unhealthy.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        if let Action::Start(_) | Action::Restart(_) | Action::Run { background: false } =
            self.action
            && let Some(problem) = app.settings.problem_of(&WORKER_PORT)
        {
            return Err(Failure::usage(problem));
        }
        match self.action {
            Action::Start(format) => start(app, &format),
            Action::Stop(format) => stop(app, &format),
            Action::Restart(format) => {
                client::stop(&app.paths.data)?;
                start(app, &format)
            }
            Action::Status(format) => status(app, &format),
            Action::Run { background } => run(app, background),
            Action::Logs { lines, level, follow } => logs(app, lines, level.into(), follow),
        }
    }
}

fn run(app: &mut App, is_background: bool) -> Result<(), Failure> {
    match worker::run(app, is_background)? {
        // On a failure, the service manager starts the newer version.
        Some(End::Replaced) => Err(Failure::new("the worker was replaced by a newer version")),
        Some(End::Deleted) => Err(Failure::new("the data directory was deleted")),
        Some(End::Requested | End::Idle) => Ok(()),
        None => {
            app.output.say("a worker is already running");
            Ok(())
        }
    }
}

fn start(app: &mut App, format: &OutputFormat) -> Result<(), Failure> {
    let dir = &app.paths.data;
    app.paths.create_data().map_err(|error| Failure::no_directory(dir, &error))?;
    let started = client::ensure(&app.paths.data)?;
    let (Started::New(found) | Started::InsteadOf(found, _) | Started::AlreadyThere(found)) =
        &started;
    if format.json {
        return app.output.json(&json!({
            "is_new": !matches!(started, Started::AlreadyThere(_)),
            "replaced": match &started { Started::InsteadOf(_, version) => Some(version), _ => None },
            "pid": found.pid,
            "version": found.version,
            "instance": found.run_id,
            "url": found.url(),
        }));
    }
    let (pid, url) = (found.pid, found.url());
    app.output.line(match &started {
        Started::New(_) => format!("the worker is running (pid {pid}) at {url}"),
        Started::InsteadOf(_, version) => {
            format!("the worker is running (pid {pid}) at {url}, replacing version {version}")
        }
        Started::AlreadyThere(_) => format!("the worker is already running (pid {pid}) at {url}"),
    })
}

/// How the next worker is started.
pub(crate) fn next_start(settings: &Settings) -> &'static str {
    match settings.get(&WORKER_AUTOSTART) {
        true => "hooks start it when needed",
        false => {
            "hooks do not start it (WORKER_AUTOSTART is false): `claude-mem worker start` does"
        }
    }
}

fn stop(app: &mut App, format: &OutputFormat) -> Result<(), Failure> {
    let was_running = client::stop(&app.paths.data)?;
    match (format.json, was_running) {
        (true, _) => app.output.json(&json!({"was_running": was_running})),
        (false, true) => app.output.line("the worker has stopped"),
        (false, false) => app.output.line("no worker is running"),
    }
}

fn status(app: &mut App, format: &OutputFormat) -> Result<(), Failure> {
    let data = app.paths.data.clone();
    if !is_worker_running(&data) {
        return match format.json {
            true => app.output.json(&json!({"is_running": false})),
            false => {
                app.output.line(format_args!("no worker is running; {}", next_start(&app.settings)))
            }
        };
    }
    let health = client::ask(&data, &json!({"type": "health"})).map_err(|error| {
        Failure::new(format!("a worker is running but does not respond: {error}"))
            .remedy("restart it with `claude-mem worker restart`")
    })?;
    if format.json {
        let mut all = json!({"is_running": true});
        if let (Some(all), Value::Object(health)) = (all.as_object_mut(), health.clone()) {
            all.extend(health);
        }
        app.output.json(&all)?;
    } else {
        app.output.line(page(&health))?;
    }
    match health["status"].as_str() {
        Some("ok" | "degraded") => Ok(()),
        _ => Err(Failure::new("the worker responds, but is stuck")
            .remedy("restart it with `claude-mem worker restart`")),
    }
}

/// The worker's health as text.
fn page(health: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let behind = |name: &str| match health[name]["events"].as_u64() {
        Some(0) | None => "none".to_owned(),
        Some(count) => format!("{count} events, the oldest {} s old", health[name]["age_seconds"]),
    };
    let provider = &health["provider"];
    let mut who = format!("{} {}", text(&provider["name"]), text(&provider["model"]));
    if who.trim().is_empty() {
        who = "no requests yet".into();
    }
    if let Some(message) = provider["message"].as_str() {
        who = format!("{who}: retry in {} s, {message}", provider["retry_after"]);
    }
    let mut lines = vec![
        ("status", text(&health["status"])),
        ("process", format!("{}, for {}", health["pid"], duration(&health["uptime"]))),
        ("memory", memory(&health["rss_bytes"])),
        ("sessions", format!("{} active", health["active_sessions"])),
        ("version", text(&health["version"])),
        ("address", text(&health["url"])),
        ("data", text(&health["data_dir"])),
        ("not indexed", behind("unfolded")),
        ("pending", behind("unanswered")),
        ("queue", queue(&health["queue_history"])),
        ("distilling", count(health["distilling"].as_u64().unwrap_or(0), "session")),
        ("parked", count(health["parked"].as_u64().unwrap_or(0), "event")),
        ("damage", count(health["damage"].as_u64().unwrap_or(0), "place")),
        (
            "today",
            format!(
                "{} tokens, {}",
                tokens(health["spent_today"]["tokens"].as_u64().unwrap_or(0)),
                dollars((health["spent_today"]["cost_usd"].as_f64().unwrap_or(0.0) * 1e6) as u64)
            ),
        ),
        ("provider", who.trim().to_owned()),
    ];
    for problem in health["problems"].as_array().into_iter().flatten() {
        lines.push(("problem", text(problem)));
    }
    let lines = lines.iter().map(|(name, value)| format!("{name:>11}  {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

fn memory(rss_bytes: &Value) -> String {
    match rss_bytes.as_u64() {
        Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
        None => "unknown".into(),
    }
}

/// Queue length now, up to an hour ago, and its maximum, from one sample per minute.
fn queue(history: &Value) -> String {
    let lengths: Vec<u64> = history
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|sample| sample["events"].as_u64())
        .collect();
    let Some(last) = lengths.last() else { return "unknown".into() };
    let minutes = (lengths.len() - 1).min(60);
    let before = lengths[lengths.len() - 1 - minutes];
    let most = lengths.iter().max().unwrap_or(last);
    let now = count(*last, "event");
    match minutes {
        0 => now,
        _ => format!("{now}, {before} {} ago, maximum {most}", count(minutes, "minute")),
    }
}

/// `45 s`, `12 min`, `3 h 5 min`.
fn duration(seconds: &Value) -> String {
    match seconds.as_u64().unwrap_or(0) {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

fn logs(app: &mut App, count: usize, level: Level, is_followed: bool) -> Result<(), Failure> {
    let path = worker_log(&app.paths.data);
    let unreadable =
        |error: std::io::Error| Failure::new(format!("{} cannot be read: {error}", path.display()));
    let is_shown = |line: &str| Level::of_line(line).is_none_or(|of_line| of_line <= level);
    let mut at = 0;
    if let Ok(file) = File::open(&path) {
        let mut reader = BufReader::new(file);
        let mut lines: Vec<String> =
            reader.by_ref().lines().collect::<Result<_, _>>().map_err(unreadable)?;
        lines.retain(|line| is_shown(line));
        for line in &lines[lines.len().saturating_sub(count)..] {
            app.output.line(line)?;
        }
        at = reader.stream_position().map_err(unreadable)?;
    } else if !is_followed {
        app.output.say("no worker has run yet");
    }
    if !is_followed {
        return Ok(());
    }
    loop {
        thread::sleep(Duration::from_millis(500));
        let Ok(file) = File::open(&path) else { continue };
        // A shorter file is a new one: the log was rotated.
        if file.metadata().is_ok_and(|found| found.len() < at) {
            at = 0;
        }
        let mut reader = BufReader::new(file);
        reader.seek(SeekFrom::Start(at)).map_err(unreadable)?;
        let mut line = String::new();
        while reader.read_line(&mut line).map_err(unreadable)? > 0 && line.ends_with('\n') {
            if is_shown(&line) {
                app.output.line(line.trim_end())?;
            }
            at += line.len() as u64;
            line.clear();
        }
    }
}
