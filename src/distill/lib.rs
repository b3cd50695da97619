//! Distills pending events into memories.
//!
//! Two steps that never mix: *distill* sends pending events to a provider and appends its responses
//! to the log. It is slow, costs money, may fail and is retried; it writes no table. *Fold* reads
//! the log in order and writes rows. It is pure and fast, and lives in `projections`.

mod admission;
mod asker;
mod batches;
mod conversations;
mod escape;
mod estimate;
mod generation_diff;
mod lock;
mod plan;
mod progress;
pub mod prompts;
pub mod providers;
mod recap;
mod replay;
mod request;
mod spend;
pub mod status;
mod tool_render;
mod turn_input;
pub mod turn_prompt;

pub use admission::{Admission, Stopped};
pub use asker::{Overrides, PromptSet, Responder, setup};
pub use batches::Limits;
pub use estimate::Estimate;
pub use generation_diff::{Change, changes};
pub use lock::DistillLock;
pub use plan::{Plan, SessionPlan};
pub use replay::{Prepared, ReplayRequest, adopt};
pub use request::{DistillRun, RunReport};
pub use spend::{caps, dollars, spent_today, tokens};

use std::time::Duration;

use claude_mem_events::{Envelope, EventLog};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{EventFilter, PendingTurn, Store};

use crate::providers::Refusal;
use claude_mem_capture::redaction::{self, redact};
use claude_mem_core::{app::App, failure::Failure, settings::table::MAX_CONCURRENT_AGENTS};
use claude_mem_memory::store;

/// Options of a distill run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// Skip turns that are still in progress.
    pub is_due_only: bool,
    /// Total time to wait for a failing provider.
    pub wait_max: Duration,
    /// Also send parked events.
    pub retry: Option<Retry>,
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
    let _lock = take_lock(app)?;
    let mut distilled = Distilled::default();
    // Started by the user, so retry providers that failed before.
    let failures_since_us = app.clock.now().as_microsecond().cast_unsigned();
    let overrides = Overrides { failures_since_us, ..Overrides::default() };
    loop {
        let log = store::open_log(app)?;
        distilled.folded += store::fold(&mut store, &log)?.events;
        let mut turns = match &options.retry {
            Some(retry) => retry.turns(&store)?,
            None => store.pending_turns(&EventFilter::default(), usize::MAX)?,
        };
        // A response that could not be appended in time is folded later. Do not send its events
        // twice in one run.
        let answered = &distilled.report.events;
        for turn in &mut turns {
            turn.pending.retain(|pending| !answered.contains(pending.id.as_bytes()));
        }
        turns.retain(|turn| !turn.pending.is_empty());
        if turns.is_empty() {
            return Ok(distilled);
        }
        let prompt_set = PromptSet::load(app, &store, &overrides)?;
        let plan = plan(app, &store, turns, prompt_set.batches(options.is_due_only))?;
        if plan.is_empty() {
            return Ok(distilled);
        }
        let report = send_all(app, &store, &prompt_set, plan, options)?;
        (distilled.provider, distilled.model) =
            (prompt_set.provider.clone(), prompt_set.model.clone());
        let is_done = report.stopped.is_some() || report.answered == 0 || options.retry.is_some();
        distilled.report.add(report);
        if is_done {
            let log = store::open_log(app)?;
            distilled.folded += store::fold(&mut store, &log)?.events;
            let next = PromptSet::load(app, &store, &overrides)?.provider;
            let stopped = distilled.report.stopped.take();
            if let (Some(Stopped::Provider { .. }), false) = (&stopped, next == prompt_set.provider)
            {
                let why = stopped.map(|stopped| stopped.message()).unwrap_or_default();
                let who = &prompt_set.provider;
                app.output.say(format_args!("{who} is unavailable: {why}; using {next} instead"));
                continue;
            }
            distilled.report.stopped = stopped;
            return Ok(distilled);
        }
    }
}

/// Takes the distill lock, with a message if it has to wait.
pub fn take_lock(app: &mut App) -> Result<DistillLock, Failure> {
    let output = &mut app.output;
    let waiting = || output.say("another claude-mem is distilling; waiting for it to finish");
    DistillLock::take(&app.paths.data, waiting)
        .map_err(|error| Failure::new(format!("cannot lock {}: {error}", app.paths.data.display())))
}

/// Estimated cost of distilling all pending events.
pub fn estimate(app: &App, store: &Store, log: &Log) -> Result<Estimate, Failure> {
    let prompt_set = PromptSet::load(app, store, &Overrides::default())?;
    let turns = store.pending_turns(&EventFilter::default(), usize::MAX)?;
    let plan = plan(app, store, turns, prompt_set.batches(false))?;
    Ok(Estimate::of(&plan, &prompt_set, log)?)
}

fn plan(
    app: &App,
    store: &Store,
    turns: Vec<PendingTurn>,
    limits: Limits,
) -> Result<Plan, Failure> {
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    Ok(Plan::new(store, turns, None, &limits, now_us)?)
}

fn send_all(
    app: &App,
    store: &Store,
    prompt_set: &PromptSet,
    plan: Plan,
    options: &RunOptions,
) -> Result<RunReport, Failure> {
    let responder = match Responder::open(app, prompt_set) {
        Ok(responder) => responder,
        Err(refusal) => return record_refusal(app, prompt_set, &refusal),
    };
    let caps = (!prompt_set.is_free()).then(|| caps(&app.settings));
    let admission = Admission::new(caps, spent_today(store, app.clock)?, options.wait_max);
    let run = DistillRun::new(app, (prompt_set, &responder, &admission), 0, &|_| true)?;
    Ok(progress::with_progress(&admission, prompt_set, || run.run(plan, concurrency(app))))
}

/// Records that the provider cannot be used, for `status` and `doctor`. All events stay pending.
pub fn record_refusal(
    app: &App,
    prompt_set: &PromptSet,
    refusal: &Refusal,
) -> Result<RunReport, Failure> {
    let mut events = EventLog::open(&app.paths.log(), Options::default())?;
    let (mut envelope, mut failed) =
        (Envelope::default(), request::failed(prompt_set, 0, refusal).into());
    redact(&mut envelope, &mut failed, redaction::policy(&app.settings));
    events.record(request::new_id(app.clock), &envelope, &failed)?;
    let (class, message) = (refusal.class, refusal.message.clone());
    Ok(RunReport { stopped: Some(Stopped::Provider { class, message }), ..RunReport::default() })
}

/// Number of sessions distilled concurrently.
pub fn concurrency(app: &App) -> usize {
    app.settings.get(&MAX_CONCURRENT_AGENTS)
}
