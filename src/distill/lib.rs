//! The projector: from events to memory, in two steps that never mix.
//!
//! *Ask* finds events that no reply covers, puts them to the agent and appends its replies to the log. It is
//! slow, costs money, may fail and is retried; it touches no table. *Fold* reads the log in order and
//! writes rows; it is pure and fast, and lives in `projections`.

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

pub use admission::{Gate, Stopped};
pub use asker::{Agent, Wishes, Words, setup};
pub use batches::Limits;
pub use estimate::Estimate;
pub use generation_diff::{Change, changes};
pub use lock::AskLock;
pub use plan::{Plan, SessionPlan};
pub use replay::{Prepared, Request, adopt};
pub use request::{Asked, Asker};
pub use spend::{caps, dollars, spent_today, tokens};

use std::time::Duration;

use claude_mem_events::{Envelope, EventLog};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{EventFilter, PendingTurn, Store};

use crate::providers::Refusal;
use claude_mem_capture::redaction::{self, redact};
use claude_mem_core::{app::App, failure::Failure, settings::table::MAX_CONCURRENT_AGENTS};
use claude_mem_memory::store;

/// How a run of the projector goes about it.
#[derive(Debug, Clone)]
pub struct Manner {
    /// When batches are full or old enough.
    pub limits: Limits,
    /// How long to wait in all for a provider that does not answer.
    pub wait_max: Duration,
    /// Ask about what was given up on, too.
    pub retry: Option<Retry>,
}

/// What was given up on and is asked once more.
#[derive(Debug, Clone, Default)]
pub struct Retry {
    /// Sessions or events, by the beginning of their ids; empty for all.
    pub ids: Vec<String>,
}

impl Retry {
    /// The turns that are meant: those that were given up on.
    pub fn parked(&self, store: &Store) -> Result<Vec<PendingTurn>, Failure> {
        Ok(self.meant(store.parked_turns(&EventFilter::default())?))
    }

    /// The turns that are meant: those that were given up on, and those that wait.
    fn turns(&self, store: &Store) -> Result<Vec<PendingTurn>, Failure> {
        let mut turns = store.parked_turns(&EventFilter::default())?;
        turns.extend(store.pending_turns(&EventFilter::default(), usize::MAX)?);
        turns.sort_by_key(|turn| (turn.session, turn.turn));
        Ok(self.meant(turns))
    }

    fn meant(&self, mut turns: Vec<PendingTurn>) -> Vec<PendingTurn> {
        turns.retain(|turn| {
            let is_meant = |id: &String| {
                let mut events = turn.pending.iter().map(|pending| pending.id.to_string());
                turn.content_session.starts_with(id) || events.any(|event| event.starts_with(id))
            };
            self.ids.is_empty() || self.ids.iter().any(is_meant)
        });
        turns
    }
}

/// What a run of the projector came to.
#[derive(Debug, Default)]
pub struct Distilled {
    /// What was asked.
    pub asked: Asked,
    /// Who was asked, and which model; empty if nobody was.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Events folded.
    pub folded: u64,
}

/// Asks and folds what is outstanding, until nothing is left or nothing more can be done. One process at a
/// time asks; others wait here for it.
pub fn distill(app: &mut App, manner: &Manner) -> Result<Distilled, Failure> {
    let mut store = store::open(app)?;
    let _asking = take_lock(app)?;
    let mut distilled = Distilled::default();
    // Run by hand, so retry what failed before.
    let failures_since_us = app.clock.now().as_microsecond().cast_unsigned();
    let wishes = Wishes { failures_since_us, ..Wishes::default() };
    loop {
        let log = store::open_log(app)?;
        distilled.folded += store::fold(&mut store, &log)?.events;
        let mut turns = match &manner.retry {
            Some(retry) => retry.turns(&store)?,
            None => store.pending_turns(&EventFilter::default(), usize::MAX)?,
        };
        // A reply that could not be appended in time was put aside, and may be folded only later. Whatever
        // was answered in this run is not asked again in it.
        let answered = &distilled.asked.events;
        for turn in &mut turns {
            turn.pending.retain(|pending| !answered.contains(pending.id.as_bytes()));
        }
        let plan = plan(app, &store, turns, manner)?;
        if plan.is_empty() {
            return Ok(distilled);
        }
        let words = Words::load(app, &store, &wishes)?;
        let asked = ask_all(app, &store, &words, plan, manner)?;
        (distilled.provider, distilled.model) = (words.provider.clone(), words.model.clone());
        let is_done = asked.stopped.is_some() || asked.answered == 0 || manner.retry.is_some();
        distilled.asked.add(asked);
        if is_done {
            let log = store::open_log(app)?;
            distilled.folded += store::fold(&mut store, &log)?.events;
            let next = Words::load(app, &store, &wishes)?.provider;
            let stopped = distilled.asked.stopped.take();
            if let (Some(Stopped::Provider { .. }), false) = (&stopped, next == words.provider) {
                let why = stopped.map(|stopped| stopped.message()).unwrap_or_default();
                let who = &words.provider;
                app.output.say(format_args!("{who} cannot be asked: {why}; asking {next} instead"));
                continue;
            }
            distilled.asked.stopped = stopped;
            return Ok(distilled);
        }
    }
}

/// Takes the right to ask, and says so if it has to be waited for.
pub fn take_lock(app: &mut App) -> Result<AskLock, Failure> {
    let output = &mut app.output;
    let waiting = || output.say("another claude-mem is asking; waiting for it to end");
    AskLock::take(&app.paths.data, waiting).map_err(|error| {
        Failure::new(format!("{} cannot be locked: {error}", app.paths.data.display()))
    })
}

/// What asking about everything that waits will take.
pub fn estimate(app: &App, store: &Store, log: &Log) -> Result<Estimate, Failure> {
    let limits = Limits { age_max_us: None, ..Limits::default() };
    let manner = Manner { limits, wait_max: Duration::ZERO, retry: None };
    let plan =
        plan(app, store, store.pending_turns(&EventFilter::default(), usize::MAX)?, &manner)?;
    let words = Words::load(app, store, &Wishes::default())?;
    Ok(Estimate::of(&plan, &words, log)?)
}

fn plan(
    app: &App,
    store: &Store,
    turns: Vec<PendingTurn>,
    manner: &Manner,
) -> Result<Plan, Failure> {
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    Ok(Plan::new(store, turns, None, &manner.limits, now_us)?)
}

fn ask_all(
    app: &App,
    store: &Store,
    words: &Words,
    plan: Plan,
    manner: &Manner,
) -> Result<Asked, Failure> {
    let agent = match Agent::open(app, words) {
        Ok(agent) => agent,
        Err(refusal) => return refused(app, words, &refusal),
    };
    let caps = (!words.are_free()).then(|| caps(&app.settings));
    let gate = Gate::new(caps, spent_today(store, app.clock)?, manner.wait_max);
    let asker = Asker::new(app, (words, &agent, &gate), 0, &|_| true)?;
    Ok(progress::watched(&gate, words, || asker.run(plan, concurrency(app))))
}

/// Nobody can be asked. That is recorded, so that `status` and `doctor` can tell, and everything waits.
pub fn refused(app: &App, words: &Words, refusal: &Refusal) -> Result<Asked, Failure> {
    let mut events = EventLog::open(&app.paths.log(), Options::default())?;
    let (mut envelope, mut failed) =
        (Envelope::default(), request::failed(words, 0, refusal).into());
    redact(&mut envelope, &mut failed, redaction::policy(&app.settings));
    events.record(request::new_id(app.clock), &envelope, &failed)?;
    let (class, message) = (refusal.class, refusal.message.clone());
    Ok(Asked { stopped: Some(Stopped::Provider { class, message }), ..Asked::default() })
}

/// How many sessions are asked about side by side.
pub fn concurrency(app: &App) -> usize {
    app.settings.get(&MAX_CONCURRENT_AGENTS)
}
