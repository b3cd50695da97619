//! State of the database and of the provider.

use claude_mem_log::{Item, Log};
use claude_mem_projections::{RequestFailure as Unanswered, Store};
use jiff::{Timestamp, tz::TimeZone};
use serde::Serialize;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_distill::{self, status::DistillStatus};
use claude_mem_memory::{
    semantic::{self, VectorCounts},
    store::rebuild_report,
};

#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    /// None without a readable database.
    #[serde(flatten)]
    pub(super) counts: Option<Counts>,
    /// The latest failure, if no response followed.
    pub(super) trouble: Option<ProviderFailure>,
    /// Why the database cannot be read.
    pub(super) problem: Option<String>,
    /// The provider, and why a better one is not used.
    pub(super) distilling: Option<DistillStatus>,
    /// Whether the database was built from another history of the log, and is rebuilt at the next
    /// use.
    pub(super) is_rebuild_due: bool,
    /// A recent rebuild for that reason, and which events the log no longer contains.
    pub(super) rebuilt: Option<String>,
    /// Memories with and without a vector; null without an embedding model.
    pub(super) vectors: Option<VectorCounts>,
    /// Why memories get no vectors.
    pub(super) vectors_problem: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Counts {
    pub(super) observations: u64,
    pub(super) summaries: u64,
    /// Observations since midnight.
    pub(super) observations_today: u64,
    /// Events not indexed yet.
    pub(super) unfolded: u64,
    pub(super) outstanding: u64,
    pub(super) parked: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct ProviderFailure {
    pub(super) at: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) class: String,
    pub(super) message: String,
}

impl Memory {
    /// Reads the database as it is, without indexing.
    pub(super) fn look(app: &App, log: &Log) -> Self {
        let opened = Store::open_read_only(&app.paths.memory());
        let problem = opened.as_ref().err().map(ToString::to_string);
        let Some(store) = opened.ok().flatten() else {
            return Self { problem, ..Self::default() };
        };
        let counts = store.counts().ok().map(|counts| Counts {
            observations: counts.observations,
            summaries: counts.summaries,
            observations_today: observations_today(app, &store).unwrap_or_default(),
            unfolded: unfolded(&store, log).unwrap_or_default(),
            outstanding: counts.outstanding,
            parked: counts.parked,
        });
        let trouble = store.last_failure().ok().flatten().map(ProviderFailure::of);
        let distilling = DistillStatus::read(&store, &claude_mem_distill::setup(app)).ok();
        let is_rebuild_due = store.history_mismatch(log).ok().flatten().is_some();
        let rebuilt = rebuild_report(app, &store);
        let (vectors, vectors_problem) = match semantic::count(app, &store) {
            Ok(vectors) => (vectors, semantic::endpoint_failure(app)),
            Err(failure) => (None, Some(failure.in_one_line())),
        };
        Self {
            counts,
            trouble,
            problem,
            distilling,
            is_rebuild_due,
            rebuilt,
            vectors,
            vectors_problem,
        }
    }
}

fn observations_today(app: &App, store: &Store) -> Result<u64, Failure> {
    let now = app.clock.now().to_zoned(TimeZone::system());
    let midnight = now.start_of_day().map_or(now.timestamp(), |midnight| midnight.timestamp());
    let offset = i64::from(now.offset().seconds());
    let days = store.daily_stats(midnight.as_microsecond().max(0).cast_unsigned(), offset, None)?;
    Ok(days.iter().map(|day| day.observations).sum())
}

fn unfolded(store: &Store, log: &Log) -> Result<u64, Failure> {
    let mut reader = log.read_from(store.checkpoint()?.position);
    let mut events = 0;
    while let Some(item) = reader.next()? {
        events += u64::from(matches!(item, Item::Record(_)));
    }
    Ok(events)
}

impl ProviderFailure {
    fn of(failure: Unanswered) -> Self {
        let at = Timestamp::from_microsecond(failure.at_us.cast_signed()).unwrap_or_default();
        Self {
            at: at.to_string(),
            provider: failure.provider,
            model: failure.model,
            class: failure.class,
            message: failure.message.unwrap_or_default(),
        }
    }
}
