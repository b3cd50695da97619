//! Health is truth: what the worker says of itself is checked against the log and the tables.
//!
//! A process that answers is not yet one that works. So nothing here is a flag that somebody set when all was
//! well: how far the tables are behind is read from both, and a thread that went silent is called silent.

use std::time::{Duration, Instant};

use claude_mem_log::{Item, Log, Options};
use claude_mem_projections::{PendingCounts, Store};
use serde::Serialize;

use super::{Shared, queue_history::Sample};
use claude_mem_core::failure::Failure;
use claude_mem_distill::spent_today;

/// Events counted beyond the tables; more are more than enough.
const UNFOLDED_MAX: u64 = 10_000;
/// The projecting thread shows itself every second, or every five if something does not work.
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// Events are folded within a second.
const UNFOLDED_AGE_MAX: Duration = Duration::from_secs(30);
/// A question takes three minutes at most.
const STANDSTILL_MAX: Duration = Duration::from_secs(600);

/// Everything there is to know.
#[derive(Debug, Serialize)]
pub struct Health {
    /// `ok`; `degraded`, if nobody can be asked and it is known why, or if the queue only grows; `unhealthy`, if
    /// there is no progress.
    pub status: &'static str,
    /// What is wrong, one line each.
    pub problems: Vec<String>,
    /// Of the program.
    pub version: String,
    /// Where everything is.
    pub data_dir: String,
    /// This run of the worker.
    pub instance: String,
    /// The process.
    pub pid: u32,
    /// Where it answers.
    pub url: String,
    /// In seconds.
    pub uptime: u64,
    /// Resident memory; nothing where the system does not tell.
    pub rss_bytes: Option<u64>,
    /// Sessions that are going on.
    pub active_sessions: u64,
    /// How often it has brought the log to disk.
    pub syncs: u64,
    /// What is in the log and not yet in the tables.
    pub unfolded: Behind,
    /// What is in the tables and not yet answered.
    pub unanswered: Behind,
    /// Pending events over time, one sample a minute, the oldest first.
    pub queue_history: Vec<Sample>,
    /// Sessions that somebody is being asked about.
    pub asking: usize,
    /// Events that were given up on.
    pub parked: u64,
    /// Damaged places in the log.
    pub damage: u64,
    /// Since midnight.
    pub spent_today: SpentToday,
    /// Who is asked.
    pub provider: Provider,
}

/// How far something is behind.
#[derive(Debug, Default, Serialize)]
pub struct Behind {
    /// How many events.
    pub events: u64,
    /// How old the first of them is; 0 if there is none.
    pub age_seconds: u64,
}

/// What was spent.
#[derive(Debug, Default, Serialize)]
pub struct SpentToday {
    /// Read and written.
    pub tokens: u64,
    /// In US dollars.
    pub cost_usd: f64,
}

/// Who is asked, and whether that works.
#[derive(Debug, Serialize)]
pub struct Provider {
    /// Empty until somebody was asked.
    pub name: String,
    /// Which model.
    pub model: String,
    /// `idle`, `asking` or `waiting`.
    pub state: &'static str,
    /// Why it is waited for.
    pub message: Option<String>,
    /// How much longer, in seconds.
    pub retry_after: Option<u64>,
}

impl Health {
    /// Looks at everything. This opens the tables and reads the end of the log, so that it is for
    /// `spawn_blocking`.
    pub fn look(shared: &Shared) -> Self {
        let progress = shared.board.read();
        let mut problems = Vec::new();
        if progress.silence() > SILENCE_MAX {
            let seconds = progress.silence().as_secs();
            problems.push(format!("nothing was looked at for {seconds} seconds"));
        }
        problems.extend(progress.problem.clone());
        let tables = tables(shared).unwrap_or_else(|failure| {
            problems.push(failure.in_one_line());
            Tables::default()
        });
        let Tables { unfolded, lag, spent, active_sessions } = tables;
        if unfolded.age_seconds > UNFOLDED_AGE_MAX.as_secs() {
            problems.push(format!("{} events are not folded", unfolded.events));
        }
        if progress.asking > 0 && progress.moved.elapsed() > STANDSTILL_MAX {
            problems.push("questions are neither answered nor refused".into());
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
            true if progress.closed.is_some() || alert.is_some() => "degraded",
            true => "ok",
        };
        problems.extend(alert);
        let provider = Provider {
            state: match (&progress.closed, progress.asking) {
                (Some(_), _) => "waiting",
                (None, 0) => "idle",
                (None, _) => "asking",
            },
            message: progress.closed.as_ref().map(|(why, _)| why.clone()),
            retry_after: progress
                .closed
                .as_ref()
                .map(|(_, until)| until.saturating_duration_since(Instant::now()).as_secs()),
            name: progress.provider,
            model: progress.model,
        };
        let presence = &shared.presence;
        Self {
            status,
            problems,
            version: presence.version.clone(),
            data_dir: shared.paths.data.to_string_lossy().into_owned(),
            instance: presence.instance.clone(),
            pid: presence.pid,
            url: presence.url(),
            uptime: shared.started.elapsed().as_secs(),
            rss_bytes: memory_stats::memory_stats().map(|stats| stats.physical_mem as u64),
            active_sessions,
            syncs: shared.syncs(),
            unfolded,
            unanswered,
            queue_history: shared.queue.samples(),
            asking: progress.asking,
            parked: lag.parked,
            damage: lag.gaps,
            spent_today: spent,
            provider,
        }
    }

    /// Whether it does what it is there for, as far as that is its own doing.
    pub fn is_well(&self) -> bool {
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
