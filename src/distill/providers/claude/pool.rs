//! The pool of children: at most one per session, a maximum in total, and a time limit for idle
//! ones.

use std::{
    collections::HashSet,
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::child::Child;

/// Children by content session. A session holds a [`Lease`] while it uses its child; others wait.
pub(super) struct Pool {
    shared: Arc<Shared>,
    reaper: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    children_max: usize,
    idle_max: Duration,
}

#[derive(Default)]
struct State {
    busy: HashSet<String>,
    /// Least recently used first.
    idle: Vec<IdleChild>,
    is_closing: bool,
}

struct IdleChild {
    session: String,
    child: Child,
    since: Instant,
}

impl Pool {
    pub(super) fn new(children_max: usize, idle_max: Duration) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let shared = Arc::new(Shared { state, changed, children_max, idle_max });
        let pool_state = Arc::clone(&shared);
        let reaper = thread::spawn(move || reap(&pool_state));
        Self { shared, reaper: Some(reaper) }
    }

    /// Waits for a slot for this session, until the deadline. If the pool is full, the least
    /// recently used idle child is ended.
    pub(super) fn lease(&self, session: &str, deadline: Instant) -> Option<Lease<'_>> {
        let mut state = self.shared.lock();
        loop {
            if !state.busy.contains(session) {
                let own = state.idle.iter().position(|idle| idle.session == session);
                let is_full = state.busy.len() + state.idle.len() >= self.shared.children_max;
                let displaced = is_full && own.is_none() && !state.idle.is_empty();
                if own.is_some() || displaced || !is_full {
                    let taken = own.or(displaced.then_some(0)).map(|at| state.idle.remove(at));
                    state.busy.insert(session.to_owned());
                    drop(state);
                    let child = taken.map(|idle| idle.child);
                    return Some(Lease::new(&self.shared, session, child, own.is_some()));
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.shared.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let idle = {
            let mut state = self.shared.lock();
            state.is_closing = true;
            mem::take(&mut state.idle)
        };
        self.shared.changed.notify_all();
        for idle in idle {
            idle.child.end();
        }
        if let Some(reaper) = self.reaper.take() {
            drop(reaper.join());
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's exclusive use of a child, until dropped.
pub(super) struct Lease<'a> {
    shared: &'a Shared,
    session: String,
    child: Option<Child>,
}

impl<'a> Lease<'a> {
    /// A child displaced from another session is ended, never reused.
    fn new(shared: &'a Shared, session: &str, child: Option<Child>, is_own: bool) -> Self {
        let child = child.and_then(|child| {
            if is_own {
                return Some(child);
            }
            child.end();
            None
        });
        Self { shared, session: session.to_owned(), child }
    }

    /// The idle child of this session, if any.
    pub(super) fn take_child(&mut self) -> Option<Child> {
        self.child.take()
    }

    /// Keeps the child for the session's next request.
    pub(super) fn give_back(mut self, child: Child) {
        self.child = Some(child);
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.busy.remove(&self.session);
        if let Some(child) = self.child.take() {
            let (session, since) = (mem::take(&mut self.session), Instant::now());
            state.idle.push(IdleChild { session, child, since });
        }
        drop(state);
        self.shared.changed.notify_all();
    }
}

/// Ends children that are idle for too long.
fn reap(shared: &Shared) {
    let mut state = shared.lock();
    while !state.is_closing {
        let now = Instant::now();
        let is_old = |idle: &IdleChild| now.duration_since(idle.since) >= shared.idle_max;
        let old: Vec<IdleChild> = state.idle.extract_if(.., |idle| is_old(idle)).collect();
        if !old.is_empty() {
            drop(state);
            for idle in old {
                idle.child.end();
            }
            state = shared.lock();
            continue;
        }
        let next = state.idle.first().map(|idle| (idle.since + shared.idle_max) - now);
        state = match next {
            Some(next) => {
                let woken = shared.changed.wait_timeout(state, next);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
        };
    }
}
