//! How much there is, how it grew, and whether the log is whole.

use std::{fs, path::Path, sync::Arc};

use axum::{Json, extract::State};
use claude_mem_projections::Store;
use jiff::{ToSpan, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{Answer, Asked, Problem, Refusal},
    feed::given,
    state::Site,
    stream::STREAMS_MAX,
    time_params::rfc3339,
};
use claude_mem_core::app::App;
use claude_mem_memory::store;

const DAYS: i64 = 30;
const DAYS_MAX: i64 = 366;
/// Damaged places that are named.
const GAPS_MAX: u32 = 100;
/// Lines of diagnostics.
const LINES: usize = 200;
const LINES_MAX: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<Arc<Site>> {
    OpenApiRouter::new()
        .routes(routes!(stats))
        .routes(routes!(daily))
        .routes(routes!(log_health))
        .routes(routes!(logs))
}

/// How much there is.
#[derive(Debug, Serialize, ToSchema)]
struct Stats {
    worker: Worker,
    database: Database,
    log: LogSize,
}

/// The process that answers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Worker {
    version: String,
    /// Seconds.
    uptime: u64,
    /// Sessions in which something happened within a day and that have not ended.
    active_sessions: u64,
    /// Who listens to `/stream`.
    sse_clients: usize,
    port: u16,
    instance: String,
    pid: u32,
}

/// The tables.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Database {
    path: String,
    /// Bytes, its companions included.
    size: u64,
    observations: u64,
    sessions: u64,
    summaries: u64,
    prompts: u64,
    tool_uses: u64,
    first_observation_at: Option<String>,
}

/// The log.
#[derive(Debug, Serialize, ToSchema)]
struct LogSize {
    path: String,
    /// Bytes.
    size: u64,
    segments: usize,
    /// Events that were folded.
    events: u64,
}

/// How much there is of everything.
#[utoipa::path(get, path = "/api/stats", tag = "reading", security(("token" = [])),
    responses((status = 200, body = Stats), (status = "4XX", body = Problem)))]
async fn stats(State(site): State<Arc<Site>>) -> Answer<Stats> {
    let sse_clients = STREAMS_MAX - site.streams.available_permits();
    let shared = Arc::clone(&site.shared);
    let found = move |store: &Store, app: &App| {
        let counts = store.counts()?;
        let presence = &shared.presence;
        let memory = app.paths.memory();
        let companions = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", memory.display()));
        Ok(Stats {
            worker: Worker {
                version: presence.version.clone(),
                uptime: shared.started.elapsed().as_secs(),
                active_sessions: store.active_sessions(super::sessions::now_us(app))?,
                sse_clients,
                port: presence.port,
                instance: presence.instance.clone(),
                pid: presence.pid,
            },
            database: Database {
                path: memory.display().to_string(),
                size: companions.iter().map(|file| size(Path::new(file))).sum(),
                observations: counts.observations,
                sessions: counts.sessions,
                summaries: counts.summaries,
                prompts: counts.prompts,
                tool_uses: counts.tool_uses,
                first_observation_at: store.first_observation_us()?.map(rfc3339),
            },
            log: log_size(app, store)?,
        })
    };
    site.read(found).await.map(Json)
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

fn log_size(app: &App, store: &Store) -> Result<LogSize, Refusal> {
    let segments = store::open_log(app)?.segments()?;
    Ok(LogSize {
        path: app.paths.log().display().to_string(),
        size: segments.iter().map(|segment| segment.bytes).sum(),
        segments: segments.len(),
        events: store.checkpoint()?.events,
    })
}

/// Which days.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Wanted {
    /// How many, up to today.
    days: Option<i64>,
    /// The name or key of a project.
    project: Option<String>,
}

/// What happened on each day.
#[derive(Debug, Serialize, ToSchema)]
struct Daily {
    /// Those on which something happened, the earliest first.
    days: Vec<Day>,
}

/// One day, where the user is.
#[derive(Debug, Serialize, ToSchema)]
struct Day {
    /// `2026-11-16`.
    day: String,
    events: u64,
    prompts: u64,
    tool_uses: u64,
    observations: u64,
    summaries: u64,
    tokens_in: u64,
    tokens_out: u64,
    cost_usd: f64,
    /// What tool uses, stops and replies hold, before compression.
    log_bytes: u64,
}

/// What happened on each of the last days.
#[utoipa::path(get, path = "/api/stats/daily", tag = "reading", params(Wanted), security(("token" = [])),
    responses((status = 200, body = Daily), (status = "4XX", body = Problem)))]
async fn daily(State(site): State<Arc<Site>>, Asked(wanted): Asked<Wanted>) -> Answer<Daily> {
    let days = wanted.days.unwrap_or(DAYS).clamp(1, DAYS_MAX);
    let found = move |store: &Store, app: &App| {
        let now = app.clock.now().to_zoned(TimeZone::system());
        let first = now.checked_sub((days - 1).days()).and_then(|day| day.start_of_day());
        let since_us = first.map_or(0, |first| first.timestamp().as_microsecond().max(0));
        let offset = i64::from(now.offset().seconds());
        let project = given(wanted.project);
        let days = store.daily_stats(since_us.cast_unsigned(), offset, project.as_deref())?;
        let day = |day: claude_mem_projections::DayStats| Day {
            day: day.day,
            events: day.events,
            prompts: day.prompts,
            tool_uses: day.tool_uses,
            observations: day.observations,
            summaries: day.summaries,
            tokens_in: day.tokens_in,
            tokens_out: day.tokens_out,
            cost_usd: day.cost_micros as f64 / 1e6,
            log_bytes: day.bytes,
        };
        Ok(Daily { days: days.into_iter().map(day).collect() })
    };
    site.read(found).await.map(Json)
}

/// Whether the log is whole.
#[derive(Debug, Serialize, ToSchema)]
struct LogHealth {
    segments: usize,
    bytes: u64,
    /// Events that were folded.
    events: u64,
    /// Places that could not be read.
    gaps: Vec<Gap>,
    /// Events that nobody understood.
    unreadable: u64,
    /// Tool uses and stops that the agent failed at for good.
    parked: u64,
    /// Those that wait for an answer.
    outstanding: u64,
}

/// A place that could not be read.
#[derive(Debug, Serialize, ToSchema)]
struct Gap {
    segment: u64,
    offset: u64,
    bytes: u64,
    reason: String,
}

/// Whether the log is whole, as far as it was read.
#[utoipa::path(get, path = "/api/health/log", tag = "health", security(("token" = [])),
    responses((status = 200, body = LogHealth), (status = "4XX", body = Problem)))]
async fn log_health(State(site): State<Arc<Site>>) -> Answer<LogHealth> {
    let found = |store: &Store, app: &App| {
        let (counts, log) = (store.counts()?, log_size(app, store)?);
        let gap = |gap: claude_mem_projections::DamagedRange| Gap {
            segment: gap.segment,
            offset: gap.offset,
            bytes: gap.bytes,
            reason: gap.reason,
        };
        Ok(LogHealth {
            segments: log.segments,
            bytes: log.size,
            events: log.events,
            gaps: store.damaged_ranges(GAPS_MAX)?.into_iter().map(gap).collect(),
            unreadable: counts.unreadable,
            parked: counts.parked,
            outstanding: counts.outstanding,
        })
    };
    site.read(found).await.map(Json)
}

/// How many lines.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct Tail {
    /// The last so many.
    lines: Option<usize>,
}

/// What went wrong lately.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Logs {
    logs: String,
    path: String,
    exists: bool,
    total_lines: usize,
    returned_lines: usize,
}

/// The last lines of the diagnostics.
#[utoipa::path(get, path = "/api/logs", tag = "health", params(Tail), security(("token" = [])),
    responses((status = 200, body = Logs), (status = "4XX", body = Problem)))]
async fn logs(State(site): State<Arc<Site>>, Asked(tail): Asked<Tail>) -> Answer<Logs> {
    let wanted = tail.lines.unwrap_or(LINES).min(LINES_MAX);
    let file = site.shared.paths.data.join("logs/claude-mem.log");
    let found = move || {
        let bytes = fs::read(&file);
        let exists = bytes.is_ok();
        let all = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        let lines: Vec<&str> = all.lines().collect();
        let shown = &lines[lines.len().saturating_sub(wanted)..];
        Ok(Logs {
            logs: shown.join("\n"),
            path: file.display().to_string(),
            exists,
            total_lines: lines.len(),
            returned_lines: shown.len(),
        })
    };
    site.block(found).await.map(Json)
}
