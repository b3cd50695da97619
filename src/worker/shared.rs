//! What everything in the worker shares: where things are, who may come in, and what just happened.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use claude_mem_events::{Envelope, Event, Id, Seq};
use claude_mem_projections::search::Name;
use tokio::sync::{Notify, broadcast, watch};

use super::{Appender, Presence};
use crate::{
    app::App, clock::Clock, environment::Environment, failure::Failure, paths::Paths,
    settings::Settings,
};

/// Changes that a slow listener may be behind by; then it is told that it missed some.
const CHANGES_MAX: usize = 256;

/// One for the whole process.
#[derive(Debug)]
pub(crate) struct Shared {
    /// For the few variables that are no settings of ours.
    pub(crate) environment: Environment,
    /// Where things live.
    pub(crate) paths: Paths,
    /// What time it is.
    pub(crate) clock: Clock,
    /// Token, instance, version, port.
    pub(crate) presence: Presence,
    /// Since when.
    pub(crate) started: Instant,
    /// The log has grown, or may have.
    pub(crate) wake: Arc<Notify>,
    /// What happened, for whoever listens.
    pub(crate) changes: broadcast::Sender<Change>,
    appender: Appender,
    busy: Arc<AtomicUsize>,
    ending: watch::Sender<bool>,
}

/// Something that a viewer wants to know of. Rows that it names are there by then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    /// The event it comes from; the place to go on from for whoever missed what came later. Nothing of
    /// what is only true for the moment.
    pub(crate) seq: Option<Seq>,
    /// What happened.
    pub(crate) what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A session began, or went on.
    SessionStarted {
        /// The watched program's own id of it.
        session: String,
    },
    /// A prompt was submitted.
    PromptSubmitted {
        /// The watched program's own id of its session.
        session: String,
        /// The event.
        event: Id,
    },
    /// Something waits to be distilled.
    ObservationQueued {
        /// The watched program's own id of its session.
        session: String,
        /// The event.
        event: Id,
        /// The tool that was used.
        tool: String,
    },
    /// There is a new observation.
    ObservationAdded {
        /// How to call it.
        name: Name,
    },
    /// There is a new summary.
    SummaryAdded {
        /// How to call it.
        name: Name,
    },
    /// A session ended.
    SessionCompleted {
        /// The watched program's own id of it.
        session: String,
    },
    /// Something was forgotten, or a forgetting was taken back.
    Forgotten {
        /// The event.
        event: Id,
    },
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
    pub(crate) fn new(app: &App, presence: Presence) -> Result<Arc<Self>, Failure> {
        let wake = Arc::new(Notify::new());
        let grown = Arc::clone(&wake);
        let appender = Appender::start(&app.paths.log(), app.clock, move || grown.notify_one())?;
        Ok(Arc::new(Self {
            environment: app.environment.clone(),
            paths: app.paths.clone(),
            clock: app.clock,
            presence,
            started: Instant::now(),
            wake,
            changes: broadcast::Sender::new(CHANGES_MAX),
            appender,
            busy: Arc::default(),
            ending: watch::Sender::new(false),
        }))
    }

    /// What a command gets, with the settings as they are now. Opening tables and asking block, so that
    /// this is for `spawn_blocking`.
    pub(crate) fn app(&self) -> App {
        App::new(self.environment.clone(), self.paths.clone())
    }

    /// Appends an event. When it returns the event's id, the event is on disk.
    pub(crate) async fn append(&self, envelope: Envelope, event: Event) -> Result<Id, String> {
        let ids = self.append_all(vec![(envelope, event)]).await?;
        Ok(ids[0])
    }

    /// Appends several events, in this order. When it returns their ids, all of them are on disk.
    pub(crate) async fn append_all(
        &self,
        events: Vec<(Envelope, Event)>,
    ) -> Result<Vec<Id>, String> {
        self.appender.append(events).await
    }

    /// As long as what this returns is there, the worker does not end by itself: a viewer is open, a
    /// reprocessing runs, a request is answered.
    pub(crate) fn busy(&self) -> Busy {
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(Arc::clone(&self.busy))
    }

    /// Asks the worker to end: what is under way is finished, nothing new is begun.
    pub(crate) fn end(&self) {
        self.ending.send_replace(true);
    }

    /// Returns when the worker is to end.
    pub(crate) async fn ended(&self) {
        let mut ending = self.ending.subscribe();
        // It cannot fail: the sender is in `self`.
        let _ = ending.wait_for(|is_ending| *is_ending).await;
    }

    /// Tells whoever listens.
    pub(crate) fn tell(&self, change: Change) {
        // Often nobody does.
        let _ = self.changes.send(change);
    }
}

/// A reason not to end.
#[derive(Debug)]
pub(crate) struct Busy(Arc<AtomicUsize>);

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}
