//! What everything in the worker shares: where things are, who may come in, and what just happened.

mod appender;
pub(crate) mod cancelled;
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

use crate::instance::Presence;
pub(crate) use appender::Appender;
use cancelled::Left;
use claude_mem_capture::RecorderCache;
use claude_mem_core::worker_process::Waker;
use claude_mem_core::{
    app::App, clock::Clock, environment::Environment, failure::Failure, paths::Paths,
};
use progress::Board;
use queue_history::QueueHistory;

/// Changes that a slow listener may be behind by; then it is told that it missed some.
const CHANGES_MAX: usize = 256;

/// What the reader keeps of the database in memory.
const READER_CACHE_KB: u32 = 128;
/// Between two looks whether it is.
const LEAVE_PAUSE: Duration = Duration::from_millis(20);

/// One for the whole process.
#[derive(Debug)]
pub struct Shared {
    /// For the few variables that are no settings of ours.
    pub environment: Environment,
    /// Where things live.
    pub paths: Paths,
    /// What time it is.
    pub clock: Clock,
    /// Captures events of programs, with the settings in force.
    pub recorder: RecorderCache,
    /// Token, instance, version, port.
    pub presence: Presence,
    /// Since when.
    pub started: Instant,
    /// What happened, for whoever listens.
    pub changes: broadcast::Sender<Change>,
    /// How far the projecting thread is.
    pub(crate) board: Board,
    /// The database, open for health requests. Pages ask whenever something happens.
    reader: Mutex<Option<Store>>,
    /// How many events were pending when.
    pub queue: QueueHistory,
    /// Sessions that are not to be worked on.
    pub(crate) left: Arc<Left>,
    appender: Appender,
    waker: Arc<Waker>,
    busy: AtomicUsize,
    /// When somebody last wanted something, in milliseconds since `started`.
    touched: AtomicU64,
    ending: watch::Sender<Option<End>>,
}

/// Why the worker ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// Somebody wants it to.
    Asked,
    /// There is nothing to do.
    Idle,
    /// There is a newer version.
    Replaced,
}

/// Something that whoever watches wants to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// More is in the tables than before: of our own log, or of another machine's.
    Folded,
    /// How much is being asked.
    Processing {
        /// Questions are with the agent.
        is_processing: bool,
        /// Events that wait for an answer.
        waiting: u64,
    },
    /// How a reprocessing goes.
    Replay {
        /// Its generation.
        generation: u32,
        /// Questions answered so far.
        done: usize,
        /// Questions in all.
        total: usize,
        /// It is over.
        is_finished: bool,
    },
}

impl Shared {
    /// For this process, which announces itself as `presence`.
    pub fn new(app: &App, presence: Presence) -> Result<Arc<Self>, Failure> {
        let waker = Waker::new()
            .map_err(|error| Failure::new(format!("the worker cannot make a socket: {error}")))?;
        let waker = Arc::new(waker);
        let grown = Arc::clone(&waker);
        let appender = Appender::start(&app.paths.log(), app.clock, move || grown.grown())?;
        Ok(Arc::new(Self {
            environment: app.environment.clone(),
            paths: app.paths.clone(),
            clock: app.clock,
            recorder: RecorderCache::new(app.environment.clone(), app.paths.clone()),
            presence,
            started: Instant::now(),
            changes: broadcast::Sender::new(CHANGES_MAX),
            board: Board::new(),
            reader: Mutex::default(),
            queue: QueueHistory::default(),
            left: Arc::default(),
            appender,
            waker,
            busy: AtomicUsize::new(0),
            touched: AtomicU64::new(0),
            ending: watch::Sender::new(None),
        }))
    }

    /// What a command gets, with the settings as they are now. Opening tables and asking block, so that
    /// this is for `spawn_blocking`.
    pub fn app(&self) -> App {
        App::new(self.environment.clone(), self.paths.clone())
    }

    /// Appends an event. When it returns the event's id, the event is on disk.
    pub async fn append(&self, envelope: Envelope, event: Event) -> Result<Id, String> {
        let ids = self.append_all(vec![(envelope, event)]).await?;
        Ok(ids[0])
    }

    /// Appends several events, in this order. When it returns their ids, all of them are on disk.
    pub async fn append_all(&self, events: Vec<(Envelope, Event)>) -> Result<Vec<Id>, String> {
        self.appender.append(events).await
    }

    /// Has what was appended by others brought to disk soon.
    pub(crate) fn sync(&self) {
        self.appender.sync();
    }

    /// How often what was appended was brought to disk.
    pub(crate) fn syncs(&self) -> u64 {
        self.appender.syncs()
    }

    /// Has the projecting thread look what there is to do.
    pub fn wake(&self) {
        self.waker.wake();
    }

    /// Cancels the request about a session, puts no other, and waits until it has ended, but no longer than
    /// `time_max`. Says whether it has. What is pending stays in the log, and is distilled when the session goes on.
    pub async fn leave(&self, session: &str, time_max: Duration) -> bool {
        self.left.add(session, self.clock.now().as_microsecond().cast_unsigned());
        let deadline = Instant::now() + time_max;
        while self.board.read().sessions.iter().any(|asked| asked == session) {
            if Instant::now() >= deadline {
                return false;
            }
            tokio::time::sleep(LEAVE_PAUSE).await;
        }
        true
    }

    /// Reads from the database; `work` gets nothing if there is none yet. One reads at a time, so that the database is
    /// opened once.
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

    /// Whether nothing of this session is sent to the provider, because it was deleted.
    pub fn is_left(&self, session: &str) -> bool {
        self.left.has(session)
    }

    /// How many sessions are marked as deleted.
    pub fn left_entries(&self) -> usize {
        self.left.entries()
    }

    /// How many answers were recorded and not seen in the tables yet.
    pub fn unconfirmed(&self) -> usize {
        self.board.read().unconfirmed
    }

    /// Somebody wants something: the worker is of use.
    pub fn touch(&self) {
        let now = self.started.elapsed().as_millis() as u64;
        self.touched.store(now, Ordering::Relaxed);
    }

    /// Whether nobody wanted anything for so long, and nobody wants anything now.
    pub(crate) fn is_quiet_for(&self, time: Duration) -> bool {
        let touched = Duration::from_millis(self.touched.load(Ordering::Relaxed));
        self.busy.load(Ordering::SeqCst) == 0 && self.started.elapsed() >= touched + time
    }

    /// As long as what this returns is there, the worker does not end by itself: a viewer is open, a
    /// reprocessing runs, a request is answered.
    pub fn busy(self: &Arc<Self>) -> Busy {
        self.touch();
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(self))
    }

    /// Asks the worker to end: what is under way is finished, nothing new is begun.
    pub fn end(&self) {
        self.end_because(End::Asked);
    }

    /// Ends the worker for this reason, unless it has one already.
    pub(crate) fn end_because(&self, end: End) {
        self.ending.send_if_modified(|ending| {
            let is_first = ending.is_none();
            ending.get_or_insert(end);
            is_first
        });
        self.wake();
    }

    /// Why the worker ends, if it does.
    pub(crate) fn ending(&self) -> Option<End> {
        *self.ending.borrow()
    }

    /// Whether the worker is to end.
    pub fn is_ending(&self) -> bool {
        self.ending().is_some()
    }

    /// Returns when the worker is to end.
    pub async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // It cannot fail: the sender is in `self`.
        let _ = ending.wait_for(Option::is_some).await;
    }

    /// Tells whoever listens.
    pub fn tell(&self, change: Change) {
        // Often nobody does.
        let _ = self.changes.send(change);
    }
}

/// A reason not to end.
#[derive(Debug)]
pub struct Busy(Arc<Shared>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.touch();
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}
