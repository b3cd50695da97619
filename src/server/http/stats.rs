//! Statistics, and the health of the log.

use std::{fs, path::Path, sync::Arc};

use axum::{Json, extract::State, response::Response};
use claude_mem_projections::{DayStats, ProjectStats, Store};
use jiff::{ToSpan, tz::TimeZone};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{
    error::{ApiError, ApiResult, QueryParams},
    feed::given,
    state::AppState,
    stream::STREAMS_MAX,
    time_params::rfc3339,
};
use claude_mem_core::app::App;
use claude_mem_memory::store;

const DAYS: i64 = 30;
const DAYS_MAX: i64 = 366;
/// Maximum number of listed damaged places.
const GAPS_MAX: u32 = 100;
/// Default of `lines`.
const LINES: usize = 200;
const LINES_MAX: usize = 1000;

pub(super) fn routes() -> OpenApiRouter<Arc<AppState>> {
    OpenApiRouter::new()
        .routes(routes!(stats))
        .routes(routes!(daily))
        .routes(routes!(log_health))
        .routes(routes!(logs))
}

/// Totals.
#[derive(Debug, Serialize, ToSchema)]
struct Stats {
    worker: Worker,
    database: Database,
    log: LogSize,
}

/// The worker process.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Worker {
    version: String,
    /// Seconds.
    uptime: u64,
    /// Sessions with events within a day that have not ended.
    active_sessions: u64,
    /// Clients of `/stream`.
    sse_clients: usize,
    port: u16,
    instance: String,
    pid: u32,
}

/// The database.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Database {
    path: String,
    /// Bytes, including the WAL.
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
    /// Indexed events.
    events: u64,
}

/// Returns totals.
#[utoipa::path(get, path = "/api/stats", tag = "reading", responses((status = 200, body = Stats)))]
async fn stats(State(state): State<Arc<AppState>>) -> ApiResult<Stats> {
    let sse_clients = STREAMS_MAX - state.streams.available_permits();
    let shared = Arc::clone(&state.shared);
    let found = move |store: &Store, app: &App| {
        let counts = store.counts()?;
        let instance = &shared.instance;
        let memory = app.paths.memory();
        let companions = ["", "-wal", "-shm"].map(|suffix| format!("{}{suffix}", memory.display()));
        Ok(Stats {
            worker: Worker {
                version: instance.version.clone(),
                uptime: shared.started.elapsed().as_secs(),
                active_sessions: store.active_sessions(super::sessions::now_us(app))?,
                sse_clients,
                port: instance.port,
                instance: instance.run_id.clone(),
                pid: instance.pid,
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
    state.read(found).await.map(Json)
}

fn size(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |found| found.len())
}

fn log_size(app: &App, store: &Store) -> Result<LogSize, ApiError> {
    let segments = store::open_log(app)?.segments()?;
    Ok(LogSize {
        path: app.paths.log().display().to_string(),
        size: segments.iter().map(|segment| segment.bytes).sum(),
        segments: segments.len(),
        events: store.checkpoint()?.events,
    })
}

/// Range of days.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct DailyParams {
    /// Number of days up to today.
    days: Option<i64>,
    /// Project name or key.
    project: Option<String>,
}

/// Statistics per day.
#[derive(Debug, Serialize, ToSchema)]
struct Daily {
    /// Days with events, earliest first.
    days: Vec<Day>,
    /// Sessions in this period.
    sessions: u64,
    /// Projects with events in this period, or the requested one.
    projects: Vec<ProjectShare>,
    /// Observations of this period by type, the most frequent first.
    types: Vec<TypeCount>,
}

/// Number of observations of a type.
#[derive(Debug, Serialize, ToSchema)]
struct TypeCount {
    #[serde(rename = "type")]
    type_: String,
    observations: u64,
}

/// The part of a project in a period.
#[derive(Debug, Serialize, ToSchema)]
struct ProjectShare {
    project: String,
    events: u64,
    cost_usd: f64,
}

/// A day in local time.
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
    /// Bytes of tool uses, stops and responses before compression.
    log_bytes: u64,
}

/// Returns statistics of the last days.
#[utoipa::path(get, path = "/api/stats/daily", tag = "reading", params(DailyParams),
    responses((status = 200, body = Daily)))]
async fn daily(
    State(state): State<Arc<AppState>>,
    QueryParams(params): QueryParams<DailyParams>,
) -> Result<Response, ApiError> {
    let days = params.days.unwrap_or(DAYS).clamp(1, DAYS_MAX);
    let project = given(params.project);
    let today = state.shared.clock.now().to_zoned(TimeZone::system()).date();
    let question = format!("daily {days} {today} {}", project.as_deref().unwrap_or_default());
    let found = move |store: &Store, app: &App| {
        let now = app.clock.now().to_zoned(TimeZone::system());
        let first = now.checked_sub((days - 1).days()).and_then(|day| day.start_of_day());
        let since_us = first.map_or(0, |first| first.timestamp().as_microsecond().max(0));
        let offset = i64::from(now.offset().seconds());
        let days = store.daily_stats(since_us.cast_unsigned(), offset, project.as_deref())?;
        let day = |day: DayStats| Day {
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
        let wanted = |share: &ProjectStats| {
            project.as_ref().is_none_or(|name| *name == share.label || *name == share.key)
        };
        let shares = store.project_stats(since_us.cast_unsigned())?.into_iter().filter(wanted);
        let shares: Vec<ProjectStats> = shares.collect();
        let types = store.type_stats(since_us.cast_unsigned(), project.as_deref())?;
        let types =
            types.into_iter().map(|(type_, observations)| TypeCount { type_, observations });
        Ok(Daily {
            types: types.collect(),
            days: days.into_iter().map(day).collect(),
            sessions: shares.iter().map(|share| share.sessions).sum(),
            projects: shares
                .into_iter()
                .map(|share| ProjectShare {
                    project: share.label,
                    events: share.events,
                    cost_usd: share.cost_micros as f64 / 1e6,
                })
                .collect(),
        })
    };
    state.read_cached(question, found).await
}

/// Health of the log.
#[derive(Debug, Serialize, ToSchema)]
struct LogHealth {
    segments: usize,
    bytes: u64,
    /// Indexed events.
    events: u64,
    /// Damaged places.
    gaps: Vec<Gap>,
    /// Events of unknown kinds.
    unreadable: u64,
    /// Parked tool uses and stops.
    parked: u64,
    /// Pending tool uses and stops.
    outstanding: u64,
}

/// A damaged place.
#[derive(Debug, Serialize, ToSchema)]
struct Gap {
    segment: u64,
    offset: u64,
    bytes: u64,
    reason: String,
}

/// Returns the health of the log, as far as it was read.
#[utoipa::path(get, path = "/api/health/log", tag = "health",
    responses((status = 200, body = LogHealth)))]
async fn log_health(State(state): State<Arc<AppState>>) -> ApiResult<LogHealth> {
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
    state.read(found).await.map(Json)
}

/// Range of lines.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
struct LogsParams {
    /// Number of lines.
    lines: Option<usize>,
}

/// Recent diagnostics.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Logs {
    logs: String,
    path: String,
    exists: bool,
    total_lines: usize,
    returned_lines: usize,
}

/// Returns the last lines of the diagnostics.
#[utoipa::path(get, path = "/api/logs", tag = "health", params(LogsParams),
    responses((status = 200, body = Logs)))]
async fn logs(
    State(state): State<Arc<AppState>>,
    QueryParams(tail): QueryParams<LogsParams>,
) -> ApiResult<Logs> {
    let params = tail.lines.unwrap_or(LINES).min(LINES_MAX);
    let file = state.shared.paths.data.join("logs/claude-mem.log");
    let found = move || {
        let bytes = fs::read(&file);
        let exists = bytes.is_ok();
        let all = String::from_utf8_lossy(&bytes.unwrap_or_default()).into_owned();
        let lines: Vec<&str> = all.lines().collect();
        let shown = &lines[lines.len().saturating_sub(params)..];
        Ok(Logs {
            logs: shown.join("\n"),
            path: file.display().to_string(),
            exists,
            total_lines: lines.len(),
            returned_lines: shown.len(),
        })
    };
    state.block(found).await.map(Json)
}
