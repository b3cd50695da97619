//! Group commit: many requests, one write, one flush.
//!
//! Requests that arrive during a flush form the next batch. Programs that send one event after the
//! other would form two groups that wait for each other. So the next batch waits for programs that
//! just got a response, for a time that is short compared with a flush.

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

/// Maximum number of queued requests; others wait for a slot.
const WAITING_MAX: usize = 256;
/// Maximum number of events per batch, so that a large write does not delay the first of them.
const BATCH_EVENTS_MAX: usize = 512;
/// Maximum wait for more requests; also limited to a quarter of the last flush.
const PAUSE_MAX: Duration = Duration::from_millis(2);

/// Events of one request, and where to send their IDs.
struct Request {
    events: Vec<(Id, Envelope, Event)>,
    done: oneshot::Sender<Result<(), String>>,
    /// Released with the response.
    place: OwnedSemaphorePermit,
}

/// Handle of the thread that appends.
#[derive(Debug, Clone)]
pub(crate) struct Appender {
    requests: mpsc::Sender<Request>,
    room: Arc<Semaphore>,
    syncs: Arc<AtomicU64>,
    clock: Clock,
}

impl Appender {
    /// Starts the thread. It ends when the last clone is dropped. `grown` is called after each
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
        let desk = AppendThread {
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

    /// Number of flushes.
    pub(crate) fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Requests a flush of the whole log, without waiting for it.
    pub(crate) fn sync(&self) {
        // If the queue is full, a flush follows anyway.
        if let Ok(place) = Arc::clone(&self.room).try_acquire_owned() {
            let (done, _) = oneshot::channel();
            let _ = self.requests.send(Request { events: Vec::new(), done, place });
        }
    }

    /// Appends events in this order. They are on disk when it returns their IDs.
    pub(crate) async fn append(&self, events: Vec<(Envelope, Event)>) -> Result<Vec<Id>, String> {
        let now_us = self.clock.now().as_microsecond().cast_unsigned();
        let events: Vec<_> = events
            .into_iter()
            .map(|(envelope, event)| (Id::random(now_us), envelope, event))
            .collect();
        let ids = events.iter().map(|(id, ..)| *id).collect();
        let (done, answer) = oneshot::channel();
        let gone = || "the worker is stopping".to_owned();
        let place = Arc::clone(&self.room).acquire_owned().await.map_err(|_| gone())?;
        self.requests.send(Request { events, done, place }).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone())).map(|()| ids)
    }
}

/// State of the thread.
struct AppendThread {
    log: EventLog,
    waiting: mpsc::Receiver<Request>,
    room: Arc<Semaphore>,
    syncs: Arc<AtomicU64>,
    /// Number of requests in the last batch.
    company: usize,
    /// Wait for more requests.
    pause: Duration,
}

impl AppendThread {
    fn serve(mut self, grown: &dyn Fn()) {
        while let Ok(first) = self.waiting.recv() {
            let mut batch = Batch::default();
            batch.add(first);
            self.gather(&mut batch);
            let appended = self.append(&batch).map_err(|error| error.to_string());
            // All queued requests are in the batch, or arrived meanwhile.
            self.company = WAITING_MAX - self.room.available_permits();
            for (done, place) in batch.waiters {
                drop(place);
                // If the requester is gone, the event is still in the log.
                let _ = done.send(appended.clone());
            }
            if !batch.events.is_empty() {
                grown();
            }
        }
    }

    /// Collects queued requests, and waits briefly for more.
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

/// Events that are appended together.
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
    fn concurrent_requests_are_appended_once_and_share_syncs() {
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
