//! Sends planned requests to the provider and records the responses.
//!
//! Every response is appended to the log and synced before the next request of its session. After a
//! crash, at most the requests in flight are sent again. Writes no table.

use std::{
    collections::{BTreeSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use claude_mem_events::{AgentFailed, AgentReplied, Envelope, Event, EventLog, FailureClass, Id};
use claude_mem_log::{Log, Options};
use claude_mem_projections::{
    RecapEntry, is_parked_after,
    xml::{Reply, Verdict, read_reply},
};

use crate::providers::{Cancel, Concern, Refusal, Request, Response, Spent, rules};
use crate::{
    admission::{Admission, Stopped},
    batches::PlannedRequest,
    plan::{Plan, SessionPlan},
    prompt_set::PromptSet,
    recap,
    responder::{EarlierMemories, Responder},
    said_rules::demoted,
    turn_input::TurnInput,
};
use claude_mem_capture::redaction::{self, redact};
use claude_mem_core::{app::App, clock::Clock, failure::Failure};
use claude_mem_privacy::Policy;

/// The response of the built-in rules to a turn without content.
const NOTHING: &str = "<skip/>\n<skip_summary reason=\"nothing was done or learned\"/>\n";

/// Result of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunReport {
    /// Requests with a response.
    pub answered: usize,
    /// Requests parked until the user retries them.
    pub parked: usize,
    /// Why they failed, each reason once.
    pub reasons: BTreeSet<String>,
    /// Ids of the distilled events.
    pub events: Vec<[u8; 16]>,
    pub observations: usize,
    pub summaries: usize,
    /// Total cost, including failures.
    pub spent: Spent,
    /// Why it ended early, if it did.
    pub stopped: Option<Stopped>,
}

impl RunReport {
    pub fn add(&mut self, other: Self) {
        self.answered += other.answered;
        self.parked += other.parked;
        self.reasons.extend(other.reasons);
        self.events.extend(other.events);
        self.observations += other.observations;
        self.summaries += other.summaries;
        self.spent.add(&other.spent);
        self.stopped = other.stopped.or(self.stopped.take());
    }
}

/// A run over a plan.
pub(crate) struct DistillRun<'a> {
    prompt_set: &'a PromptSet,
    responder: &'a Responder,
    admission: &'a Admission,
    log: Log,
    events: Mutex<EventLog>,
    policy: Policy,
    clock: Clock,
    generation: u32,
    done: Mutex<RunReport>,
    progress: &'a (dyn Fn(&RunReport) -> bool + Sync),
    is_stopped: AtomicBool,
    cancel: Cancel,
}

impl<'a> DistillRun<'a> {
    /// `progress` is called after each response and returns whether to continue.
    pub(crate) fn new(
        app: &App,
        (prompt_set, responder, admission): (&'a PromptSet, &'a Responder, &'a Admission),
        generation: u32,
        progress: &'a (dyn Fn(&RunReport) -> bool + Sync),
    ) -> Result<Self, Failure> {
        let dir = app.paths.log();
        Ok(Self {
            prompt_set,
            responder,
            admission,
            log: Log::open(&dir, Options::default())?,
            events: Mutex::new(EventLog::open(&dir, Options::default())?),
            policy: redaction::policy(&app.settings),
            clock: app.clock,
            generation,
            done: Mutex::default(),
            progress,
            is_stopped: AtomicBool::new(false),
            cancel: Cancel::default(),
        })
    }

    /// Lets another thread cancel the run.
    #[must_use]
    pub(crate) fn cancelled_by(self, cancel: Cancel) -> Self {
        Self { cancel, ..self }
    }

    /// Sends all requests: sessions concurrently, each in order.
    pub(crate) fn all(self, plan: Plan, concurrency: usize) -> RunReport {
        let threads = concurrency.clamp(1, plan.sessions.len().max(1));
        let sessions = Mutex::new(VecDeque::from(plan.sessions));
        let next = || lock(&sessions).pop_front();
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| while next().is_some_and(|session| self.session(session)) {});
            }
        });
        self.report()
    }

    /// Sends the requests of one session, on this thread.
    pub(crate) fn only(self, session: SessionPlan) -> RunReport {
        self.session(session);
        self.report()
    }

    fn report(self) -> RunReport {
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        let is_stopped = self.is_stopped.into_inner();
        done.stopped = self.admission.stopped().or(is_stopped.then_some(Stopped::Cancelled));
        done
    }

    /// Distills one session. Returns whether to continue with others.
    fn session(&self, session: SessionPlan) -> bool {
        let mut recap = session.recap;
        for planned in &session.requests {
            let input = match TurnInput::read(&self.log, planned) {
                Ok(Some(input)) => input,
                Ok(None) => continue,
                Err(error) => {
                    self.admission.stop(Stopped::Broken(error.to_string()));
                    return false;
                }
            };
            debug_assert_eq!(input.envelope.session, session.content_session);
            if !self.request(planned, &input, &mut recap) {
                return false;
            }
        }
        true
    }

    /// Sends one request until there is a response or it is parked. Returns whether to continue.
    fn request(
        &self,
        planned: &PlannedRequest,
        input: &TurnInput,
        recap: &mut Vec<RecapEntry>,
    ) -> bool {
        let first_at_us = planned.batch.sources.first().map_or(0, |source| source.at_us);
        let earlier = recap::before(recap, first_at_us);
        let (digest, earlier) = (recap::digest(&earlier), recap::rows(&earlier));
        let earlier = EarlierMemories { digest: digest.as_deref(), rows: &earlier };
        // A reprocessing starts to count attempts anew.
        let mut attempt = if self.generation == 0 { planned.batch.attempt() } else { 1 };
        let mut request = (!self.prompt_set.is_free()).then(|| Request {
            cancel: self.cancel.clone(),
            ..self.prompt_set.request(input, earlier.digest)
        });
        let at_most = request.as_ref().map(Request::at_most).unwrap_or_default();
        loop {
            if self.is_stopped.load(Ordering::SeqCst) {
                return false;
            }
            let Some(permit) = self.admission.acquire(&at_most) else { return false };
            let sent = self.responder.distill(self.prompt_set, input, &earlier, request.as_mut());
            let read = sent.and_then(|response| self.read(response, input, attempt));
            log_response(input, read.as_ref().map(|(response, _)| response));
            match &read {
                Ok((response, _)) => self.admission.succeeded(&permit, &response.spent),
                // Not a failure of the provider.
                Err(refusal) if self.cancel.is_cancelled() => {
                    self.admission.cancelled(&permit, refusal);
                }
                Err(refusal) => self.admission.failed(&permit, refusal),
            }
            let counted = read.as_ref().err().map_or(0, |refusal| self.counted(refusal, attempt));
            let recorded = match &read {
                Ok((response, reply)) => self.succeed(planned, input, attempt, response, reply),
                Err(refusal) => self.fail(planned, input, counted, refusal),
            };
            if let Err(error) = recorded {
                self.admission.stop(Stopped::Broken(error.to_string()));
                return false;
            }
            match read {
                Ok((_, reply)) => {
                    let at_us = planned.batch.sources.last().map_or(0, |source| source.at_us);
                    recap::extend(recap, &reply, at_us);
                    return true;
                }
                Err(_) if self.cancel.is_cancelled() => {
                    self.is_stopped.store(true, Ordering::SeqCst);
                    return false;
                }
                Err(refusal) => {
                    if is_parked_after(refusal.class, counted) {
                        let mut done = lock(&self.done);
                        done.parked += 1;
                        done.reasons.insert(refusal.message);
                        return true;
                    }
                    attempt += u32::from(counted > 0);
                }
            }
        }
    }

    /// The number of this attempt, or 0 if the failure does not count against the request.
    fn counted(&self, refusal: &Refusal, attempt: u32) -> u32 {
        let is_attempt = refusal.concern == Concern::Request && !self.cancel.is_cancelled();
        if is_attempt { attempt } else { 0 }
    }

    /// Parses a response. Prose alone is a failed attempt: it may be a refusal, a second attempt
    /// usually succeeds, and a parked request is visible and can be retried. A response that can be
    /// parsed is final, so a missing summary of a turn with changes is added.
    fn read(
        &self,
        mut response: Response,
        input: &TurnInput,
        attempt: u32,
    ) -> Result<(Response, Reply), Refusal> {
        let kinds = &self.prompt_set.kinds;
        let mut reply = read_reply(&response.text, kinds);
        if !self.prompt_set.is_free()
            && let Some(text) = demoted(&response.text, &reply, &input.turn(None), kinds)
        {
            response.text = text;
            reply = read_reply(&response.text, kinds);
        }
        if reply.verdict == Verdict::Unreadable {
            if self.prompt_set.is_free() {
                // Built-in rules repeat what was typed: `none` reads as no text. A second attempt
                // would give the same.
                response.text = NOTHING.into();
            } else if says_nothing(&response.text) || attempt > 1 && is_blank_form(&response.text) {
                response.text = format!("{}\n<skip/>", response.text.trim_end());
            } else {
                let why = format!("cannot parse the response of {}", response.model);
                let refusal = Refusal::new(FailureClass::Unreadable, why);
                return Err(Refusal { spent: response.spent, reply: response.text, ..refusal });
            }
            reply = read_reply(&response.text, kinds);
        }
        let is_summary_missing = reply.summary.is_none() && reply.summary_skipped.is_none();
        if is_summary_missing
            && input.is_over()
            && !self.prompt_set.is_free()
            && let Some(summary) = rules::summary_of_work(&input.turn(None))
        {
            response.text = format!("{}\n{summary}", response.text.trim_end());
            reply = read_reply(&response.text, kinds);
        }
        Ok((response, reply))
    }

    fn succeed(
        &self,
        planned: &PlannedRequest,
        input: &TurnInput,
        attempt: u32,
        response: &Response,
        reply: &Reply,
    ) -> Result<(), claude_mem_log::Error> {
        self.record(
            &input.envelope,
            AgentReplied {
                answers: planned.batch.event_ids(),
                provider: self.prompt_set.provider.clone(),
                model: response.model.clone(),
                prompt_version: self.prompt_set.version.clone(),
                generation: self.generation,
                reply: response.text.clone(),
                memory_session_id: response.memory_session_id.clone().unwrap_or_default(),
                attempt,
                tokens_in: response.spent.tokens_in,
                tokens_cached: response.spent.tokens_cached,
                tokens_out: response.spent.tokens_out,
                cost_micros: response.spent.cost_micros.unwrap_or(0),
                duration_ms: u64::try_from(response.duration.as_millis()).unwrap_or(u64::MAX),
            },
        )?;
        let mut done = lock(&self.done);
        done.answered += 1;
        done.events.extend(planned.batch.event_ids());
        done.observations += reply.observations.len();
        done.summaries += usize::from(reply.summary.is_some());
        done.spent.add(&response.spent);
        if !(self.progress)(&done) {
            self.is_stopped.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn fail(
        &self,
        planned: &PlannedRequest,
        input: &TurnInput,
        attempt: u32,
        refusal: &Refusal,
    ) -> Result<(), claude_mem_log::Error> {
        lock(&self.done).spent.add(&refusal.spent);
        // A wrong model is not the fault of a request, so name none.
        let is_of_settings =
            refusal.class == FailureClass::Invalid && refusal.concern == Concern::Provider;
        let answers = if is_of_settings { Vec::new() } else { planned.batch.event_ids() };
        let failed = failed(self.prompt_set, self.generation, refusal);
        self.record(&input.envelope, AgentFailed { answers, attempt, ..failed })
    }

    fn record(
        &self,
        envelope: &Envelope,
        event: impl Into<Event>,
    ) -> Result<(), claude_mem_log::Error> {
        // The branch and commit belong to the turn, not to the time of the response.
        let (branch, commit) = (String::new(), String::new());
        let mut envelope = Envelope { branch, commit, ..envelope.clone() };
        let mut event = event.into();
        redact(&mut envelope, &mut event, self.policy);
        let mut events = lock(&self.events);
        events.record(new_id(self.clock), &envelope, &event)?;
        // It was paid for: try to keep it after a power failure. If the sync fails, it is still
        // recorded.
        let _ = events.sync();
        Ok(())
    }
}

/// Words of a sentence that reports that there is nothing to record.
const NOTHING_WORDS: [&str; 5] = ["nothing", "no observation", "no memor", "not worth", "routine"];
const NOTHING_CHARS_MAX: usize = 160;

/// Whether a response without elements reports that there is nothing to record: a short statement,
/// neither a question nor a refusal. The decision is recorded as `<skip/>`, so that the words can
/// change without changing old memories.
fn says_nothing(text: &str) -> bool {
    let text = text.trim().to_lowercase();
    text.chars().count() <= NOTHING_CHARS_MAX
        && !text.contains(['<', '?'])
        && !["sorry", "cannot", "can't", "unable"].iter().any(|word| text.contains(word))
        && NOTHING_WORDS.iter().any(|word| text.contains(word))
}

/// Whether a response consists of elements alone, which are empty if it could not be read. A model
/// that returns the empty form twice has nothing to record.
fn is_blank_form(text: &str) -> bool {
    let text = text.trim().trim_matches('`').trim_start_matches("xml").trim();
    text.starts_with('<') && text.ends_with('>')
}

/// A failure that names no events yet.
pub(crate) fn failed(prompt_set: &PromptSet, generation: u32, refusal: &Refusal) -> AgentFailed {
    let wait = refusal.retry_after.unwrap_or_default().as_millis();
    AgentFailed {
        answers: Vec::new(),
        provider: prompt_set.provider.clone(),
        model: prompt_set.model.clone(),
        prompt_version: prompt_set.version.clone(),
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

pub(crate) fn new_id(clock: Clock) -> Id {
    Id::random(clock.now().as_microsecond().cast_unsigned())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
fn log_response(input: &TurnInput, response: Result<&Response, &Refusal>) {
    let session = &input.envelope.session;
    match response {
        Ok(Response { spent, .. }) => {
            let Spent { tokens_in, tokens_out, .. } = spent;
            tracing::debug!(session, tokens_in, tokens_out, "response received");
        }
        Err(refusal) => tracing::debug!(session, class = ?refusal.class, "request failed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_statement_that_there_is_nothing_is_no_failure() {
        let nothing = [
            "Nothing to record here.",
            "No observations: routine reading of files.",
            "There was nothing new in this turn.",
        ];
        for text in nothing {
            assert!(says_nothing(text), "{text}");
        }
        let long = "Nothing was found in the log. ".repeat(9);
        let other = [
            "I'm sorry, there is nothing I can help with.",
            "Internal server error",
            "Shall I record nothing?",
            "<observation></observation> nothing",
            &long,
        ];
        for text in other {
            assert!(!says_nothing(text), "{text}");
        }
        assert!(is_blank_form("```xml\n<observation><type>bugfix</type></observation>\n```"));
        assert!(!is_blank_form("I would write an <observation> here."));
    }
}
