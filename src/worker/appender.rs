//! Appending for everybody who asks the worker: many requests, one write, one sync.
//!
//! Whatever arrives while a batch is on its way to the disk is the next batch. So a request waits for at
//! most two syncs, however many there are, and each sync is shared by all that waited for it.

use std::{path::Path, thread};

use claude_mem_events::{Envelope, Event, EventLog, Id};
use claude_mem_log::Options;
use tokio::sync::{mpsc, oneshot};

use crate::clock::Clock;

/// Requests that may wait; whoever comes then waits for room.
const WAITING_MAX: usize = 256;
/// Events of one batch; a write of many megabytes would keep the first of them waiting.
const BATCH_EVENTS_MAX: usize = 512;

/// Events of one request, and who waits for them.
struct Request {
    events: Vec<(Id, Envelope, Event)>,
    done: oneshot::Sender<Result<(), String>>,
}

/// The way to the one thread that appends.
#[derive(Debug, Clone)]
pub(crate) struct Appender {
    requests: mpsc::Sender<Request>,
    clock: Clock,
}

impl Appender {
    /// Starts the thread. It ends when the last clone of this value is gone. `grown` is called after each
    /// batch.
    pub(crate) fn start(
        log: &Path,
        clock: Clock,
        grown: impl Fn() + Send + 'static,
    ) -> Result<Self, claude_mem_log::Error> {
        let events = EventLog::open(log, Options::default())?;
        let (requests, waiting) = mpsc::channel(WAITING_MAX);
        thread::spawn(move || append_all(events, waiting, &grown));
        Ok(Self { requests, clock })
    }

    /// Has everything that is in the log brought to disk, whoever appended it, without waiting for that.
    pub(crate) fn sync(&self) {
        let (done, _) = oneshot::channel();
        // If so many wait that there is no room, there is a sync behind them.
        let _ = self.requests.try_send(Request { events: Vec::new(), done });
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
        self.requests.send(Request { events, done }).await.map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone())).map(|()| ids)
    }
}

fn append_all(mut log: EventLog, mut waiting: mpsc::Receiver<Request>, grown: &dyn Fn()) {
    while let Some(first) = waiting.blocking_recv() {
        let mut events = first.events;
        let mut waiters = vec![first.done];
        while events.len() < BATCH_EVENTS_MAX {
            let Ok(next) = waiting.try_recv() else { break };
            events.extend(next.events);
            waiters.push(next.done);
        }
        let recorded = if events.is_empty() { Ok(()) } else { log.record_all(&events) };
        let appended = recorded.and_then(|()| log.sync());
        let appended = appended.map_err(|error| error.to_string());
        for waiter in waiters {
            // Whoever went away finds it in the log.
            let _ = waiter.send(appended.clone());
        }
        if !events.is_empty() {
            grown();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use claude_mem_events::{EventReader, Met, Seq, SessionEnded};
    use claude_mem_log::Log;

    use super::*;
    use crate::environment::Environment;

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
            let Met::Event(recorded) = met else { panic!("{met:?}") };
            found.push(recorded.id);
        }
        let mut ids: Vec<Id> = ids.into_iter().flatten().collect();
        ids.sort();
        found.sort();
        assert_eq!(found, ids);
        assert!(batches.load(Ordering::SeqCst) < 100, "{batches:?}");
    }
}
