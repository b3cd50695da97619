//! The ask step: put what is planned to the agent, and record what it says.
//!
//! Every answer is appended to the log, and on disk, before the next question of its session is put. Killed
//! at any moment, at most the questions under way are asked again. No table is touched.

use std::{
    collections::VecDeque,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use claude_mem_events::{AgentFailed, AgentReplied, Envelope, Event, EventLog, FailureClass, Id};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{
    is_parked_after,
    xml::{Reply, Verdict, read_reply},
};

use crate::providers::{Answer, Cancel, Concern, Refusal, Spent};
use crate::{
    admission::{Gate, Stopped},
    asker::{Agent, Words},
    plan::{Plan, Planned, SessionPlan},
    recap::{Line, digest, lines},
    turn_input::Loaded,
};
use claude_mem_capture::redaction::{self, redact};
use claude_mem_core::{app::App, clock::Clock, failure::Failure};
use claude_mem_privacy::Policy;

/// What a run of questions came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Asked {
    /// Questions answered.
    pub answered: usize,
    /// Questions given up on: they wait until the user retries them.
    pub parked: usize,
    /// Events that the answered ones were about, by id.
    pub events: Vec<[u8; 16]>,
    /// Observations in the answers.
    pub observations: usize,
    /// Summaries in the answers.
    pub summaries: usize,
    /// What all of it cost, failures included.
    pub spent: Spent,
    /// Why it ended early, if it did.
    pub stopped: Option<Stopped>,
}

impl Asked {
    /// Adds another run.
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.parked += other.parked;
        self.events.extend(other.events);
        self.observations += other.observations;
        self.summaries += other.summaries;
        self.spent.add(&other.spent);
        self.stopped = other.stopped.or(self.stopped.take());
    }
}

/// All that asking needs.
pub struct Asker<'a> {
    words: &'a Words,
    agent: &'a Agent,
    gate: &'a Gate,
    log: Log,
    events: Mutex<EventLog>,
    policy: Policy,
    clock: Clock,
    generation: u32,
    done: Mutex<Asked>,
    progress: &'a (dyn Fn(&Asked) -> bool + Sync),
    is_over: AtomicBool,
    cancel: Cancel,
}

impl<'a> Asker<'a> {
    /// Prepares to ask. `progress` is told after each question, and says whether to put another one.
    pub fn new(
        app: &App,
        (words, agent, gate): (&'a Words, &'a Agent, &'a Gate),
        generation: u32,
        progress: &'a (dyn Fn(&Asked) -> bool + Sync),
    ) -> Result<Self, Failure> {
        let dir = app.paths.log();
        Ok(Self {
            words,
            agent,
            gate,
            log: Log::open(&dir, Options::default())?,
            events: Mutex::new(EventLog::open(&dir, Options::default())?),
            policy: redaction::policy(&app.settings),
            clock: app.clock,
            generation,
            done: Mutex::default(),
            progress,
            is_over: AtomicBool::new(false),
            cancel: Cancel::default(),
        })
    }

    /// Lets another thread cancel all of it.
    #[must_use]
    pub fn cancelled_by(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Asks all of it: sessions side by side, each in order.
    pub fn run(self, plan: Plan, concurrency: usize) -> Asked {
        let threads = concurrency.clamp(1, plan.sessions.len().max(1));
        let sessions = Mutex::new(VecDeque::from(plan.sessions));
        let next = || lock(&sessions).pop_front();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while let Some(session) = next() {
                        if !self.session(session) {
                            return;
                        }
                    }
                });
            }
        });
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_over = self.is_over.into_inner();
        done.stopped = self.gate.stopped().or(is_over.then_some(Stopped::Cancelled));
        done
    }

    /// Asks about one session; says whether to go on with others.
    fn session(&self, session: SessionPlan) -> bool {
        let mut told = session.lines;
        for planned in &session.questions {
            let loaded = match Loaded::read(&self.log, planned) {
                Ok(Some(loaded)) => loaded,
                Ok(None) => continue,
                Err(error) => {
                    self.gate.stop(Stopped::Broken(error.to_string()));
                    return false;
                }
            };
            debug_assert_eq!(loaded.envelope.session, session.content_session);
            if !self.question(planned, &loaded, &mut told) {
                return false;
            }
        }
        true
    }

    /// Asks one question until it is answered or given up on; says whether to go on.
    fn question(&self, planned: &Planned, loaded: &Loaded, told: &mut Vec<Line>) -> bool {
        let first_at_us = planned.batch.sources.first().map_or(0, |source| source.at_us);
        let digest = digest(told, first_at_us);
        // Attempts of the past are not those of a reprocessing.
        let mut attempt = if self.generation == 0 { planned.batch.attempt() } else { 1 };
        let expected = match self.words.are_free() {
            true => Spent::default(),
            false => self.words.ask(loaded, digest.as_deref(), None).expected(),
        };
        loop {
            if self.is_over.load(Ordering::SeqCst) {
                return false;
            }
            let Some(pass) = self.gate.pass(&expected) else { return false };
            let asked = self.agent.ask(self.words, loaded, digest.as_deref(), &self.cancel);
            let read = asked.and_then(|answer| self.read(answer));
            log_response(loaded, read.as_ref().map(|(answer, _)| answer));
            match &read {
                Ok((answer, _)) => self.gate.succeeded(&pass, &answer.spent),
                // It says nothing of the provider.
                Err(refusal) if self.cancel.is_cancelled() => self.gate.cancelled(&pass, refusal),
                Err(refusal) => self.gate.failed(&pass, refusal),
            }
            let counted = read.as_ref().err().map_or(0, |refusal| self.counted(refusal, attempt));
            let recorded = match &read {
                Ok((answer, reply)) => self.succeed(planned, loaded, attempt, answer, reply),
                Err(refusal) => self.fail(planned, loaded, counted, refusal),
            };
            if let Err(error) = recorded {
                self.gate.stop(Stopped::Broken(error.to_string()));
                return false;
            }
            match read {
                Ok((_, reply)) => {
                    let at_us = planned.batch.sources.last().map_or(0, |source| source.at_us);
                    told.extend(lines(&reply, at_us));
                    return true;
                }
                Err(_) if self.cancel.is_cancelled() => {
                    self.is_over.store(true, Ordering::SeqCst);
                    return false;
                }
                Err(refusal) => {
                    if is_parked_after(refusal.class, counted) {
                        lock(&self.done).parked += 1;
                        return true;
                    }
                    attempt += u32::from(counted > 0);
                }
            }
        }
    }

    /// The number of this attempt, or 0 if the failure says nothing about the request.
    fn counted(&self, refusal: &Refusal, attempt: u32) -> u32 {
        let is_attempt = refusal.concern == Concern::Question && !self.cancel.is_cancelled();
        if is_attempt { attempt } else { 0 }
    }

    /// Whether anything can be made of an answer.
    fn read(&self, answer: Answer) -> Result<(Answer, Reply), Refusal> {
        let reply = read_reply(&answer.text, &self.words.kinds);
        if reply.verdict == Verdict::Unreadable {
            let why = format!("{} answered with nothing that can be read", answer.model);
            let refusal = Refusal::new(FailureClass::Unreadable, why);
            return Err(Refusal { spent: answer.spent, reply: answer.text, ..refusal });
        }
        Ok((answer, reply))
    }

    fn succeed(
        &self,
        planned: &Planned,
        loaded: &Loaded,
        attempt: u32,
        answer: &Answer,
        reply: &Reply,
    ) -> Result<(), claude_mem_log::Error> {
        self.record(
            &loaded.envelope,
            AgentReplied {
                answers: planned.batch.answers(),
                provider: self.words.provider.clone(),
                model: answer.model.clone(),
                prompt_version: self.words.version.clone(),
                generation: self.generation,
                reply: answer.text.clone(),
                memory_session_id: answer.memory_session_id.clone().unwrap_or_default(),
                attempt,
                tokens_in: answer.spent.tokens_in,
                tokens_cached: answer.spent.tokens_cached,
                tokens_out: answer.spent.tokens_out,
                cost_micros: answer.spent.cost_micros.unwrap_or(0),
                duration_ms: u64::try_from(answer.duration.as_millis()).unwrap_or(u64::MAX),
            },
        )?;
        let mut done = lock(&self.done);
        done.answered += 1;
        done.events.extend(planned.batch.answers());
        done.observations += reply.observations.len();
        done.summaries += usize::from(reply.summary.is_some());
        done.spent.add(&answer.spent);
        if !(self.progress)(&done) {
            self.is_over.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn fail(
        &self,
        planned: &Planned,
        loaded: &Loaded,
        attempt: u32,
        refusal: &Refusal,
    ) -> Result<(), claude_mem_log::Error> {
        lock(&self.done).spent.add(&refusal.spent);
        // A wrong model is no question's fault, so that none is named.
        let is_of_settings =
            refusal.class == FailureClass::Invalid && refusal.concern == Concern::Provider;
        let answers = if is_of_settings { Vec::new() } else { planned.batch.answers() };
        let failed = failed(self.words, self.generation, refusal);
        self.record(&loaded.envelope, AgentFailed { answers, attempt, ..failed })
    }

    fn record(
        &self,
        envelope: &Envelope,
        event: impl Into<Event>,
    ) -> Result<(), claude_mem_log::Error> {
        let (mut envelope, mut event) = (envelope.clone(), event.into());
        redact(&mut envelope, &mut event, self.policy);
        let mut events = lock(&self.events);
        events.record(new_id(self.clock), &envelope, &event)?;
        // It was paid for: a loss of power shall not lose it. If that fails it is recorded all the same.
        let _ = events.sync();
        Ok(())
    }
}

/// A failure that says nothing of a question yet.
pub(crate) fn failed(words: &Words, generation: u32, refusal: &Refusal) -> AgentFailed {
    let wait = refusal.retry_after.unwrap_or_default().as_millis();
    AgentFailed {
        answers: Vec::new(),
        provider: words.provider.clone(),
        model: words.model.clone(),
        prompt_version: words.version.clone(),
        generation,
        class: refusal.class,
        message: refusal.message.clone(),
        reply: refusal.reply.clone(),
        attempt: 0,
        retry_after_ms: u64::try_from(wait).unwrap_or(u64::MAX),
        tokens_in: refusal.spent.tokens_in,
        tokens_out: refusal.spent.tokens_out,
        cost_micros: refusal.spent.cost_micros.unwrap_or(0),
    }
}

/// The id of an event that is recorded now.
pub(crate) fn new_id(clock: Clock) -> Id {
    Id::random(clock.now().as_microsecond().cast_unsigned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
fn log_response(loaded: &Loaded, response: Result<&Answer, &Refusal>) {
    let session = &loaded.envelope.session;
    match response {
        Ok(Answer { spent, .. }) => {
            let Spent { tokens_in, tokens_out, .. } = spent;
            tracing::debug!(session, tokens_in, tokens_out, "response received");
        }
        Err(refusal) => tracing::debug!(session, class = ?refusal.class, "request failed"),
    }
}
