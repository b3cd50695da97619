//! Putting questions: several sessions side by side, each in order, as many as the settings allow.
//!
//! Whoever is asked stays open from one question to the next, so that a client that was started for a session
//! answers the whole of it. Settings and prompts are looked at before each question and loaded again when
//! they have changed.

use std::{
    collections::HashMap,
    fs, io,
    path::Path,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant, SystemTime},
};

use claude_mem_projections::Store;

use crate::shared::cancelled::Left;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_distill::{
    self, Admission, DistillLock, DistillRun, Overrides, Plan, PromptSet, Responder, RunReport,
    SessionPlan, Stopped, caps, providers::auto, spent_today,
};

/// What is not seen in any file, such as a client that was installed, is looked for this often.
const LOOK_AGAIN: Duration = Duration::from_secs(900);
/// A session whose questions came to nothing, though nobody refused them, rests for so long.
const HOLD: Duration = Duration::from_secs(60);

/// The provider and its prompts, and whether a request may be sent now.
struct Parts {
    app: App,
    prompt_set: PromptSet,
    /// Nobody, if the settings do not say how to reach anybody.
    responder: Result<Responder, String>,
    admission: Admission,
    fingerprint: Fingerprint,
}

/// What settings and prompts look like from outside: names, times and sizes.
type Fingerprint = Vec<(String, Option<SystemTime>, u64)>;

/// Everything that has to do with asking.
pub(super) struct Asking {
    parts: Option<Arc<Parts>>,
    /// When what is in no file was last looked for.
    looked: Instant,
    lock: Option<DistillLock>,
    /// Sessions that are being asked about.
    underway: Vec<String>,
    /// Sessions that are left alone until then.
    held: HashMap<String, Instant>,
    results: mpsc::Receiver<(String, RunReport)>,
    sender: mpsc::Sender<(String, RunReport)>,
    finished: Arc<dyn Fn() + Send + Sync>,
    left: Arc<Left>,
}

/// Who has the right to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// This process, for a while.
    Held,
    /// This process, from now on.
    New,
    /// Another process.
    Elsewhere,
}

/// Why not everything that is due was put.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Put {
    /// It was, or as much as is allowed at the same time.
    Done,
    /// Another process asks at the moment.
    Elsewhere,
    /// Nobody can be asked, for so long at least.
    Closed(String, Duration),
}

impl Asking {
    /// Nobody is asked yet. `finished` is called by a thread that is done with a session.
    pub(super) fn new(left: Arc<Left>, finished: impl Fn() + Send + Sync + 'static) -> Self {
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
            left,
        }
    }

    /// How many sessions are being asked about.
    pub(super) fn underway(&self) -> usize {
        self.underway.len()
    }

    /// Which ones.
    pub(super) fn sessions(&self) -> &[String] {
        &self.underway
    }

    /// Whether a session is to be left alone now.
    pub(super) fn is_left_alone(&self, session: &str) -> bool {
        self.held.contains_key(session) || self.underway.iter().any(|other| other == session)
    }

    /// When a session that is held may be looked at again.
    pub(super) fn next_release(&self) -> Option<Instant> {
        self.held.values().min().copied()
    }

    /// Who was asked last, and which model.
    pub(super) fn who(&self) -> Option<(&str, &str)> {
        self.parts
            .as_ref()
            .map(|parts| (parts.prompt_set.provider.as_str(), parts.prompt_set.model.as_str()))
    }

    /// Takes in what the threads came to since last time.
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
            // Others may want to ask, too.
            self.lock = None;
        }
        all
    }

    /// Puts what is due, as far as that can be done now.
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
            // The user has mended it, and another process was answered.
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
        let left = Arc::clone(&self.left);
        let asking = thread::Builder::new().name("ask".into()).spawn(move || {
            let asked = ask(&parts, session, &left);
            drop(parts);
            // If nobody is there to take it, it is in the log.
            let _ = sender.send((of_thread, asked));
            finished();
        });
        asking.map_err(|error| Failure::new(format!("no thread can be started: {error}")))?;
        self.underway.push(name);
        Ok(())
    }

    /// Takes the right to ask, unless another process has it. What is planned under a new claim must be
    /// planned again: its previous holder may have sent the same request.
    pub(super) fn claim(&mut self, data: &Path) -> Result<Claim, Failure> {
        if self.lock.is_some() {
            return Ok(Claim::Held);
        }
        self.lock = DistillLock::try_take(data).map_err(|error| {
            Failure::new(format!("{} cannot be locked: {error}", data.display()))
        })?;
        Ok(if self.lock.is_some() { Claim::New } else { Claim::Elsewhere })
    }

    /// Loads what is asked with, if it was not loaded or is not what it was. Says no if what is under way has
    /// to end first: it holds a part of the day's cap.
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

    /// Begins nothing more, and waits for what is under way, but not for long: what is not answered by then
    /// is asked again by the next worker.
    pub(super) fn end(mut self, time_max: Duration) {
        if let Some(parts) = &self.parts {
            parts.admission.stop(Stopped::Broken("the worker is ending".into()));
        }
        let deadline = Instant::now() + time_max;
        while !self.underway.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok((session, _)) = self.results.recv_timeout(left) else { return };
            self.underway.retain(|other| *other != session);
        }
    }
}

/// Whether the log says that the provider does not answer.
fn is_out(parts: &Parts, store: &Store) -> Result<bool, Failure> {
    let outages = store.outages(auto::changed_us(&claude_mem_distill::setup(&parts.app)))?;
    Ok(outages.iter().any(|outage| outage.provider == parts.prompt_set.provider))
}

fn ask(parts: &Parts, session: SessionPlan, left: &Left) -> RunReport {
    let broken = |why| RunReport { stopped: Some(Stopped::Broken(why)), ..RunReport::default() };
    let responder = match &parts.responder {
        Ok(responder) => responder,
        Err(why) => return broken(why.clone()),
    };
    let name = session.content_session.clone();
    let goes_on = |_: &RunReport| !left.has(&name);
    let cancel = left.begin(&name);
    let asked = match DistillRun::new(
        &parts.app,
        (&parts.prompt_set, responder, &parts.admission),
        0,
        &goes_on,
    ) {
        Ok(asker) => asker.cancelled_by(cancel).run(Plan { sessions: vec![session] }, 1),
        Err(failure) => broken(failure.in_one_line()),
    };
    left.end(&name);
    asked
}

/// Looks at every file that asking depends on, without reading any.
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
