//! `claude-mem status`: state of the log, the database and the worker.

mod count;
mod memory;
mod page;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use claude_mem_log::{Log, Options};
use count::LogCounts;
use jiff::{SignedDuration, Timestamp};
use memory::Memory;
use serde::Serialize;
use serde_json::json;

use super::worker::next_start;
use claude_mem_capture::excluded_by;
use claude_mem_capture::{Dropped, project::ProjectId};
use claude_mem_core::{
    app::App,
    failure::Failure,
    os,
    settings::{
        SyncMode,
        table::{ENABLED, SYNC},
    },
    worker_process::is_worker_running,
};
use claude_mem_distill::prompts::InstructionsSource;
use claude_mem_install::registered::Hooks;
use claude_mem_maintenance::repair::Repair;
use claude_mem_server::worker::client;
use claude_mem_sync::ship::{backup::Backup, status::ShipStatus};

/// Show what is recorded, where, and whether everything works
#[derive(Debug, Args)]
pub(crate) struct Status {
    /// Show all details: paths, counts, durability, disk
    #[arg(short, long)]
    verbose: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The complete status. Scripts read the field names, so they are stable.
#[derive(Debug, Serialize)]
struct StatusReport {
    version: &'static str,
    data_dir: PathBuf,
    log_dir: PathBuf,
    is_writable: bool,
    is_enabled: bool,
    settings_problems: Vec<String>,
    project: Project,
    #[serde(flatten)]
    counted: LogCounts,
    durability: Durability,
    /// Events that hooks could not record, for example on a full disk.
    dropped: Option<Dropped>,
    disk: Disk,
    hooks: Hooks,
    memory: Memory,
    /// The instructions for new requests.
    prompt: InstructionsSource,
    worker: Worker,
    shipping: Option<ShipStatus>,
    backup: Option<Backup>,
    repair: Repair,
    diagnostics: Diagnostics,
}

#[derive(Debug, Serialize)]
struct Project {
    label: String,
    key: String,
    excluded_by: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct Durability {
    sync: &'static str,
    tool_uses: &'static str,
    prompts_stops_ends: &'static str,
    is_worker_running: bool,
}

#[derive(Debug, Serialize)]
struct Disk {
    log_bytes: u64,
    data_bytes: u64,
    segments: usize,
    free_bytes: Option<u64>,
    spilled_files: usize,
}

#[derive(Debug, Serialize)]
pub(super) struct Worker {
    is_running: bool,
    #[serde(skip)]
    next_start: &'static str,
    /// As reported by the worker; `silent` if it does not respond.
    pub(super) status: Option<String>,
    pid: Option<u64>,
    version: Option<String>,
    url: Option<String>,
    problems: Vec<String>,
    /// Why no provider is available.
    closed: Option<String>,
}

#[derive(Debug, Serialize)]
struct Diagnostics {
    file: PathBuf,
    lines: usize,
    last: Option<String>,
    /// Whether the last line is from the last day. An older problem has passed, or shows elsewhere.
    #[serde(skip)]
    is_recent: bool,
}

impl Status {
    /// Changes nothing, except that it merges spilled events.
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let found = StatusReport::look(app)?;
        match self.json {
            true => app.output.json(&found),
            false => app.output.line(page::page(&found, &app.output, self.verbose).trim_end()),
        }
    }
}

impl StatusReport {
    fn look(app: &App) -> Result<Self, Failure> {
        let data_dir = app.paths.data.clone();
        let log_dir = data_dir.join("log");
        super::log::merge_spilled(&log_dir);
        let log = Log::open(&log_dir, Options::default())?;
        let disk = disk(&data_dir, &log)?;
        Ok(Self {
            version: env!("CARGO_PKG_VERSION"),
            is_writable: is_writable(&data_dir),
            is_enabled: app.settings.get(&ENABLED),
            settings_problems: app.settings.problems(),
            project: project(app),
            counted: LogCounts::read(&log, app.clock.now())?,
            durability: durability(app),
            shipping: ShipStatus::look(app, disk.log_bytes),
            dropped: Dropped::look(&data_dir),
            backup: Backup::look(app),
            repair: Repair::load(&app.paths),
            disk,
            hooks: Hooks::look(app),
            memory: Memory::look(app, &log),
            prompt: InstructionsSource::detect(&data_dir),
            worker: worker(app),
            diagnostics: diagnostics(&data_dir, app.clock.now()),
            data_dir,
            log_dir,
        })
    }
}

/// Whether hooks can write to the directory, or create it.
fn is_writable(data: &Path) -> bool {
    let existing = data.ancestors().find(|dir| dir.exists()).unwrap_or(data);
    let log = data.join("log");
    let may_write = |dir: &Path| dir.is_dir() && os::is_writable(dir);
    may_write(existing) && (!log.exists() || may_write(&log))
}

fn project(app: &App) -> Project {
    let here = env::current_dir().unwrap_or_default();
    let project = ProjectId::of(&here);
    let excluded_by = excluded_by(&app.settings, &project, &here, app.paths.home.as_deref());
    Project { label: project.label, key: project.key, excluded_by }
}

fn durability(app: &App) -> Durability {
    let sync = app.settings.get(&SYNC);
    let tool_uses = match sync {
        SyncMode::Always => "when the hook returns",
        SyncMode::Default => "within a second",
    };
    Durability {
        sync: sync.name(),
        tool_uses,
        prompts_stops_ends: "when the hook returns",
        is_worker_running: is_worker_running(&app.paths.data),
    }
}

fn disk(data: &Path, log: &Log) -> Result<Disk, Failure> {
    let segments = log.segments()?;
    let existing = data.ancestors().find(|dir| dir.exists()).unwrap_or(data);
    Ok(Disk {
        log_bytes: segments.iter().map(|segment| segment.bytes).sum(),
        data_bytes: bytes_below(data),
        segments: segments.len(),
        free_bytes: os::free_bytes(existing),
        spilled_files: fs::read_dir(data.join("log/spill")).map_or(0, Iterator::count),
    })
}

fn bytes_below(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_dir() => bytes_below(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

impl Worker {
    /// Whether it runs, and what is wrong with it.
    pub(super) fn summary(&self) -> String {
        let Some(status) = self.status.as_deref() else {
            return format!("not running; {}", self.next_start);
        };
        let pid = self.pid.map_or(String::new(), |pid| format!(" (pid {pid})"));
        let problems = self.problems.join("; ");
        match status {
            "ok" => format!("running{pid}, healthy"),
            "degraded" if !problems.is_empty() => format!("running{pid}, but {problems}"),
            "degraded" => {
                let why = self.closed.as_deref().unwrap_or("the reason is unknown");
                format!("running{pid}, but no provider is available: {why}")
            }
            "silent" => "running, but does not respond".into(),
            _ => format!("running{pid}, but stuck: {problems}"),
        }
    }
}

pub(super) fn worker(app: &App) -> Worker {
    let data = &app.paths.data;
    let is_running = is_worker_running(data);
    let health = is_running.then(|| client::ask(data, &json!({"type": "health"})).ok()).flatten();
    let text = |name: &str| Some(health.as_ref()?[name].as_str()?.to_owned());
    let problems = health.iter().filter_map(|health| health["problems"].as_array()).flatten();
    Worker {
        is_running,
        next_start: next_start(&app.settings),
        status: text("status").or_else(|| is_running.then(|| "silent".into())),
        pid: health.as_ref().and_then(|health| health["pid"].as_u64()),
        version: text("version"),
        url: text("url"),
        closed: health
            .as_ref()
            .and_then(|health| Some(health["provider"]["message"].as_str()?.to_owned())),
        problems: problems.filter_map(|problem| problem.as_str().map(str::to_owned)).collect(),
    }
}

fn diagnostics(data: &Path, now: Timestamp) -> Diagnostics {
    let file = data.join("logs/claude-mem.log");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let last = text.lines().next_back().map(str::to_owned);
    let time = last.as_deref().and_then(|line| line.split(' ').next()?.parse::<Timestamp>().ok());
    let is_recent =
        time.is_none_or(|time| now.duration_since(time) < SignedDuration::from_hours(24));
    Diagnostics { lines: text.lines().count(), last, is_recent, file }
}
