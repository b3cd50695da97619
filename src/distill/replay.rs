//! Reprocessing: some of the past is put to the agent again, as a generation of its own.
//!
//! What a generation has asked is in the log, so that it can be interrupted at any moment and goes on where it
//! stopped. Its memories are shown all at once, when it is complete.

use std::time::Duration;

use claude_mem_events::{
    Envelope, Event, EventItem, EventLog, EventReader, Recorded, ReprocessFinished,
    ReprocessStarted,
};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{EventFilter, Generation, Reprocessing, Store};
use serde_json::Value;

use crate::{
    admission::Gate,
    asker::{Agent, Wishes, Words, adopt_instructions},
    batches::Limits,
    estimate::Estimate,
    plan::Plan,
    progress::watched,
    refused,
    request::{Asked, Asker, new_id},
    spend::{caps, spent_today},
};
use claude_mem_core::{app::App, failure::Failure};

/// Two runs of the same command mean the same beginning, even if it was given as `3d`.
const SAME_MOMENT_US: u64 = 3600 * 1_000_000;

/// A provider that does not answer is waited for so long.
const WAIT_MAX: Duration = Duration::from_secs(900);

/// What to reprocess, and how.
#[derive(Debug, Clone, Default)]
pub struct Request<'a> {
    /// Which events.
    pub range: EventFilter,
    /// In which words, and by whom.
    pub wishes: Wishes<'a>,
    /// Ask again even where a reply under the same prompts is recorded.
    pub is_fresh: bool,
    /// Make it to be compared.
    pub is_shadow: bool,
}

impl Request<'_> {
    /// Whether it names neither events nor another way to ask. Then memory is rebuilt as it is: nobody is
    /// asked, and nothing becomes current that was not.
    pub fn is_rebuild(&self) -> bool {
        let Wishes { provider, model, prompt, .. } = &self.wishes;
        let has_wish = provider.is_some() || model.is_some() || prompt.is_some();
        self.range == EventFilter::default() && !has_wish && !self.is_fresh && !self.is_shadow
    }
}

/// A reprocessing that is ready to begin, or to go on.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "how it was asked for, and how it stands")]
pub struct Prepared {
    /// The words in force.
    pub words: Words,
    /// Its number.
    pub generation: u32,
    /// It was begun before, and interrupted.
    pub is_begun: bool,
    /// Something will be different afterwards.
    pub is_needed: bool,
    /// What is left to ask.
    pub plan: Plan,
    /// What that will take.
    pub estimate: Estimate,
    /// How many events there are in the range.
    pub events: u64,
    /// A person waits for it at a terminal or reads its stderr.
    pub is_watched: bool,
    range: EventFilter,
    is_fresh: bool,
    is_shadow: bool,
}

impl Prepared {
    /// Finds out what there is to do. Nothing is asked or written.
    pub fn new(
        app: &App,
        store: &Store,
        log: &Log,
        request: &Request<'_>,
    ) -> Result<Self, Failure> {
        let wishes = Wishes { wants_model: true, ..request.wishes.clone() };
        let words = Words::load(app, store, &wishes)?;
        let generations = store.generations()?;
        let begun = generations
            .iter()
            .find(|begun| !request.is_rebuild() && is_same(begun, request, &words));
        let last = generations.first().map_or(0, |last| last.generation);
        let generation = begun.map_or(last + 1, |begun| begun.generation);
        let range = begun.map_or_else(|| request.range.clone(), |begun| begun.range.clone());
        let is_chosen = request.wishes.provider.is_some() || request.wishes.model.is_some();
        let by = Reprocessing {
            generation,
            prompt_version: (!request.is_fresh).then(|| words.version.clone()),
            model: is_chosen.then(|| words.model.clone()),
        };
        let turns = match request.is_rebuild() {
            true => Vec::new(),
            false => store.to_reprocess(&range, &by, usize::MAX)?,
        };
        let now_us = app.clock.now().as_microsecond().cast_unsigned();
        // A turn that is still going on is not yet the past.
        let plan = Plan::new(store, turns, Some(&by), &Limits::default(), now_us)?;
        let is_begun = begun.is_some();
        let is_needed = !request.is_rebuild()
            && (is_begun
                || !plan.is_empty()
                || store.has_other_prompt_versions(&range, &words.version)?);
        Ok(Self {
            estimate: Estimate::of(&plan, &words, log)?,
            events: store.events_in(&range)?,
            words,
            generation,
            is_begun,
            is_needed,
            plan,
            is_watched: false,
            range,
            is_fresh: request.is_fresh,
            is_shadow: request.is_shadow,
        })
    }

    /// Whether it would cost more than is left of the day.
    pub fn is_beyond_cap(&self, app: &App, store: &Store) -> Result<bool, Failure> {
        if self.words.are_free() {
            return Ok(false);
        }
        let mut spent = spent_today(store, app.clock)?.spent;
        spent.add(&self.estimate.spent);
        Ok(caps(&app.settings).reached(&spent).is_some())
    }

    /// Begins, or goes on, and asks everything, as long as `progress` says so after each question. With
    /// `is_limited` the day's caps hold.
    pub fn run(
        &mut self,
        app: &App,
        store: &Store,
        (is_limited, concurrency): (bool, usize),
        progress: &(dyn Fn(&Asked) -> bool + Sync),
    ) -> Result<Asked, Failure> {
        if !self.is_begun {
            record(app, self.started())?;
            self.is_begun = true;
        }
        let plan = std::mem::take(&mut self.plan);
        if plan.is_empty() {
            return Ok(Asked::default());
        }
        let agent = match Agent::open(app, &self.words) {
            Ok(agent) => agent,
            Err(refusal) => return refused(app, &self.words, &refusal),
        };
        let is_limited = is_limited && !self.words.are_free();
        let caps = is_limited.then(|| caps(&app.settings));
        let gate = Gate::new(caps, spent_today(store, app.clock)?, WAIT_MAX);
        let parts = (&self.words, &agent, &gate);
        let asker = Asker::new(app, parts, self.generation, progress)?;
        let run = || asker.run(plan, concurrency);
        Ok(if self.is_watched { watched(&gate, &self.words, run) } else { run() })
    }

    /// Records that everything was asked, and whether that is now what is remembered. Its prompt then stays
    /// in force; it is kept first, because memory must not change under a prompt that could not be.
    pub fn finish(&self, app: &App) -> Result<(), Failure> {
        if !self.is_shadow {
            self.words.put_in_force(app)?;
        }
        record(app, ReprocessFinished { generation: self.generation, is_current: !self.is_shadow })
    }

    fn started(&self) -> ReprocessStarted {
        ReprocessStarted {
            generation: self.generation,
            prompt_version: self.words.version.clone(),
            prompt: self.words.texts(),
            provider: self.words.provider.clone(),
            model: self.words.model.clone(),
            since_us: self.range.since_us,
            until_us: self.range.until_us,
            project: self.range.project.clone().unwrap_or_default(),
            session: self.range.session.clone().unwrap_or_default(),
            is_fresh: self.is_fresh,
            is_shadow: self.is_shadow,
        }
    }
}

/// Makes a complete generation the one to show, and its prompt the one in force. Generation 0 is memory as it
/// was first made, under the prompt of the settings.
pub fn adopt(app: &App, store: &Store, log: &Log, generation: u32) -> Result<(), Failure> {
    let generations = store.generations()?;
    let found = generations.iter().find(|found| found.generation == generation);
    let prompt = found.map(|found| prompt_of(log, found)).transpose()?;
    // What rules made has no prompt, and leaves the one in force as it is.
    if prompt.as_ref().is_none_or(|texts| !texts.is_null()) {
        let instructions = prompt.as_ref().and_then(|texts| texts["instructions"].as_str());
        adopt_instructions(app, instructions)?;
    }
    record(app, ReprocessFinished { generation, is_current: true })
}

/// The prompt texts that a generation was made with; null if there are none.
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
    // What follows it in the log must not survive it.
    Ok(events.sync()?)
}

/// Whether an interrupted reprocessing is the one that is asked for.
fn is_same(begun: &Generation, request: &Request<'_>, words: &Words) -> bool {
    let is_near = |left: Option<u64>, right: Option<u64>| match (left, right) {
        (Some(left), Some(right)) => left.abs_diff(right) <= SAME_MOMENT_US,
        (left, right) => left == right,
    };
    !begun.is_finished
        && begun.prompt_version == words.version
        && begun.provider == words.provider
        && begun.model == words.model
        && begun.is_fresh == request.is_fresh
        && begun.is_shadow == request.is_shadow
        && begun.range.project == request.range.project
        && begun.range.session == request.range.session
        && is_near(begun.range.since_us, request.range.since_us)
        && is_near(begun.range.until_us, request.range.until_us)
}
