//! The distill loop: plans pending events and sends requests, sessions in parallel up to the
//! configured limit, each in order.
//!
//! The worker and `claude-mem distill` drive it: they fold, call [`DistillLoop::plan`], and wait
//! for results in their own way. A provider stays open between requests, so that one process serves
//! all requests of a session. Settings and prompts are checked before each plan, and reloaded when
//! they have changed.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    fs, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

use claude_mem_projections::{EventFilter, PendingEvent, PendingKind, PendingTurn, Store};

use crate::{
    RunOptions,
    admission::{Admission, Stopped},
    cancelled::CancelledSessions,
    concurrency,
    lock::DistillLock,
    plan::{Plan, SessionPlan},
    progress::with_progress,
    prompt_set::{Overrides, PromptSet, setup},
    providers::auto,
    record_refusal,
    responder::Responder,
    run::{DistillRun, RunReport},
    spend::{caps, spent_today},
};
use claude_mem_core::{app::App, failure::Failure, progress::Progress};

/// How often to check for changes outside of files, such as a newly installed client.
const RECHECK: Duration = Duration::from_secs(900);
/// Delay of a session whose requests had no result, though none was refused.
const HOLD: Duration = Duration::from_secs(60);
/// Delay while another process distills.
const LOCK_PAUSE: Duration = Duration::from_secs(1);

/// The provider and its prompts, and whether a request may be sent now.
struct Parts {
    app: App,
    prompt_set: PromptSet,
    /// The error if the provider cannot be opened.
    responder: Result<Responder, Stopped>,
    admission: Admission,
    fingerprint: Fingerprint,
}

/// Names, times and sizes of settings and prompts, to detect changes.
type Fingerprint = Vec<(String, Option<SystemTime>, u64)>;

/// The distill loop.
pub struct DistillLoop {
    options: RunOptions,
    parts: Option<Arc<Parts>>,
    /// Last check for changes outside of files.
    checked: Instant,
    lock: Option<DistillLock>,
    /// Whether the lock is kept between requests.
    keeps_lock: bool,
    /// Planned sessions that wait for a free thread.
    queued: VecDeque<SessionPlan>,
    /// Sessions with a request in progress.
    running: Vec<String>,
    /// Sessions on hold, and until when.
    held: HashMap<String, Instant>,
    /// Events with a response that may not be folded yet.
    answered: HashSet<[u8; 16]>,
    results: mpsc::Receiver<(String, RunReport)>,
    sender: mpsc::Sender<(String, RunReport)>,
    finished: Arc<dyn Fn() + Send + Sync>,
    cancelled: Arc<CancelledSessions>,
}

/// The result of a plan.
#[derive(Debug)]
pub struct Round {
    /// Pending events, due or not.
    pub pending: u64,
    pub state: LoopState,
    /// When to plan again without new events or results.
    pub next: Option<Instant>,
}

/// Whether requests that are due were started.
#[derive(Debug, PartialEq, Eq)]
pub enum LoopState {
    /// All were started, up to the limit.
    Started,
    /// The distill lock was just taken. Fold and plan again: its previous owner may have sent the
    /// same requests.
    Claimed,
    /// Another process is distilling.
    Elsewhere,
    /// No request may be sent, at least for this long.
    Closed(Stopped, Duration),
}

impl DistillLoop {
    /// A loop without requests. A thread that is done with a session calls `finished`.
    pub fn new(
        options: RunOptions,
        cancelled: Arc<CancelledSessions>,
        finished: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (sender, results) = mpsc::channel();
        Self {
            options,
            parts: None,
            checked: Instant::now(),
            lock: None,
            keeps_lock: false,
            queued: VecDeque::new(),
            running: Vec::new(),
            held: HashMap::new(),
            answered: HashSet::new(),
            results,
            sender,
            finished: Arc::new(finished),
            cancelled,
        }
    }

    /// Keeps this lock until the loop ends. Otherwise the loop takes it while requests are in
    /// progress.
    #[must_use]
    pub fn with_lock(self, lock: DistillLock) -> Self {
        Self { lock: Some(lock), keeps_lock: true, ..self }
    }

    /// Sessions in progress.
    pub fn running(&self) -> &[String] {
        &self.running
    }

    /// The number of events with a response that may not be folded yet.
    pub fn unconfirmed(&self) -> usize {
        self.answered.len()
    }

    /// Provider and model of the last request.
    pub fn provider(&self) -> Option<(&str, &str)> {
        let prompt_set = &self.parts.as_ref()?.prompt_set;
        Some((&prompt_set.provider, &prompt_set.model))
    }

    /// Results since the last call, without waiting.
    pub fn results(&mut self) -> Vec<RunReport> {
        let now = Instant::now();
        self.held.retain(|_, until| *until > now);
        let mut reports = Vec::new();
        while let Ok((session, report)) = self.results.try_recv() {
            reports.push(self.finish(&session, report));
        }
        if self.running.is_empty() && !self.keeps_lock {
            // Other processes may distill now.
            self.lock = None;
        }
        reports
    }

    /// Waits until all planned requests have a result, with progress messages on stderr.
    pub(crate) fn run_to_end(&mut self) -> Result<RunReport, Failure> {
        let mut total = RunReport::default();
        let Some(parts) = self.parts.clone() else { return Ok(total) };
        let progress = Progress::items("distilling", self.running.len() + self.queued.len());
        with_progress(&parts.admission, &parts.prompt_set, || {
            while !self.running.is_empty() {
                // This loop has a sender, too, so the channel is never closed.
                let Ok((session, report)) = self.results.recv() else { break };
                if report.stopped.is_some() {
                    self.queued.clear();
                }
                total.add(self.finish(&session, report));
                progress.advance(1);
                self.start_queued()?;
            }
            Ok(total)
        })
    }

    fn finish(&mut self, session: &str, report: RunReport) -> RunReport {
        self.running.retain(|other| other != session);
        self.answered.extend(&report.events);
        if report.answered + report.parked == 0 && report.stopped.is_none() {
            self.held.insert(session.to_owned(), Instant::now() + HOLD);
        }
        report
    }

    /// Plans pending events, and starts requests that are due, up to the limit.
    pub fn plan(&mut self, app: &App, store: &Store) -> Result<Round, Failure> {
        let mut turns = match &self.options.retry {
            Some(retry) => retry.turns(store)?,
            None => store.pending_turns(&EventFilter::default(), self.options.turns_max)?,
        };
        self.forget_folded(&turns);
        for turn in &mut turns {
            // A response that could not be appended in time is folded later.
            turn.pending.retain(|pending| !self.answered.contains(pending.id.as_bytes()));
        }
        turns.retain(|turn| {
            let newest = turn.pending.iter().map(|pending| pending.at_us).max();
            !self.cancelled.keeps(&turn.content_session, newest.unwrap_or(0))
        });
        let pending = events_to_distill(&turns).count() as u64;
        turns.retain(|turn| {
            let session = &turn.content_session;
            !self.held.contains_key(session) && !self.running.contains(session)
        });
        let now_us = app.clock.now().as_microsecond().cast_unsigned();
        if events_to_distill(&turns).next().is_none() {
            return Ok(Round { pending, state: LoopState::Started, next: self.next_release() });
        }
        if !self.refresh(app, store)? {
            return Ok(Round { pending, state: LoopState::Started, next: None });
        }
        let Some(parts) = self.parts.clone() else { unreachable!("refresh loads them") };
        // How events are grouped depends on the provider.
        let limits = parts.prompt_set.batches(self.options.is_due_only);
        let due_us = |turn: &PendingTurn| {
            let (first, last) = (turn.pending.first()?, turn.pending.last()?);
            Some(limits.due_us(first.at_us, last.at_us))
        };
        let next_us = turns.iter().filter_map(due_us).filter(|due_us| *due_us > now_us).min();
        let plan = Plan::new(store, turns, None, &limits, now_us)?;
        let state = self.start(&parts, store, plan)?;
        // A turn that does not end is distilled when it is old enough.
        let old = next_us
            .map(|at_us| Instant::now() + Duration::from_micros(at_us.saturating_sub(now_us)));
        let again = match &state {
            LoopState::Closed(_, left) => Some(Instant::now() + *left),
            LoopState::Elsewhere => Some(Instant::now() + LOCK_PAUSE),
            LoopState::Started | LoopState::Claimed => None,
        };
        let next = [again, old, self.next_release()].into_iter().flatten().min();
        Ok(Round { pending, state, next })
    }

    /// When the next hold ends.
    fn next_release(&self) -> Option<Instant> {
        self.held.values().min().copied()
    }

    /// Drops folded events from the unconfirmed ones.
    fn forget_folded(&mut self, turns: &[PendingTurn]) {
        if !self.answered.is_empty() {
            let events = turns.iter().flat_map(|turn| &turn.pending);
            let pending: HashSet<[u8; 16]> = events.map(|event| *event.id.as_bytes()).collect();
            self.answered.retain(|id| pending.contains(id));
        }
    }

    fn start(&mut self, parts: &Parts, store: &Store, plan: Plan) -> Result<LoopState, Failure> {
        self.queued.clear();
        if plan.is_empty() {
            return Ok(LoopState::Started);
        }
        let Parts { app, admission, .. } = parts;
        if self.lock.is_none() {
            self.lock = DistillLock::try_take(&app.paths.data).map_err(|error| {
                Failure::new(format!("cannot lock {}: {error}", app.paths.data.display()))
            })?;
            if self.lock.is_some() {
                return Ok(LoopState::Claimed);
            }
        }
        if self.running.is_empty() {
            admission.reset(spent_today(store, app.clock)?);
            if admission.needs_user() && !is_out(parts, store)? {
                // The provider works again: another process got a response.
                admission.clear_failures();
            }
        }
        if let Some((stopped, left)) = admission.blocked() {
            return Ok(LoopState::Closed(stopped, left));
        }
        if let Err(stopped) = &parts.responder {
            let left = RECHECK.saturating_sub(self.checked.elapsed());
            return Ok(LoopState::Closed(stopped.clone(), left));
        }
        if self.lock.is_none() {
            return Ok(LoopState::Elsewhere);
        }
        self.queued = plan.sessions.into();
        self.start_queued()?;
        Ok(LoopState::Started)
    }

    /// Starts a thread per planned session, up to the limit.
    fn start_queued(&mut self) -> Result<(), Failure> {
        let Some(parts) = self.parts.clone() else { return Ok(()) };
        let threads_max = concurrency(&parts.app);
        while self.running.len() < threads_max
            && let Some(session) = self.queued.pop_front()
        {
            let name = session.content_session.clone();
            let (parts, sender) = (Arc::clone(&parts), self.sender.clone());
            let (of_thread, finished) = (name.clone(), Arc::clone(&self.finished));
            let cancelled = Arc::clone(&self.cancelled);
            let thread = thread::Builder::new().name("distill".into()).spawn(move || {
                let report = distill(&parts, session, &cancelled);
                drop(parts);
                // Without a receiver nothing is lost: the response is in the log.
                let _ = sender.send((of_thread, report));
                finished();
            });
            thread.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
            self.running.push(name);
        }
        Ok(())
    }

    /// Loads provider and prompts if they have changed. Returns false if requests in progress must
    /// end first, because they have reserved a part of the daily cap.
    fn refresh(&mut self, app: &App, store: &Store) -> Result<bool, Failure> {
        let failures_since_us = self.options.failures_since_us;
        let fingerprint = fingerprint(&app.paths.data);
        let is_same = self.parts.as_ref().is_some_and(|parts| parts.fingerprint == fingerprint);
        let is_chosen = match &self.parts {
            Some(parts) => {
                parts.prompt_set.is_still_chosen(&parts.app, store, failures_since_us)?
            }
            None => false,
        };
        let is_idle = self.running.is_empty();
        if is_same && is_chosen && (self.checked.elapsed() < RECHECK || !is_idle) {
            return Ok(true);
        }
        if self.parts.is_some() && !is_idle {
            return Ok(false);
        }
        let app = App::new(app.environment.clone(), app.paths.clone());
        let RunOptions { provider, model, .. } = &self.options;
        let (provider, model) = (*provider, model.as_deref());
        let overrides = Overrides { provider, model, failures_since_us, ..Overrides::default() };
        let prompt_set = PromptSet::load(&app, store, &overrides)?;
        self.checked = Instant::now();
        if let Some(parts) = &self.parts
            && is_same
            && parts.responder.is_ok()
            && parts.prompt_set.is_same(&prompt_set)
        {
            return Ok(true);
        }
        let caps = (!prompt_set.is_free()).then(|| caps(&app.settings));
        let today = spent_today(store, app.clock)?;
        let admission = Admission::new(caps, today, self.options.wait_max);
        let responder = match Responder::open(&app, &prompt_set) {
            Ok(responder) => Ok(responder),
            Err(refusal) => Err(record_refusal(&app, &prompt_set, &refusal)?),
        };
        self.parts = Some(Arc::new(Parts { app, prompt_set, responder, admission, fingerprint }));
        Ok(true)
    }

    /// Whether `auto` selects another provider after a failure of the last one. Returns its name.
    pub fn fallback(&mut self, app: &App, store: &Store) -> Result<Option<String>, Failure> {
        let before = self.provider().map(|(provider, _)| provider.to_owned());
        self.refresh(app, store)?;
        let now = self.provider().map(|(provider, _)| provider.to_owned());
        Ok(if now == before { None } else { now })
    }

    /// Starts no more requests, and waits for those in progress, up to `time_max`. The next process
    /// repeats requests without a response.
    pub fn end(mut self, time_max: Duration) {
        if let Some(parts) = &self.parts {
            parts.admission.stop(Stopped::Broken("the worker is stopping".into()));
        }
        let deadline = Instant::now() + time_max;
        while !self.running.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((session, _)) = self.results.recv_timeout(left) else { return };
            self.running.retain(|other| *other != session);
        }
    }
}

/// Whether the log records an outage of the provider.
fn is_out(parts: &Parts, store: &Store) -> Result<bool, Failure> {
    let outages = store.outages(auto::changed_us(&setup(&parts.app)))?;
    Ok(outages.iter().any(|outage| outage.provider == parts.prompt_set.provider))
}

/// Events that need a request. The end of a subagent alone needs none.
fn events_to_distill(turns: &[PendingTurn]) -> impl Iterator<Item = &PendingEvent> {
    turns
        .iter()
        .flat_map(|turn| &turn.pending)
        .filter(|pending| matches!(pending.what, PendingKind::ToolUse | PendingKind::Stop))
}

fn distill(parts: &Parts, session: SessionPlan, cancelled: &CancelledSessions) -> RunReport {
    let stopped = |stopped| RunReport { stopped: Some(stopped), ..RunReport::default() };
    let responder = match &parts.responder {
        Ok(responder) => responder,
        Err(why) => return stopped(why.clone()),
    };
    let name = session.content_session.clone();
    let continues = |_: &RunReport| !cancelled.has(&name);
    let cancel = cancelled.begin(&name);
    let run_parts = (&parts.prompt_set, responder, &parts.admission);
    let report = match DistillRun::new(&parts.app, run_parts, 0, &continues) {
        Ok(run) => run.cancelled_by(cancel).only(session),
        Err(failure) => stopped(Stopped::Broken(failure.in_one_line())),
    };
    cancelled.end(&name);
    report
}

/// Metadata of every file that distilling depends on.
fn fingerprint(data: &Path) -> Fingerprint {
    let mut found = Vec::new();
    let mut add = |path: &Path| {
        if let Ok(metadata) = fs::metadata(path) {
            let name = path.to_string_lossy().into_owned();
            found.push((name, metadata.modified().ok(), metadata.len()));
        }
    };
    for name in ["settings.json", ".env"] {
        add(&data.join(name));
    }
    for dir in ["prompts", "modes"] {
        let entries = fs::read_dir(data.join(dir)).into_iter().flatten();
        let mut paths: Vec<_> = entries
            .filter_map(|entry: io::Result<fs::DirEntry>| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            add(&path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_setting_or_prompt_changes_the_fingerprint() {
        let data = tempfile::tempdir().unwrap();
        let before = fingerprint(data.path());
        fs::create_dir(data.path().join("prompts")).unwrap();
        fs::write(data.path().join("prompts/a.md"), "one").unwrap();
        let with_prompt = fingerprint(data.path());
        assert_ne!(before, with_prompt);
        assert_eq!(fingerprint(data.path()), with_prompt);
        fs::write(data.path().join("settings.json"), "{}").unwrap();
        assert_ne!(fingerprint(data.path()), with_prompt);
    }
}
