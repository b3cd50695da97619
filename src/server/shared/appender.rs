//! Appending for everybody who asks the worker: many requests, one write, one sync.
//!
//! Whatever arrives while a batch is on its way to the disk is the next batch. Programs that tell one thing
//! after the other would so fall into two groups that wait for each other. So the next batch is given a moment,
//! short beside a sync, in which those who were just answered come back.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use claude_mem_events::{Envelope, Event, EventLog, Id};
use claude_mem_log::{Error, Options};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use claude_mem_core::clock::Clock;

/// Requests that may wait; whoever comes then waits for room.
const WAITING_MAX: usize = 256;
/// Events of one batch; a write of many megabytes would keep the first of them waiting.
const BATCH_EVENTS_MAX: usize = 512;
/// Nobody is waited for longer than this, nor longer than a quarter of the last sync.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Events of one request, and who waits for them.
struct Request {
    events: Vec<(Id, Envelope, Event)>,
    done: oneshot::Sender<Result<(), String>>,
    /// Given back when it is answered.
    place: OwnedSemaphorePermit,
}

/// The way to the one thread that appends.
#[derive(Debug, Clone)]
pub(crate) struct Appender {
    requests: mpsc::Sender<Request>,
    room: Arc<Semaphore>,
    syncs: Arc<AtomicU64>,
    clock: Clock,
}

impl Appender {
    /// Starts the thread. It ends when the last clone of this value is gone. `grown` is called after each
    /// batch.
    pub(crate) fn start(
        log: &Path,
        clock: Clock,
        grown: impl Fn() + Send + 'static,
    ) -> Result<Self, Error> {
        let log = EventLog::open(log, Options::default())?;
        let (requests, waiting) = mpsc::channel();
        let room = Arc::new(Semaphore::new(WAITING_MAX));
        let syncs = Arc::new(AtomicU64::new(0));
        let desk = Desk {
            log,
            waiting,
            room: Arc::clone(&room),
            syncs: Arc::clone(&syncs),
            company: 1,
            pause: Duration::ZERO,
        };
        thread::spawn(move || desk.serve(&grown));
        Ok(Self { requests, room, syncs, clock })
    }

    /// How often the log was brought to disk.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Has everything that is in the log brought to disk, whoever appended it, without waiting for that.
    pub(crate) fn sync(&self) {
        // If so many wait that there is no room, there is a sync behind them.
        if let Ok(place) = Arc::clone(&self.room).try_acquire_owned() {
            let (done, _) = oneshot::channel();
            let _ = self.requests.send(Request { events: Vec::new(), done, place });
        }
    }

    /// Appends these events, in this order. When it returns their ids they are on disk.
    pub(crate) async fn append(&self, events: Vec<(Envelope, Event)>) -> Result<Vec<Id>, String> {
        let now_us = self.clock.now().as_microsecond().cast_unsigned();
        let events: Vec<_> = events
            .into_iter()
            .map(|(envelope, event)| (Id::random(now_us), envelope, event))
            .collect();
        let ids = events.iter().map(|(id, ..)| *id).collect();
        let (done, answer) = oneshot::channel();
        let gone = || "the worker is ending".to_owned();
        let place = Arc::clone(&self.room).acquire_owned().await.map_err(|_| gone())?;
        self.requests.send(Request { events, done, place }).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone())).map(|()| ids)
    }
}

/// The thread's side.
struct Desk {
    log: EventLog,
    waiting: mpsc::Receiver<Request>,
    room: Arc<Semaphore>,
    syncs: Arc<AtomicU64>,
    /// How many asked at the same time, last time.
    company: usize,
    /// How long the others are waited for.
    pause: Duration,
}

impl Desk {
    fn serve(mut self, grown: &dyn Fn()) {
        while let Ok(first) = self.waiting.recv() {
            let mut batch = Batch::default();
            batch.add(first);
            self.gather(&mut batch);
            let appended = self.append(&batch).map_err(|error| error.to_string());
            // All that have a place are in the batch, or came meanwhile.
            self.company = WAITING_MAX - self.room.available_permits();
            for (done, place) in batch.waiters {
                drop(place);
                // Whoever went away finds it in the log.
                let _ = done.send(appended.clone());
            }
            if !batch.events.is_empty() {
                grown();
            }
        }
    }

    /// Takes what is there, and for a moment what comes.
    fn gather(&self, batch: &mut Batch) {
        let deadline = Instant::now() + self.pause;
        while batch.events.len() < BATCH_EVENTS_MAX {
            let next = match self.waiting.try_recv() {
                Err(_) if batch.waiters.len() < self.company => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    self.waiting.recv_timeout(left).ok()
                }
                next => next.ok(),
            };
            let Some(next) = next else { break };
            batch.add(next);
        }
    }

    fn append(&mut self, batch: &Batch) -> Result<(), Error> {
        if !batch.events.is_empty() {
            self.log.record_all(&batch.events)?;
        }
        let began = Instant::now();
        let synced = self.log.sync();
        self.pause = (began.elapsed() / 4).min(PAUSE_MAX);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        synced
    }
}

/// What is appended together.
#[derive(Default)]
struct Batch {
    events: Vec<(Id, Envelope, Event)>,
    waiters: Vec<(oneshot::Sender<Result<(), String>>, OwnedSemaphorePermit)>,
}

impl Batch {
    fn add(&mut self, request: Request) {
        self.events.extend(request.events);
        self.waiters.push((request.done, request.place));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use claude_mem_events::{EventItem, EventReader, Seq, SessionEnded};
    use claude_mem_log::Log;

    use super::*;
    use claude_mem_core::environment::Environment;

    #[test]
    fn many_at_once_are_each_appended_once_and_share_their_syncs() {
        let dir = tempfile::tempdir().unwrap();
        let batches = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&batches);
        let count = move || {
            counted.fetch_add(1, Ordering::SeqCst);
        };
        let clock = Clock::new(&Environment::fixed(&[]));
        let appender = Appender::start(dir.path(), clock, count).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let ids = runtime.block_on(async {
            let mut tasks = tokio::task::JoinSet::new();
            for number in 0..200 {
                let appender = appender.clone();
                let event = SessionEnded { reason: number.to_string(), ..SessionEnded::default() };
                tasks.spawn(async move {
                    appender.append(vec![(Envelope::default(), event.into())]).await.unwrap()
                });
            }
            tasks.join_all().await
        });
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let mut reader = EventReader::from(&log, Seq::START);
        let mut found = Vec::new();
        while let Some(met) = reader.next().unwrap() {
            let EventItem::Event(recorded) = met else { panic!("{met:?}") };
            found.push(recorded.id);
        }
        let mut ids: Vec<Id> = ids.into_iter().flatten().collect();
        ids.sort();
        found.sort();
        assert_eq!(found, ids);
        assert!(batches.load(Ordering::SeqCst) < 20, "{batches:?}");
    }
}
