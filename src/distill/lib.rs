//! Distills pending events into memories.
//!
//! Two steps that never mix: *distill* sends pending events to a provider and appends its responses
//! to the log. It is slow, costs money, may fail and is retried; it writes no table. *Fold* reads
//! the log in order and writes rows. It is pure and fast, and lives in `projections`.

mod admission;
mod batches;
mod cancelled;
mod distill_loop;
mod escape;
mod generation_diff;
mod lock;
mod plan;
mod progress;
mod prompt_set;
pub mod prompts;
pub mod providers;
mod recap;
mod replay;
mod responder;
mod run;
mod said_rules;
mod spend;
pub mod status;
mod tool_render;
mod trial;
mod turn_input;
pub mod turn_prompt;

pub use admission::Stopped;
pub use batches::Limits;
pub use cancelled::CancelledSessions;
pub use distill_loop::{DistillLoop, LoopState, Round};
pub use generation_diff::{Change, changes};
pub use lock::DistillLock;
pub use plan::{Estimate, Plan};
pub use prompt_set::{Overrides, PromptSet, setup};
pub use replay::{PreparedReplay, ReplayOptions, ReplayRequest, adopt};
pub use run::RunReport;
pub use spend::{caps, dollars, spent_today, tokens};
pub use status::{FailingProvider, failing};
pub use trial::{configured_providers, test_provider};

use std::{sync::Arc, time::Duration};

use claude_mem_events::{Envelope, EventLog};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{EventFilter, PendingTurn, Store};

use crate::providers::Refusal;
use claude_mem_capture::redaction::{self, redact};
use claude_mem_core::{
    app::App,
    failure::Failure,
    settings::{ProviderName, table::MAX_CONCURRENT_AGENTS},
};
use claude_mem_memory::store;

/// Options of a distill run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Skip turns that are still in progress.
    pub is_due_only: bool,
    /// Total time to wait for a failing provider.
    pub wait_max: Duration,
    /// Send these parked events, too.
    pub retry: Option<Retry>,
    /// Maximum number of turns in one plan.
    pub turns_max: usize,
    /// For `auto`: ignore failures before this time.
    pub failures_since_us: u64,
    /// Instead of the provider and the model of the settings.
    pub provider: Option<ProviderName>,
    pub model: Option<String>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            is_due_only: false,
            wait_max: Duration::ZERO,
            retry: None,
            turns_max: usize::MAX,
            failures_since_us: 0,
            provider: None,
            model: None,
        }
    }
}

/// Parked events to send again.
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// Prefixes of session or event ids; empty for all.
    pub ids: Vec<String>,
}

impl Retry {
    /// The selected parked turns.
    pub fn parked(&self, store: &Store) -> Result<Vec<PendingTurn>, Failure> {
        Ok(self.selected(store.parked_turns(&EventFilter::default())?))
    }

    /// The selected turns, parked and pending.
    fn turns(&self, store: &Store) -> Result<Vec<PendingTurn>, Failure> {
        let mut turns = store.parked_turns(&EventFilter::default())?;
        turns.extend(store.pending_turns(&EventFilter::default(), usize::MAX)?);
        turns.sort_by_key(|turn| (turn.session, turn.turn));
        Ok(self.selected(turns))
    }

    fn selected(&self, mut turns: Vec<PendingTurn>) -> Vec<PendingTurn> {
        turns.retain(|turn| {
            let is_selected = |id: &String| {
                let mut events = turn.pending.iter().map(|pending| pending.id.to_string());
                turn.content_session.starts_with(id) || events.any(|event| event.starts_with(id))
            };
            self.ids.is_empty() || self.ids.iter().any(is_selected)
        });
        turns
    }
}

/// Result of a distill run.
#[derive(Debug, Default)]
pub struct Distilled {
    pub report: RunReport,
    /// Empty if no request was sent.
    pub provider: String,
    pub model: String,
    /// Events folded.
    pub folded: u64,
}

/// Distills and folds pending events until none is left or the provider fails. One process distills
/// at a time; others wait here.
pub fn distill(app: &mut App, options: &RunOptions) -> Result<Distilled, Failure> {
    let mut store = store::open(app)?;
    let lock = take_lock(app)?;
    let mut distilled = Distilled::default();
    // Started by the user, so retry providers that failed before.
    let failures_since_us = app.clock.now().as_microsecond().cast_unsigned();
    let loop_options = RunOptions { failures_since_us, ..options.clone() };
    let mut distill_loop = DistillLoop::new(loop_options, Arc::default(), || ()).with_lock(lock);
    loop {
        let log = store::open_log(app)?;
        distilled.folded += store::fold(&mut store, &log)?.events;
        let is_last = options.retry.is_some() && distilled.report != RunReport::default();
        if is_last && distilled.report.stopped.is_none() {
            return Ok(distilled);
        }
        if let Some(stopped) = &distilled.report.stopped {
            let Some(next) = distill_loop.fallback(app, &store)? else { return Ok(distilled) };
            let (who, why) = (&distilled.provider, stopped.message());
            app.output.say(format_args!("{who} is unavailable: {why}; using {next} instead"));
            distilled.report.stopped = None;
        }
        let round = distill_loop.plan(app, &store)?;
        if let LoopState::Closed(stopped, _) = round.state {
            distilled.report.stopped = Some(stopped);
        } else if distill_loop.running().is_empty() {
            return Ok(distilled);
        } else {
            distilled.report.add(distill_loop.run_to_end()?);
        }
        let (provider, model) = distill_loop.provider().unwrap_or_default();
        (distilled.provider, distilled.model) = (provider.into(), model.into());
    }
}

/// Takes the distill lock, with a message if it has to wait.
pub fn take_lock(app: &mut App) -> Result<DistillLock, Failure> {
    let output = &mut app.output;
    let waiting = || output.say("another claude-mem is distilling; waiting for it to finish");
    DistillLock::take(&app.paths.data, waiting)
        .map_err(|error| Failure::new(format!("cannot lock {}: {error}", app.paths.data.display())))
}

/// Estimated cost of distilling all events that are pending in a database and its log. `store`
/// knows which providers fail.
pub fn estimate(
    app: &App,
    store: &Store,
    (pending, log): (&Store, &Log),
) -> Result<Estimate, Failure> {
    let prompt_set = PromptSet::load(app, store, &Overrides::default())?;
    let turns = pending.pending_turns(&EventFilter::default(), usize::MAX)?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let plan = Plan::new(pending, turns, None, &prompt_set.batches(false), now_us)?;
    Ok(Estimate::of(&plan, &prompt_set, log)?)
}

/// Records that the provider cannot be used, for `status` and `doctor`. All events stay pending.
fn record_refusal(
    app: &App,
    prompt_set: &PromptSet,
    refusal: &Refusal,
) -> Result<Stopped, Failure> {
    let mut events = EventLog::open(&app.paths.log(), Options::default())?;
    let (mut envelope, mut failed) =
        (Envelope::default(), run::failed(prompt_set, 0, refusal).into());
    redact(&mut envelope, &mut failed, redaction::policy(&app.settings));
    events.record(run::new_id(app.clock), &envelope, &failed)?;
    let (class, message) = (refusal.class, refusal.message.clone());
    Ok(Stopped::Provider { class, message })
}

/// Number of sessions distilled concurrently.
pub fn concurrency(app: &App) -> usize {
    app.settings.get(&MAX_CONCURRENT_AGENTS)
}
