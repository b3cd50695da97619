//! How far the worker is, as its own thread says it. What is said is checked by `health.rs`.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What the projecting thread last said.
#[derive(Debug, Clone)]
pub(crate) struct Progress {
    /// When it was last seen at work, or waiting for it.
    pub beat: Instant,
    /// Who is asked, and which model; empty until somebody is.
    pub provider: String,
    /// Which model.
    pub model: String,
    /// Questions with the agent now.
    pub asking: usize,
    /// The sessions that they are about.
    pub sessions: Vec<String>,
    /// Events that wait for an answer.
    pub waiting: u64,
    /// Answers recorded and not seen in the tables yet.
    pub unconfirmed: usize,
    /// When a question was last put, answered or refused.
    pub moved: Instant,
    /// Why nobody can be asked, and until when.
    pub closed: Option<(String, Instant)>,
    /// What went wrong in the last round.
    pub problem: Option<String>,
}

/// A place for it that both sides can reach.
#[derive(Debug)]
pub(crate) struct Board(Mutex<Progress>);

impl Board {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Progress {
            beat: Instant::now(),
            provider: String::new(),
            model: String::new(),
            asking: 0,
            sessions: Vec::new(),
            waiting: 0,
            unconfirmed: 0,
            moved: Instant::now(),
            closed: None,
            problem: None,
        }))
    }

    /// What was last said.
    pub(crate) fn read(&self) -> Progress {
        self.lock().clone()
    }

    /// Says something, which also shows that somebody is there to say it.
    pub(crate) fn say(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.lock();
        progress.beat = Instant::now();
        change(&mut progress);
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress {
    /// How long ago it was last seen.
    pub(crate) fn silence(&self) -> Duration {
        self.beat.elapsed()
    }
}
