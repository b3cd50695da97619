//! The distill queue: sessions in parallel up to the configured limit, each in order.
//!
//! A provider stays open between requests, so that one process serves all requests of a session. Settings and
//! prompts are checked before each request, and reloaded
//! when they have changed.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

use claude_mem_projections::Store;

use crate::shared::cancelled::CancelledSessions;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_distill::{
    self, Admission, DistillLock, DistillRun, Limits, Overrides, Plan, PromptSet, Responder,
    RunReport, SessionPlan, Stopped, caps, providers::auto, spent_today,
};

/// How often to check for changes outside of files, such as a newly installed client.
const LOOK_AGAIN: Duration = Duration::from_secs(900);
/// Delay of a session whose requests had no result, though none was refused.
const HOLD: Duration = Duration::from_secs(60);

/// The provider and its prompts, and whether a request may be sent now.
struct Parts {
    app: App,
    prompt_set: PromptSet,
    /// None if no provider is configured.
    responder: Result<Responder, String>,
    admission: Admission,
    fingerprint: Fingerprint,
}

/// Names, times and sizes of settings and prompts, to detect changes.
type Fingerprint = Vec<(String, Option<SystemTime>, u64)>;

/// The distill queue.
pub(super) struct DistillQueue {
    parts: Option<Arc<Parts>>,
    /// Last check for changes outside of files.
    looked: Instant,
    lock: Option<DistillLock>,
    /// Sessions with a request in progress.
    underway: Vec<String>,
    /// Sessions on hold, and until when.
    held: HashMap<String, Instant>,
    results: mpsc::Receiver<(String, RunReport)>,
    sender: mpsc::Sender<(String, RunReport)>,
    finished: Arc<dyn Fn() + Send + Sync>,
    cancelled: Arc<CancelledSessions>,
}

/// Owner of the distill lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// This process, as before.
    Held,
    /// This process, newly.
    New,
    /// Another process.
    Elsewhere,
}

/// Why requests that are due were not started.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// All were started, up to the limit.
    Done,
    /// Another process is distilling.
    Elsewhere,
    /// No provider is available, at least for this long.
    Closed(String, Duration),
}

impl DistillQueue {
    /// An empty queue. `finished` is called by a thread that is done with a session.
    pub(super) fn new(
        cancelled: Arc<CancelledSessions>,
        finished: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let (sender, results) = mpsc::channel();
        Self {
            parts: None,
            looked: Instant::now(),
            lock: None,
            underway: Vec::new(),
            held: HashMap::new(),
            results,
            sender,
            finished: Arc::new(finished),
            cancelled,
        }
    }

    /// Number of sessions in progress.
    pub(super) fn underway(&self) -> usize {
        self.underway.len()
    }

    /// Sessions in progress.
    pub(super) fn sessions(&self) -> &[String] {
        &self.underway
    }

    /// Whether a session is in progress or on hold.
    pub(super) fn is_left_alone(&self, session: &str) -> bool {
        self.held.contains_key(session) || self.underway.iter().any(|other| other == session)
    }

    /// When the next hold ends.
    pub(super) fn next_release(&self) -> Option<Instant> {
        self.held.values().min().copied()
    }

    /// Provider and model of the last request.
    pub(super) fn who(&self) -> Option<(&str, &str)> {
        self.parts
            .as_ref()
            .map(|parts| (parts.prompt_set.provider.as_str(), parts.prompt_set.model.as_str()))
    }

    /// Results of threads since the last call.
    pub(super) fn finished(&mut self) -> Vec<RunReport> {
        let now = Instant::now();
        self.held.retain(|_, until| *until > now);
        let mut all = Vec::new();
        while let Ok((session, asked)) = self.results.try_recv() {
            self.underway.retain(|other| *other != session);
            if asked.answered + asked.parked == 0 && asked.stopped.is_none() {
                self.held.insert(session, now + HOLD);
            }
            all.push(asked);
        }
        if self.underway.is_empty() {
            // Release the lock for other processes.
            self.lock = None;
        }
        all
    }

    /// How pending events are grouped, which depends on the provider.
    pub(super) fn batches(&mut self, app: &App, store: &Store) -> Result<Limits, Failure> {
        self.refresh(app, store)?;
        Ok(self.parts.as_ref().map_or_else(Limits::default, |parts| parts.prompt_set.batches(true)))
    }

    /// Starts requests that are due, up to the limit.
    pub(super) fn put(&mut self, app: &App, store: &Store, plan: Plan) -> Result<Put, Failure> {
        if plan.is_empty() {
            return Ok(Put::Done);
        }
        if !self.refresh(app, store)? {
            return Ok(Put::Done);
        }
        let Some(parts) = self.parts.clone() else { return Ok(Put::Done) };
        if self.underway.is_empty() {
            parts.admission.reset(spent_today(store, app.clock)?);
        }
        let is_idle = self.underway.is_empty();
        if is_idle && parts.admission.needs_user() && !is_out(&parts, store)? {
            // The provider works again: another process got a response.
            parts.admission.clear_failures();
        }
        if let Some((stopped, left)) = parts.admission.blocked() {
            return Ok(Put::Closed(stopped.message(), left));
        }
        if let Err(why) = &parts.responder {
            return Ok(Put::Closed(why.clone(), LOOK_AGAIN.saturating_sub(self.looked.elapsed())));
        }
        if self.lock.is_none() {
            return Ok(Put::Elsewhere);
        }
        let free = claude_mem_distill::concurrency(&parts.app).saturating_sub(self.underway.len());
        for session in plan.sessions.into_iter().take(free) {
            self.begin(&parts, session)?;
        }
        Ok(Put::Done)
    }

    fn begin(&mut self, parts: &Arc<Parts>, session: SessionPlan) -> Result<(), Failure> {
        let name = session.content_session.clone();
        let (parts, sender) = (Arc::clone(parts), self.sender.clone());
        let (of_thread, finished) = (name.clone(), Arc::clone(&self.finished));
        let cancelled = Arc::clone(&self.cancelled);
        let asking = thread::Builder::new().name("distill".into()).spawn(move || {
            let asked = distill(&parts, session, &cancelled);
            drop(parts);
            // Without a receiver nothing is lost: the response is in the log.
            let _ = sender.send((of_thread, asked));
            finished();
        });
        asking.map_err(|error| Failure::new(format!("cannot start a thread: {error}")))?;
        self.underway.push(name);
        Ok(())
    }

    /// Takes the distill lock, unless another process has it. After a new claim, plan again: the previous
    /// owner may have sent the same request.
    pub(super) fn claim(&mut self, data: &Path) -> Result<Claim, Failure> {
        if self.lock.is_some() {
            return Ok(Claim::Held);
        }
        self.lock = DistillLock::try_take(data).map_err(|error| {
            Failure::new(format!("{} cannot be locked: {error}", data.display()))
        })?;
        Ok(if self.lock.is_some() { Claim::New } else { Claim::Elsewhere })
    }

    /// Loads provider and prompts if they have changed. Returns false if requests in progress must end first,
    /// because they hold a part of the daily cap.
    fn refresh(&mut self, app: &App, store: &Store) -> Result<bool, Failure> {
        let fingerprint = fingerprint(&app.paths.data);
        let is_same = self.parts.as_ref().is_some_and(|parts| parts.fingerprint == fingerprint);
        let is_chosen = match &self.parts {
            Some(parts) => parts.prompt_set.is_still_chosen(&parts.app, store)?,
            None => false,
        };
        let is_idle = self.underway.is_empty();
        if is_same && is_chosen && (self.looked.elapsed() < LOOK_AGAIN || !is_idle) {
            return Ok(true);
        }
        if self.parts.is_some() && !is_idle {
            return Ok(false);
        }
        let app = App::new(app.environment.clone(), app.paths.clone());
        let prompt_set = PromptSet::load(&app, store, &Overrides::default())?;
        self.looked = Instant::now();
        if let Some(parts) = &self.parts
            && is_same
            && parts.responder.is_ok()
            && parts.prompt_set.is_same(&prompt_set)
        {
            return Ok(true);
        }
        let caps = (!prompt_set.is_free()).then(|| caps(&app.settings));
        // No thread waits for admission; it ends instead.
        let admission = Admission::new(caps, spent_today(store, app.clock)?, Duration::ZERO);
        let responder = match Responder::open(&app, &prompt_set) {
            Ok(responder) => Ok(responder),
            Err(refusal) => {
                claude_mem_distill::record_refusal(&app, &prompt_set, &refusal)?;
                Err(refusal.message)
            }
        };
        self.parts = Some(Arc::new(Parts { app, prompt_set, responder, admission, fingerprint }));
        Ok(true)
    }

    /// Starts no more requests, and waits for those in progress, up to `time_max`. The next worker repeats
    /// what has no response by then.
    pub(super) fn end(mut self, time_max: Duration) {
        if let Some(parts) = &self.parts {
            parts.admission.stop(Stopped::Broken("the worker is stopping".into()));
        }
        let deadline = Instant::now() + time_max;
        while !self.underway.is_empty() {
            let cancelled = deadline.saturating_duration_since(Instant::now());
            let Ok((session, _)) = self.results.recv_timeout(cancelled) else { return };
            self.underway.retain(|other| *other != session);
        }
    }
}

/// Whether the log records an outage of the provider.
fn is_out(parts: &Parts, store: &Store) -> Result<bool, Failure> {
    let outages = store.outages(auto::changed_us(&claude_mem_distill::setup(&parts.app)))?;
    Ok(outages.iter().any(|outage| outage.provider == parts.prompt_set.provider))
}

fn distill(parts: &Parts, session: SessionPlan, cancelled: &CancelledSessions) -> RunReport {
    let broken = |why| RunReport { stopped: Some(Stopped::Broken(why)), ..RunReport::default() };
    let responder = match &parts.responder {
        Ok(responder) => responder,
        Err(why) => return broken(why.clone()),
    };
    let name = session.content_session.clone();
    let goes_on = |_: &RunReport| !cancelled.has(&name);
    let cancel = cancelled.begin(&name);
    let asked = match DistillRun::new(
        &parts.app,
        (&parts.prompt_set, responder, &parts.admission),
        0,
        &goes_on,
    ) {
        Ok(asker) => asker.cancelled_by(cancel).run(Plan { sessions: vec![session] }, 1),
        Err(failure) => broken(failure.in_one_line()),
    };
    cancelled.end(&name);
    asked
}

/// Metadata of every file that distilling depends on.
fn fingerprint(data: &Path) -> Fingerprint {
    let mut found = Vec::new();
    let mut look = |path: &Path| {
        if let Ok(metadata) = fs::metadata(path) {
            let name = path.to_string_lossy().into_owned();
            found.push((name, metadata.modified().ok(), metadata.len()));
        }
    };
    for name in ["settings.json", ".env"] {
        look(&data.join(name));
    }
    for dir in ["prompts", "modes"] {
        let entries = fs::read_dir(data.join(dir)).into_iter().flatten();
        let mut paths: Vec<_> = entries
            .filter_map(|entry: io::Result<fs::DirEntry>| Some(entry.ok()?.path()))
            .collect();
        paths.sort();
        for path in paths {
            look(&path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_setting_or_prompt_is_seen_from_outside() {
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
