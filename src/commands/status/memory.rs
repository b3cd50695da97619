//! What was made of the events, and what stands in the way of more.

use claude_mem_log::{Item, Log};
use claude_mem_projections::{RequestFailure as Unanswered, Store};
use jiff::Timestamp;
use serde::Serialize;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_distill::{self, status::DistillStatus};
use claude_mem_memory::store::rebuild_report;

/// The tables, as they are.
#[derive(Debug, Default, Serialize)]
pub(super) struct Memory {
    /// Nothing if there is no database, or none that can be read.
    #[serde(flatten)]
    pub(super) counts: Option<Counts>,
    /// The latest failure, if nobody was answered since.
    pub(super) trouble: Option<Trouble>,
    /// Why the database cannot be read, if there is one.
    pub(super) problem: Option<String>,
    /// Who distils, and why not a better one.
    pub(super) distilling: Option<DistillStatus>,
    /// Whether the tables were folded from another past of the log, and are rebuilt at the next use.
    pub(super) is_rebuild_due: bool,
    /// That they were rebuilt for that reason lately, and what the log no longer holds.
    pub(super) rebuilt: Option<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct Counts {
    pub(super) observations: u64,
    pub(super) summaries: u64,
    /// Recorded since somebody last looked: the worker, `claude-mem distill`, or a search.
    pub(super) unfolded: u64,
    pub(super) outstanding: u64,
    pub(super) parked: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct Trouble {
    pub(super) at: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) class: String,
    pub(super) message: String,
}

impl Memory {
    /// Looks, and folds nothing: a status shows what is there.
    pub(super) fn look(app: &App, log: &Log) -> Self {
        let opened = Store::open_read_only(&app.paths.memory());
        let problem = opened.as_ref().err().map(ToString::to_string);
        let Some(store) = opened.ok().flatten() else {
            return Self { problem, ..Self::default() };
        };
        let counts = store.counts().ok().map(|counts| Counts {
            observations: counts.observations,
            summaries: counts.summaries,
            unfolded: unfolded(&store, log).unwrap_or_default(),
            outstanding: counts.outstanding,
            parked: counts.parked,
        });
        let trouble = store.last_failure().ok().flatten().map(Trouble::of);
        let distilling = DistillStatus::read(&store, &claude_mem_distill::setup(app)).ok();
        let is_rebuild_due = store.history_mismatch(log).ok().flatten().is_some();
        let rebuilt = rebuild_report(app, &store);
        Self { counts, trouble, problem, distilling, is_rebuild_due, rebuilt }
    }
}

fn unfolded(store: &Store, log: &Log) -> Result<u64, Failure> {
    let mut reader = log.read_from(store.checkpoint()?.position);
    let mut events = 0;
    while let Some(item) = reader.next()? {
        events += u64::from(matches!(item, Item::Record(_)));
    }
    Ok(events)
}

impl Trouble {
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
