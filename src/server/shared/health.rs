//! Health of the worker, verified against the log and the database.
//!
//! A process can respond and still be stuck. So health is not a flag: the lag is computed from the
//! log and the database, and a thread without a heartbeat is reported.

use std::time::{Duration, Instant};

use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{PendingCounts, Store};
use serde::Serialize;

use super::{Shared, queue_history::Sample};
use claude_mem_core::failure::Failure;
use claude_mem_distill::spent_today;
use claude_mem_memory::semantic::VectorCounts;

/// Maximum number of unindexed events to count.
const UNFOLDED_MAX: u64 = 10_000;
/// The main loop reports every second, or every five after an error.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Events are indexed within a second.
const UNFOLDED_AGE_MAX: Duration = Duration::from_secs(30);
/// A request takes at most three minutes.
const STANDSTILL_MAX: Duration = Duration::from_secs(600);

/// Health of the worker.
#[derive(Debug, Serialize)]
pub struct Health {
    /// `ok`; `degraded` if no provider is available or the queue only grows; `unhealthy` without
    /// progress.
    pub status: &'static str,
    /// Problems, one line each.
    pub problems: Vec<String>,
    /// Version of the program.
    pub version: String,
    /// Data directory.
    pub data_dir: String,
    /// ID of this run of the worker.
    pub instance: String,
    /// Process ID.
    pub pid: u32,
    /// URL of the HTTP server.
    pub url: String,
    /// Seconds since the start.
    pub uptime: u64,
    /// Resident memory; `None` if unknown.
    pub rss_bytes: Option<u64>,
    /// Sessions in progress.
    pub active_sessions: u64,
    /// Number of flushes of the log.
    pub syncs: u64,
    /// Events that are not indexed yet.
    pub unfolded: Behind,
    /// Pending events.
    pub unanswered: Behind,
    /// Pending events over time, one sample per minute, oldest first.
    pub queue_history: Vec<Sample>,
    /// Sessions being distilled.
    pub distilling: usize,
    /// Parked events.
    pub parked: u64,
    /// Damaged places in the log.
    pub damage: u64,
    /// Memories with and without a vector; `None` if there is no model.
    pub vectors: Option<VectorCounts>,
    /// Spent since midnight.
    pub spent_today: SpentToday,
    /// The provider.
    pub provider: Provider,
}

/// A backlog.
#[derive(Debug, Default, Serialize)]
pub struct Behind {
    /// Number of events.
    pub events: u64,
    /// Age of the oldest event; 0 if there is none.
    pub age_seconds: u64,
}

/// Tokens and money.
#[derive(Debug, Default, Serialize)]
pub struct SpentToday {
    /// Input and output tokens.
    pub tokens: u64,
    /// In US dollars.
    pub cost_usd: f64,
}

/// The provider, and its state.
#[derive(Debug, Serialize)]
pub struct Provider {
    /// Name; empty before the first request.
    pub name: String,
    /// Model.
    pub model: String,
    /// `idle`, `distilling` or `waiting`.
    pub state: &'static str,
    /// Reason for waiting.
    pub message: Option<String>,
    /// Seconds until the next attempt.
    pub retry_after: Option<u64>,
}

impl Health {
    /// Computes the health. Opens the database and reads the end of the log, so call it in
    /// `spawn_blocking`.
    pub fn look(shared: &Shared) -> Self {
        let progress = shared.progress.read();
        let mut problems = Vec::new();
        if progress.silence() > SILENCE_MAX {
            let seconds = progress.silence().as_secs();
            problems.push(format!("no progress for {seconds} seconds"));
        }
        problems.extend(progress.problem.clone());
        let tables = tables(shared).unwrap_or_else(|failure| {
            problems.push(failure.in_one_line());
            Tables::default()
        });
        let Tables { unfolded, lag, spent, active_sessions } = tables;
        if unfolded.age_seconds > UNFOLDED_AGE_MAX.as_secs() {
            problems.push(format!("{} events are not indexed", unfolded.events));
        }
        if progress.distilling > 0 && progress.moved.elapsed() > STANDSTILL_MAX {
            problems.push("requests get neither responses nor errors".into());
        }
        let unanswered = Behind {
            events: lag.outstanding,
            age_seconds: lag.since_us.map_or(0, |since_us| age(shared, since_us)),
        };
        let timestamp = shared.clock.now().as_millisecond();
        shared.queue.add(Sample { timestamp, events: unanswered.events });
        let alert = shared.queue.alert();
        let status = match problems.is_empty() {
            false => "unhealthy",
            true if progress.closed.is_some()
                || alert.is_some()
                || progress.vectors_problem.is_some() =>
            {
                "degraded"
            }
            true => "ok",
        };
        problems.extend(alert);
        problems.extend(progress.vectors_problem.clone());
        let provider = Provider {
            state: match (&progress.closed, progress.distilling) {
                (Some(_), _) => "waiting",
                (None, 0) => "idle",
                (None, _) => "distilling",
            },
            message: progress.closed.as_ref().map(|(why, _)| why.clone()),
            retry_after: progress
                .closed
                .as_ref()
                .map(|(_, until)| until.saturating_duration_since(Instant::now()).as_secs()),
            name: progress.provider,
            model: progress.model,
        };
        let instance = &shared.instance;
        Self {
            status,
            problems,
            version: instance.version.clone(),
            data_dir: shared.paths.data.to_string_lossy().into_owned(),
            instance: instance.run_id.clone(),
            pid: instance.pid,
            url: instance.url(),
            uptime: shared.started.elapsed().as_secs(),
            rss_bytes: memory_stats::memory_stats().map(|stats| stats.physical_mem as u64),
            active_sessions,
            syncs: shared.syncs(),
            unfolded,
            unanswered,
            queue_history: shared.queue.samples(),
            distilling: progress.distilling,
            parked: lag.parked,
            damage: lag.gaps,
            vectors: progress.vectors,
            spent_today: spent,
            provider,
        }
    }

    /// Whether the worker itself works. An unavailable provider does not count.
    pub(crate) fn is_well(&self) -> bool {
        self.status != "unhealthy"
    }
}

#[derive(Default)]
struct Tables {
    unfolded: Behind,
    lag: PendingCounts,
    spent: SpentToday,
    active_sessions: u64,
}

fn tables(shared: &Shared) -> Result<Tables, Failure> {
    shared.read(|store| read(shared, store))
}

fn read(shared: &Shared, store: Option<&Store>) -> Result<Tables, Failure> {
    let log = Log::open(&shared.paths.log(), Options::default())?;
    let position = match store {
        Some(store) => store.checkpoint()?.position,
        None => claude_mem_events::Seq::START,
    };
    let mut unfolded = Behind::default();
    let mut reader = log.read_from(position);
    while unfolded.events < UNFOLDED_MAX
        && let Some(item) = reader.next()?
    {
        let Item::Record(entry) = item else { continue };
        if unfolded.events == 0 {
            unfolded.age_seconds = age(shared, entry.id.time_us());
        }
        unfolded.events += 1;
    }
    let Some(store) = store else { return Ok(Tables { unfolded, ..Tables::default() }) };
    let spent = spent_today(store, shared.clock)?.spent;
    let spent = SpentToday {
        tokens: spent.tokens_in + spent.tokens_out,
        cost_usd: spent.cost_micros.unwrap_or(0) as f64 / 1e6,
    };
    let now_us = shared.clock.now().as_microsecond().cast_unsigned();
    let active_sessions = store.active_sessions(now_us)?;
    Ok(Tables { unfolded, lag: store.pending_counts()?, spent, active_sessions })
}

fn age(shared: &Shared, at_us: u64) -> u64 {
    let now_us = shared.clock.now().as_microsecond().cast_unsigned();
    now_us.saturating_sub(at_us) / 1_000_000
}
