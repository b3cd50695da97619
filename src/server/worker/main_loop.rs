//! The main loop: indexes new events, notifies listeners, and starts requests.
//!
//! It waits on the wake socket, and checks the log at least once per second. It alone has the
//! database open for writing. Responses are events, so they are indexed like any other event.

use std::{
    fs,
    sync::Arc,
    thread,
    time::{Duration, Instant, SystemTime},
};

use claude_mem_log::{Log, Options, maintain};
use claude_mem_projections::Store;

use super::{throttle::Throttle, version::is_newer};
use crate::shared::{Change, End, Shared};
use claude_mem_core::worker_process::{WorkerLock, forget_attempts};
use claude_mem_core::{
    app::App,
    failure::Failure,
    os::{self, WakeListener},
    settings::table::WORKER_IDLE,
};
use claude_mem_distill::{
    DistillLoop, LoopState, Round, RunOptions, providers::auto::changed_us, setup,
};
use claude_mem_memory::store;

/// Maximum delay after a missed wake-up.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum time until appended events are flushed to disk.
const UNSYNCED_MAX: Duration = Duration::from_millis(500);
/// Delay after an internal error.
const ERROR_BACKOFF: Duration = Duration::from_secs(5);
/// Maximum number of turns planned in one round.
const TURNS_MAX: usize = 1000;
/// Time for requests to finish at shutdown.
const END_MAX: Duration = Duration::from_secs(5);

/// Page cache of the database.
const CACHE_KB: u32 = 512;

/// State of the thread.
struct MainLoop {
    shared: Arc<Shared>,
    wake_listener: WakeListener,
    lock: Arc<WorkerLock>,
    app: App,
    /// When the settings, the keys or the login were last changed.
    settings_us: u64,
    store: Store,
    distilling: DistillLoop,
    seen: Option<LogState>,
    /// When to flush appended events.
    sync_at: Option<Instant>,
    /// When to plan again without a wake-up.
    plan_at: Option<Instant>,
    /// Whether events are pending.
    has_distillable: bool,
    active: Instant,
    throttle: Throttle,
    problem: Option<String>,
}

/// Observed state of the log.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
struct LogState {
    active: Option<(u64, u64)>,
    spilled: Option<SystemTime>,
    /// Whether the database files were replaced.
    is_database_replaced: bool,
}

/// Why a wait ended.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum WakeReason {
    /// Another process appended an event.
    Growth,
    /// A thread of the worker woke it, or the wait timed out.
    Nothing,
}

/// Starts the thread. It ends with the worker.
pub(super) fn start(
    shared: &Arc<Shared>,
    wake_listener: WakeListener,
    lock: Arc<WorkerLock>,
) -> Result<thread::JoinHandle<()>, Failure> {
    let mut app = shared.app();
    let store = open(&mut app)?;
    let waker = Arc::clone(shared);
    // No thread waits for a failing provider; the loop plans again later.
    let options = RunOptions { is_due_only: true, turns_max: TURNS_MAX, ..RunOptions::default() };
    let main_loop = MainLoop {
        shared: Arc::clone(shared),
        wake_listener,
        lock,
        settings_us: changed_us(&setup(&app)),
        app,
        store,
        distilling: DistillLoop::new(options, Arc::clone(&shared.cancelled), move || waker.wake()),
        seen: None,
        sync_at: None,
        plan_at: Some(Instant::now()),
        has_distillable: false,
        active: Instant::now(),
        throttle: Throttle::default(),
        problem: None,
    };
    thread::Builder::new()
        .name("main-loop".into())
        .spawn(move || main_loop.run())
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
}

/// Opens the database for writing, with a small page cache.
fn open(app: &mut App) -> Result<Store, Failure> {
    let store = store::open(app)?;
    store.limit_cache(CACHE_KB)?;
    Ok(store)
}

impl MainLoop {
    fn run(mut self) {
        let mut reason = WakeReason::Nothing;
        let mut has_succeeded = false;
        while !self.shared.is_ending() {
            if !self.lock.is_in_place(&self.shared.paths.data) {
                self.shared.end_because(End::Deleted);
                break;
            }
            let began = Instant::now();
            let done = self.round(reason);
            self.throttle.worked(began.elapsed());
            if done.is_ok() && !has_succeeded {
                forget_attempts(&self.shared.paths.data);
                has_succeeded = true;
            }
            self.report(done.err().map(|failure| failure.in_one_line()));
            self.sync_if_due();
            if self.is_idle() {
                self.shared.end_because(End::Idle);
                break;
            }
            reason = self.wait();
        }
        self.distilling.end(END_MAX);
        store::sync_log(&self.app);
    }

    /// One round: index, notify, distill.
    fn round(&mut self, reason: WakeReason) -> Result<(), Failure> {
        let finished = self.distilling.results();
        let has_new_settings = self.reload_settings()?;
        let seen = self.observe_log();
        let has_grown = self.seen != Some(seen);
        if has_grown {
            // Failures that we record ourselves do not count as use.
            if finished.is_empty() || reason == WakeReason::Growth {
                self.active = Instant::now();
            }
            self.note_growth(reason);
            self.fold()?;
            self.seen = Some(seen);
        } else if reason == WakeReason::Growth {
            // A program that pulls from other hosts also indexes.
            self.shared.notify(Change::Folded);
        }
        if !finished.is_empty() {
            self.shared.progress.update(|progress| progress.moved = Instant::now());
        }
        if finished.iter().any(|report| report.answered > 0) {
            self.active = Instant::now();
        }
        let is_due = self.plan_at.is_some_and(|at| at <= Instant::now());
        if has_grown || has_new_settings || is_due || !finished.is_empty() {
            self.plan()?;
        }
        if has_new_settings {
            // An earlier failure of the provider may be outdated.
            let progress = self.shared.progress.read();
            let (is_processing, waiting) = (progress.distilling > 0, progress.waiting);
            self.shared.notify(Change::Processing { is_processing, waiting });
        }
        Ok(())
    }

    /// Reads the settings again if they, a key or the login were changed. Returns whether they
    /// were.
    fn reload_settings(&mut self) -> Result<bool, Failure> {
        let changed = changed_us(&setup(&self.app));
        if changed == self.settings_us {
            return Ok(false);
        }
        self.app = self.shared.app();
        // The setting for observation types may have changed.
        self.store = open(&mut self.app)?;
        self.settings_us = changed;
        Ok(true)
    }

    /// Detects changes by the active segment, the spill directory, and the
    /// database files.
    fn observe_log(&self) -> LogState {
        let log = self.shared.paths.log();
        let spilled = fs::metadata(log.join("spill")).ok();
        LogState {
            active: os::inode_and_len(&log.join("active.log")).ok(),
            spilled: spilled.and_then(|found| found.modified().ok()),
            is_database_replaced: self.store.is_replaced() || self.store.is_wal_replaced(),
        }
    }

    fn fold(&mut self) -> Result<(), Failure> {
        let dir = self.shared.paths.log();
        if self.seen.is_none_or(|seen| seen.spilled != self.observe_log().spilled) {
            // A failure does not affect reading the log.
            let _ = maintain(&dir, &Options::default());
        }
        let log = Log::open(&dir, Options::default())?;
        let shared = &self.shared;
        let folded = self.store.catch_up(&log, |_| shared.progress.update(|_| ()))?;
        tracing::debug!(events = folded.events, "indexed");
        self.shared.notify(Change::Folded);
        Ok(())
    }

    /// Starts requests that are due, and computes the next time.
    fn plan(&mut self) -> Result<(), Failure> {
        self.plan_at = Some(Instant::now() + ERROR_BACKOFF);
        let before = self.distilling.running().len();
        let mut round = self.distilling.plan(&self.app, &self.store)?;
        if round.state == LoopState::Claimed {
            // Another process may have distilled, and spent, until now.
            self.fold()?;
            round = self.distilling.plan(&self.app, &self.store)?;
        }
        self.plan_at = round.next;
        self.has_distillable = round.pending > 0 && !matches!(round.state, LoopState::Closed(..));
        self.publish(&round, self.distilling.running().len() != before);
        Ok(())
    }

    fn publish(&self, round: &Round, has_moved: bool) {
        let (distilling, waiting) = (self.distilling.running().len(), round.pending);
        let is_closed = matches!(round.state, LoopState::Closed(..));
        let (provider, model) = self.distilling.provider().unwrap_or_default();
        let before = self.shared.progress.read();
        self.shared.progress.update(|progress| {
            progress.provider = provider.into();
            progress.model = model.into();
            progress.distilling = distilling;
            progress.sessions = self.distilling.running().to_vec();
            progress.waiting = waiting;
            progress.unconfirmed = self.distilling.unconfirmed();
            progress.closed = match &round.state {
                LoopState::Closed(stopped, left) => {
                    Some((stopped.message(), Instant::now() + *left))
                }
                _ => None,
            };
            if has_moved {
                progress.moved = Instant::now();
            }
        });
        let state_before = (before.distilling, before.waiting, before.closed.is_some());
        if state_before != (distilling, waiting, is_closed) {
            self.shared.notify(Change::Processing { is_processing: distilling > 0, waiting });
        }
    }

    /// Logs a problem once, however long it lasts.
    fn report(&mut self, problem: Option<String>) {
        self.shared.progress.update(|progress| {
            progress.rounds += 1;
            progress.problem.clone_from(&problem);
        });
        if let Some(message) = &problem
            && self.problem != problem
        {
            tracing::error!("{message}");
        }
        if problem.is_some() {
            // The next check starts from scratch.
            self.seen = None;
        }
        self.problem = problem;
    }

    fn note_growth(&mut self, reason: WakeReason) {
        // Without a wake-up, the event may have been appended a second ago.
        let delay = if reason == WakeReason::Growth { UNSYNCED_MAX } else { Duration::ZERO };
        self.sync_at.get_or_insert(Instant::now() + delay);
    }

    fn sync_if_due(&mut self) {
        if self.sync_at.is_some_and(|at| at <= Instant::now()) {
            self.sync_at = None;
            self.shared.sync();
        }
    }

    /// Waits for a wake-up, for the next due time, or for a second; and for the throttle.
    fn wait(&mut self) -> WakeReason {
        let began = Instant::now();
        thread::sleep(self.throttle.rest());
        let now = Instant::now();
        let until = |at: Instant| at.saturating_duration_since(now);
        let sync = self.sync_at.map(until);
        let plan = self.plan_at.map(until);
        let pause = if self.problem.is_some() { ERROR_BACKOFF } else { POLL_INTERVAL };
        let pause = [sync, plan].into_iter().flatten().fold(pause, Duration::min);
        self.wake_listener.wait(pause);
        self.throttle.rested(began.elapsed());
        self.drain()
    }

    /// Reads all wake-ups at once. Wake-ups of the worker itself carry no version.
    fn drain(&self) -> WakeReason {
        let mut reason = WakeReason::Nothing;
        let mut version = [0; 64];
        while let Some(len) = self.wake_listener.take(&mut version) {
            if len == 0 {
                continue;
            }
            reason = WakeReason::Growth;
            let theirs = String::from_utf8_lossy(&version[..len]);
            if is_newer(&theirs, &self.shared.instance.version) {
                // The newer program finds no worker next time, and starts its own.
                self.shared.end_because(End::Replaced);
            }
        }
        reason
    }

    /// Whether the idle timeout has passed.
    fn is_idle(&self) -> bool {
        let seconds = self.app.settings.get(&WORKER_IDLE);
        let idle = Duration::from_secs(seconds);
        seconds > 0
            && self.distilling.running().is_empty()
            && !self.has_distillable
            && self.active.elapsed() >= idle
            && self.shared.is_quiet_for(idle)
    }
}
