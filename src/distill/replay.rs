//! Reprocessing: sends past events to a provider again, as a new generation.
//!
//! Requests of a generation are recorded in the log, so that an interrupted run continues where it
//! stopped. Its memories become visible all at once, when it is complete.

use std::time::Duration;

use claude_mem_events::{
    Envelope, Event, EventItem, EventLog, EventReader, Recorded, ReprocessFinished,
    ReprocessStarted,
};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{EventFilter, Generation, Reprocessing, Store};
use serde_json::Value;

use crate::{
    admission::Admission,
    plan::{Estimate, Plan},
    progress::with_progress,
    prompt_set::{Overrides, PromptSet, adopt_instructions},
    record_refusal,
    responder::Responder,
    run::{DistillRun, RunReport, new_id},
    spend::{caps, spent_today},
};
use claude_mem_core::{app::App, failure::Failure, format::count};
use claude_mem_memory::store;

/// Tolerance for the start time of two runs of the same command, such as `--since 3d`.
const SAME_MOMENT_US: u64 = 3600 * 1_000_000;

/// Total time to wait for a failing provider.
const WAIT_MAX: Duration = Duration::from_secs(900);

/// What to reprocess, and how.
#[derive(Debug, Clone, Default)]
pub struct ReplayRequest<'a> {
    pub range: EventFilter,
    pub overrides: Overrides<'a>,
    /// Send requests even where a response under the same prompts is recorded.
    pub is_fresh: bool,
    /// Keep the result for comparison only.
    pub is_shadow: bool,
}

impl ReplayRequest<'_> {
    /// Whether no events and no overrides are given. Then the database is rebuilt from recorded
    /// responses: no request is sent, and no generation becomes current.
    pub fn is_rebuild(&self) -> bool {
        let Overrides { provider, model, prompt, .. } = &self.overrides;
        let has_override = provider.is_some() || model.is_some() || prompt.is_some();
        self.range == EventFilter::default() && !has_override && !self.is_fresh && !self.is_shadow
    }
}

/// How to run a reprocessing.
#[derive(Debug, Clone, Copy)]
pub struct ReplayOptions {
    /// Apply the daily caps.
    pub is_limited: bool,
    /// Sessions to distill in parallel.
    pub concurrency: usize,
    /// Accept requests that failed for good.
    pub allows_gaps: bool,
    /// Print on stderr what it waits for.
    pub prints_waiting: bool,
}

/// A reprocessing that is ready to start or to continue.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "options and state of a run")]
pub struct PreparedReplay {
    pub prompt_set: PromptSet,
    pub generation: u32,
    /// It was started before, and interrupted.
    pub is_begun: bool,
    /// Whether it changes anything.
    pub is_needed: bool,
    /// Requests to send.
    pub plan: Plan,
    pub estimate: Estimate,
    /// Events in the range.
    pub events: u64,
    range: EventFilter,
    is_fresh: bool,
    is_shadow: bool,
}

impl PreparedReplay {
    /// Determines the requests. Sends and writes nothing.
    pub fn new(
        app: &App,
        store: &Store,
        log: &Log,
        request: &ReplayRequest<'_>,
    ) -> Result<Self, Failure> {
        let overrides = Overrides { requires_model: true, ..request.overrides.clone() };
        let prompt_set = PromptSet::load(app, store, &overrides)?;
        let generations = store.generations()?;
        let begun = generations
            .iter()
            .find(|begun| !request.is_rebuild() && is_same(begun, request, &prompt_set));
        let last = generations.first().map_or(0, |last| last.generation);
        let generation = begun.map_or(last + 1, |begun| begun.generation);
        let range = begun.map_or_else(|| request.range.clone(), |begun| begun.range.clone());
        let is_chosen = request.overrides.provider.is_some() || request.overrides.model.is_some();
        let by = Reprocessing {
            generation,
            prompt_version: (!request.is_fresh).then(|| prompt_set.version.clone()),
            model: is_chosen.then(|| prompt_set.model.clone()),
        };
        let turns = match request.is_rebuild() {
            true => Vec::new(),
            false => store.to_reprocess(&range, &by, usize::MAX)?,
        };
        let now_us = app.clock.now().as_microsecond().cast_unsigned();
        // An unfinished turn is not part of the past yet.
        let plan = Plan::new(store, turns, Some(&by), &prompt_set.batches(true), now_us)?;
        let is_begun = begun.is_some();
        let is_needed = !request.is_rebuild()
            && (is_begun
                || !plan.is_empty()
                || store.has_other_prompt_versions(&range, &prompt_set.version)?);
        Ok(Self {
            estimate: Estimate::of(&plan, &prompt_set, log)?,
            events: store.events_in(&range)?,
            prompt_set,
            generation,
            is_begun,
            is_needed,
            plan,
            range,
            is_fresh: request.is_fresh,
            is_shadow: request.is_shadow,
        })
    }

    /// Whether the estimate exceeds the rest of the daily caps.
    pub fn is_beyond_cap(&self, app: &App, store: &Store) -> Result<bool, Failure> {
        if self.prompt_set.is_free() {
            return Ok(false);
        }
        let mut spent = spent_today(store, app.clock)?.spent;
        spent.add(&self.estimate.spent);
        Ok(caps(&app.settings).reached(&spent).is_some())
    }

    /// Starts or continues it: sends all requests while `progress` returns true after each, and makes
    /// the generation visible at once, unless it is a shadow. The caller holds the distill lock.
    pub fn run(
        &mut self,
        app: &App,
        store: &mut Store,
        options: &ReplayOptions,
        progress: &(dyn Fn(&RunReport) -> bool + Sync),
    ) -> Result<RunReport, Failure> {
        let report = self.send(app, store, options, progress)?;
        progress(&report);
        // A response that could not be appended in time was spilled. It must be in the log before
        // ReprocessFinished.
        let log = store::open_log(app)?;
        let incomplete = self.incomplete(&report, options.allows_gaps);
        if incomplete.is_none() {
            self.finish(app)?;
        }
        store::fold(store, &log)?;
        incomplete.map_or(Ok(report), Err)
    }

    fn send(
        &mut self,
        app: &App,
        store: &Store,
        options: &ReplayOptions,
        progress: &(dyn Fn(&RunReport) -> bool + Sync),
    ) -> Result<RunReport, Failure> {
        if !self.is_begun {
            record(app, self.started())?;
            self.is_begun = true;
        }
        let plan = std::mem::take(&mut self.plan);
        if plan.is_empty() {
            return Ok(RunReport::default());
        }
        let responder = match Responder::open(app, &self.prompt_set) {
            Ok(responder) => responder,
            Err(refusal) => {
                let stopped = Some(record_refusal(app, &self.prompt_set, &refusal)?);
                return Ok(RunReport { stopped, ..RunReport::default() });
            }
        };
        let is_limited = options.is_limited && !self.prompt_set.is_free();
        let caps = is_limited.then(|| caps(&app.settings));
        let admission = Admission::new(caps, spent_today(store, app.clock)?, WAIT_MAX);
        let parts = (&self.prompt_set, &responder, &admission);
        let distill_run = DistillRun::new(app, parts, self.generation, progress)?;
        let run = || distill_run.all(plan, options.concurrency);
        Ok(match options.prints_waiting {
            true => with_progress(&admission, &self.prompt_set, run),
            false => run(),
        })
    }

    /// Why the generation is not complete after a run, if it is not. Requests that failed for good
    /// are accepted with `allows_gaps`.
    fn incomplete(&self, report: &RunReport, allows_gaps: bool) -> Option<Failure> {
        let (total, generation) = (self.estimate.requests, self.generation);
        let failure = match &report.stopped {
            Some(stopped) => {
                let left = count(total - report.answered, "request");
                Failure::new(format!("{}; {left} of {total} are pending", stopped.message()))
            }
            None if report.parked > 0 && !allows_gaps => {
                let reasons: Vec<&str> = report.reasons.iter().map(String::as_str).collect();
                let (failed, why) = (count(report.parked, "request"), reasons.join("; "));
                Failure::new(format!("{failed} of {total} failed: {why}"))
            }
            None => return None,
        };
        Some(
            failure
                .meaning(format!(
                    "generation {generation} is incomplete; the current memories are unchanged"
                ))
                .remedy("run the same command again to continue; responses are reused"),
        )
    }

    /// Records that the generation is complete and whether it becomes current. Its prompt is
    /// adopted first: memory must not change under a prompt that could not be stored.
    fn finish(&self, app: &App) -> Result<(), Failure> {
        if !self.is_shadow {
            self.prompt_set.adopt(app)?;
        }
        record(app, ReprocessFinished { generation: self.generation, is_current: !self.is_shadow })
    }

    fn started(&self) -> ReprocessStarted {
        ReprocessStarted {
            generation: self.generation,
            prompt_version: self.prompt_set.version.clone(),
            prompt: self.prompt_set.texts(),
            provider: self.prompt_set.provider.clone(),
            model: self.prompt_set.model.clone(),
            since_us: self.range.since_us,
            until_us: self.range.until_us,
            project: self.range.project.clone().unwrap_or_default(),
            session: self.range.session.clone().unwrap_or_default(),
            is_fresh: self.is_fresh,
            is_shadow: self.is_shadow,
        }
    }
}

/// Makes a complete generation and its prompt the current ones. Generation 0 is the original
/// memory, with the prompt of the settings.
pub fn adopt(app: &App, store: &Store, log: &Log, generation: u32) -> Result<(), Failure> {
    let generations = store.generations()?;
    let found = generations.iter().find(|found| found.generation == generation);
    let prompt = found.map(|found| prompt_of(log, found)).transpose()?;
    // A generation made by the rules has no prompt and leaves the current one unchanged.
    if prompt.as_ref().is_none_or(|texts| !texts.is_null()) {
        let instructions = prompt.as_ref().and_then(|texts| texts["instructions"].as_str());
        adopt_instructions(app, instructions)?;
    }
    record(app, ReprocessFinished { generation, is_current: true })
}

/// The prompt texts of a generation; null if there are none.
fn prompt_of(log: &Log, generation: &Generation) -> Result<Value, Failure> {
    let mut reader = EventReader::from(log, generation.seq);
    let started = match reader.next()? {
        Some(EventItem::Event(Recorded { event: Event::ReprocessStarted(started), .. })) => started,
        _ => ReprocessStarted::default(),
    };
    Ok(serde_json::from_str(&started.prompt).unwrap_or_default())
}

fn record(app: &App, event: impl Into<Event>) -> Result<(), Failure> {
    let mut events = EventLog::open(&app.paths.log(), Options::default())?;
    events.record(new_id(app.clock), &Envelope::default(), &event.into())?;
    // Events that follow it in the log must not outlive it in a crash.
    Ok(events.sync()?)
}

/// Whether an interrupted reprocessing matches this request.
fn is_same(begun: &Generation, request: &ReplayRequest<'_>, prompt_set: &PromptSet) -> bool {
    let is_near = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (Some(left), Some(right)) => left.abs_diff(right) <= SAME_MOMENT_US,
        (left, right) => left == right,
    };
    !begun.is_finished
        && begun.prompt_version == prompt_set.version
        && begun.provider == prompt_set.provider
        && begun.model == prompt_set.model
        && begun.is_fresh == request.is_fresh
        && begun.is_shadow == request.is_shadow
        && begun.range.project == request.range.project
        && begun.range.session == request.range.session
        && is_near(begun.range.since_us, request.range.since_us)
        && is_near(begun.range.until_us, request.range.until_us)
}
