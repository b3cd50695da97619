//! State shared by all parts of the worker.

mod appender;
pub mod health;
pub(crate) mod progress;
pub(crate) mod queue_history;

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use claude_mem_events::{Envelope, Event, Id};
use claude_mem_projections::Store;
use tokio::sync::{broadcast, watch};

use crate::instance::Instance;
pub(crate) use appender::Appender;
use claude_mem_capture::RecorderCache;
use claude_mem_core::worker_process::Waker;
use claude_mem_core::{
    app::App, clock::Clock, environment::Environment, failure::Failure, paths::Paths,
};
use claude_mem_distill::CancelledSessions;
use progress::SharedProgress;
use queue_history::QueueHistory;

/// Capacity of the change channel. A slower listener is notified that it missed some.
const CHANGES_MAX: usize = 256;

/// Page cache of the reader.
const READER_CACHE_KB: u32 = 128;
/// Polling interval while a cancelled request or a round of the main loop ends.
const CANCEL_POLL: Duration = Duration::from_millis(20);
/// Maximum time that a health request waits for a round.
const RECHECK_MAX: Duration = Duration::from_secs(1);

/// State of the process.
#[derive(Debug)]
pub struct Shared {
    /// Environment variables other than settings.
    pub environment: Environment,
    /// Paths.
    pub paths: Paths,
    /// Clock.
    pub clock: Clock,
    /// Captures events of programs, with the current settings.
    pub recorder: RecorderCache,
    /// Content of `worker.json`: token, instance, version, port.
    pub instance: Instance,
    /// Start of the process.
    pub started: Instant,
    /// Changes, for listeners.
    pub changes: broadcast::Sender<Change>,
    /// Progress of the main loop.
    pub(crate) progress: SharedProgress,
    /// The database, open for health requests, which pages send after every change.
    reader: Mutex<Option<Store>>,
    /// Queue length over time.
    pub queue: QueueHistory,
    /// Cancelled sessions.
    pub(crate) cancelled: Arc<CancelledSessions>,
    appender: Appender,
    waker: Arc<Waker>,
    busy: AtomicUsize,
    searches: AtomicUsize,
    /// Last use, in milliseconds since `started`.
    touched: AtomicU64,
    ending: watch::Sender<Option<End>>,
}

/// Why the worker stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// On request.
    Requested,
    /// The idle timeout has passed.
    Idle,
    /// A newer version replaces it.
    Replaced,
    /// The data directory was deleted.
    Deleted,
}

/// A change that listeners are notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// New events are indexed: of our own log, or of another host's.
    Folded,
    /// State of the distill queue.
    Processing {
        /// Requests are in progress.
        is_processing: bool,
        /// Pending events.
        waiting: u64,
    },
    /// Progress of a reprocessing.
    Replay {
        /// Generation.
        generation: u32,
        /// Completed requests.
        done: usize,
        /// All requests.
        total: usize,
        /// Whether it has ended.
        is_finished: bool,
    },
}

impl Shared {
    /// State of this process, which is announced in `worker.json`.
    pub fn new(app: &App, instance: Instance) -> Result<Arc<Self>, Failure> {
        let waker = Waker::new()
            .map_err(|error| Failure::new(format!("the worker cannot create a socket: {error}")))?;
        let waker = Arc::new(waker);
        let grown = Arc::clone(&waker);
        let appender = Appender::start(&app.paths.log(), app.clock, move || grown.grown())?;
        Ok(Arc::new(Self {
            environment: app.environment.clone(),
            paths: app.paths.clone(),
            clock: app.clock,
            recorder: RecorderCache::new(app.environment.clone(), app.paths.clone()),
            instance,
            started: Instant::now(),
            changes: broadcast::Sender::new(CHANGES_MAX),
            progress: SharedProgress::new(),
            reader: Mutex::default(),
            queue: QueueHistory::default(),
            cancelled: Arc::default(),
            appender,
            waker,
            busy: AtomicUsize::new(0),
            searches: AtomicUsize::new(0),
            touched: AtomicU64::new(0),
            ending: watch::Sender::new(None),
        }))
    }

    /// An `App` with the current settings. Using the database or a provider blocks, so
    /// call it in `spawn_blocking`.
    pub fn app(&self) -> App {
        App::new(self.environment.clone(), self.paths.clone())
    }

    /// Appends an event. It is on disk when this returns its ID.
    pub async fn append(&self, envelope: Envelope, event: Event) -> Result<Id, String> {
        let ids = self.append_all(vec![(envelope, event)]).await?;
        Ok(ids[0])
    }

    /// Appends events in this order. All are on disk when this returns their IDs.
    pub async fn append_all(&self, events: Vec<(Envelope, Event)>) -> Result<Vec<Id>, String> {
        self.appender.append(events).await
    }

    /// Requests a flush of what others appended.
    pub(crate) fn sync(&self) {
        self.appender.sync();
    }

    /// Number of flushes.
    pub(crate) fn syncs(&self) -> u64 {
        self.appender.syncs()
    }

    /// Wakes the main loop.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Cancels a session, and waits up to `time_max` until its request has ended. Returns whether
    /// it has. Pending events stay in the log, and are distilled when the session continues.
    pub(crate) async fn cancel_session(&self, session: &str, time_max: Duration) -> bool {
        self.cancelled.add(session, self.clock.now().as_microsecond().cast_unsigned());
        let deadline = Instant::now() + time_max;
        while self.progress.read().sessions.iter().any(|asked| asked == session) {
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(CANCEL_POLL).await;
        }
        true
    }

    /// Waits for another round of the main loop if the last one failed: the error may be over, as
    /// when a flood of connections ends.
    pub(crate) async fn recheck(&self) {
        let before = self.progress.read();
        let deadline = Instant::now() + RECHECK_MAX;
        if before.problem.is_some() {
            self.wake();
            while self.progress.read().rounds == before.rounds && Instant::now() < deadline {
                tokio::time::sleep(CANCEL_POLL).await;
            }
        }
    }

    /// Reads from the database; `work` gets `None` if there is none yet. One caller at a time, so
    /// that the database is opened once.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(Option<&Store>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        if reader.as_ref().is_none_or(Store::is_replaced) {
            *reader = Store::open_read_only(&self.paths.memory())?;
            if let Some(store) = &*reader {
                store.limit_cache(READER_CACHE_KB)?;
            }
        }
        work(reader.as_ref())
    }

    /// Number of cancelled sessions.
    pub(crate) fn cancelled_entries(&self) -> usize {
        self.cancelled.entries()
    }

    /// Number of recorded responses that are not indexed yet.
    pub fn unconfirmed(&self) -> usize {
        self.progress.read().unconfirmed
    }

    /// Marks the worker as used, which restarts the idle timeout.
    pub fn touch(&self) {
        let now = self.started.elapsed().as_millis() as u64;
        self.touched.store(now, Ordering::Relaxed);
    }

    /// Whether the worker was unused for this long, and is unused now.
    pub(crate) fn is_quiet_for(&self, time: Duration) -> bool {
        let touched = Duration::from_millis(self.touched.load(Ordering::Relaxed));
        self.busy.load(Ordering::SeqCst) == 0 && self.started.elapsed() >= touched + time
    }

    /// Keeps the worker from exiting until the result is dropped: a viewer is open, a
    /// reprocessing runs, or a request is served.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.touch();
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(self))
    }

    /// Makes the embedding thread wait until the result is dropped.
    pub(crate) fn searching(&self) -> Searching<'_> {
        self.searches.fetch_add(1, Ordering::SeqCst);
        Searching(&self.searches)
    }

    /// Whether a search runs.
    pub(crate) fn is_searching(&self) -> bool {
        self.searches.load(Ordering::SeqCst) > 0
    }

    /// Stops the worker: finishes work in progress, starts nothing new.
    pub fn end(&self) {
        self.end_because(End::Requested);
    }

    /// Stops the worker for this reason, unless it is stopping already.
    pub(crate) fn end_because(&self, end: End) {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(end);
            is_first
        });
        self.wake();
    }

    /// Why the worker is stopping.
    pub(crate) fn ending(&self) -> Option<End> {
        *self.ending.borrow()
    }

    /// Whether the worker is stopping.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending().is_some()
    }

    /// Returns when the worker is stopping.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // Cannot fail: the sender is in `self`.
        let _ = ending.wait_for(Option::is_some).await;
    }

    /// Notifies listeners.
    pub fn notify(&self, change: Change) {
        // There may be no listener.
        let _ = self.changes.send(change);
    }
}

/// A search in progress.
#[derive(Debug)]
pub(crate) struct Searching<'a>(&'a AtomicUsize);

impl Drop for Searching<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Keeps the worker from exiting while it exists.
#[derive(Debug)]
pub struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}
