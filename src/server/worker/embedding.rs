//! The embedding thread: gives memories their vectors, after all other work.
//!
//! It starts a run when events were indexed. A run that finds nothing missing is short. Each text takes some hundredths of a
//! second of one core at the lowest priority, and the thread waits while a search runs.

use std::{
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use claude_mem_projections::Store;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::shared::{Change, Shared};
use claude_mem_core::{failure::Failure, os};
use claude_mem_memory::semantic::{Depth, embed_missing};

/// Time between the end of a run and the next one: events come in bursts.
const PAUSE: Duration = Duration::from_secs(3);
/// How often the texts of all memories are compared with their vectors. Other machines edit memories, too.
const TEXTS_EVERY: Duration = Duration::from_secs(3600);
/// Polling interval while a search runs.
const SEARCH_POLL: Duration = Duration::from_millis(5);
/// Page cache of the database.
const CACHE_KB: u32 = 256;

/// Starts the thread. It may end at any time with the process: a torn record does not count.
pub(super) fn start(shared: &Arc<Shared>) -> Result<(), Failure> {
    let (shared, changes) = (Arc::clone(shared), shared.changes.subscribe());
    thread::Builder::new()
        .name("embed".into())
        .spawn(move || run(&shared, changes))
        .map(|_| ())
        .map_err(|error| Failure::new(format!("cannot start a thread: {error}")))
}

fn run(shared: &Arc<Shared>, mut changes: Receiver<Change>) {
    os::lower_thread_priority();
    let mut texts_at = Instant::now();
    let mut is_unfinished = false;
    // The first change says that the database is complete.
    while is_unfinished || wait_for_fold(&mut changes) {
        thread::sleep(PAUSE);
        if shared.is_ending() {
            return;
        }
        let is_due = texts_at <= Instant::now();
        let depth = if is_due { Depth::Texts } else { Depth::Rows };
        match turn(shared, depth) {
            Ok(is_over) => {
                shared.board.note(|progress| progress.vectors_problem = None);
                is_unfinished = !is_over;
                if is_due && is_over {
                    texts_at = Instant::now() + TEXTS_EVERY;
                }
            }
            Err(failure) => {
                let problem = failure.in_one_line();
                if shared.board.read().vectors_problem.as_ref() != Some(&problem) {
                    tracing::warn!("embedding: {problem}");
                }
                shared.board.note(|progress| progress.vectors_problem = Some(problem));
                is_unfinished = false;
            }
        }
    }
}

/// Waits until events were indexed. False when the worker ends.
fn wait_for_fold(changes: &mut Receiver<Change>) -> bool {
    loop {
        match changes.blocking_recv() {
            Ok(Change::Folded) | Err(RecvError::Lagged(_)) => break,
            Ok(_) => {}
            Err(RecvError::Closed) => return false,
        }
    }
    // One run is enough for all of them.
    while changes.try_recv().is_ok() {}
    true
}

/// One run. False if it did not get to the end.
fn turn(shared: &Arc<Shared>, depth: Depth) -> Result<bool, Failure> {
    let app = shared.app();
    let Some(store) = Store::open_read_only(&app.paths.memory())? else { return Ok(true) };
    store.limit_cache(CACHE_KB)?;
    // A worker that still has something to embed is not idle.
    let mut busy = None;
    let done = embed_missing(&app, &store, depth, 1, |_, _, counts| {
        busy.get_or_insert_with(|| shared.busy());
        shared.board.note(|progress| progress.vectors = Some(counts));
        while shared.is_searching() && !shared.is_ending() {
            thread::sleep(SEARCH_POLL);
        }
        !shared.is_ending()
    })?;
    shared.board.note(|progress| progress.vectors = done.map(|done| done.counts));
    let Some(done) = done else { return Ok(true) };
    if done.embedded > 0 {
        tracing::debug!(memories = done.embedded, missing = done.counts.missing, "embedded");
    }
    Ok(done.counts.missing == 0 || done.is_claimed)
}
