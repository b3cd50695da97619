//! Progress as reported by the main loop. `health.rs` verifies it.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use claude_mem_memory::semantic::VectorCounts;

/// Last report of the main loop.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// Last heartbeat.
    pub beat: Instant,
    /// Provider; empty before the first request.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Requests in progress.
    pub distilling: usize,
    /// Their sessions.
    pub sessions: Vec<String>,
    /// Pending events.
    pub waiting: u64,
    /// Recorded responses that are not indexed yet.
    pub unconfirmed: usize,
    /// Last time a request was sent, answered or refused.
    pub moved: Instant,
    /// Why no provider is available, and until when.
    pub closed: Option<(String, Instant)>,
    /// Number of rounds of the main loop.
    pub rounds: u64,
    /// Error of the last round.
    pub problem: Option<String>,
    /// Memories with and without a vector; `None` without a model, and before the first look.
    pub vectors: Option<VectorCounts>,
    /// Why there are no vectors.
    pub vectors_problem: Option<String>,
}

/// Shared progress.
#[derive(Debug)]
pub(crate) struct SharedProgress(Mutex<Progress>);

impl SharedProgress {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Progress {
            beat: Instant::now(),
            provider: String::new(),
            model: String::new(),
            distilling: 0,
            sessions: Vec::new(),
            waiting: 0,
            unconfirmed: 0,
            moved: Instant::now(),
            closed: None,
            rounds: 0,
            problem: None,
            vectors: None,
            vectors_problem: None,
        }))
    }

    /// The last report.
    pub(crate) fn read(&self) -> Progress {
        self.lock().clone()
    }

    /// Updates what another thread than the main loop reports.
    pub(crate) fn note(&self, change: impl FnOnce(&mut Progress)) {
        change(&mut self.lock());
    }

    /// Updates the report, and the heartbeat.
    pub(crate) fn update(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        progress.beat = Instant::now();
        change(&mut progress);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// Time since the last heartbeat.
    pub(crate) fn silence(&self) -> Duration {
        self.beat.elapsed()
    }
}
