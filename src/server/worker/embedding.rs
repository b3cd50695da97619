//! The embedding thread: computes missing vectors, after all other work.
//!
//! The lowest priority is not enough. Some kernels first divide processors between sessions or
//! control groups. Then this thread is alone in the worker's group, and would get as much time as a
//! whole build in another group. So it measures how long it waited for a processor, and pauses
//! while others need it.
//!
//! A run starts when events were indexed. A run that finds nothing missing is short. Each text
//! takes some hundredths of a second of one core, and the thread waits while a search runs.

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
const EMBEDDING_PAUSE: Duration = Duration::from_secs(3);
/// Time after a failure: an endpoint may be down, and frequent requests do not help.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(60);
/// How often the texts of all memories are compared with their vectors. Other machines edit
/// memories, too.
const TEXTS_EVERY: Duration = Duration::from_secs(3600);
/// Polling interval while a search runs.
const SEARCH_POLL: Duration = Duration::from_millis(5);
/// A thread that waits for a processor this share of its running time has competitors.
const WAITED_SHARE: u32 = 4;
/// With competitors, it pauses this many times as long as it ran.
const PAUSED_TIMES: u32 = 10;
const PAUSED_MAX: Duration = Duration::from_secs(2);
/// Page cache of the database.
const CACHE_KB: u32 = 256;

/// Starts the thread. The process can end it at any time: a torn record is ignored.
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
    let (mut is_unfinished, mut pause) = (false, EMBEDDING_PAUSE);
    // The first change shows that the database is complete.
    while is_unfinished || wait_for_fold(&mut changes) {
        thread::sleep(pause);
        if shared.is_ending() {
            return;
        }
        let is_due = texts_at <= Instant::now();
        let depth = if is_due { Depth::Texts } else { Depth::Rows };
        match turn(shared, depth) {
            Ok(is_over) => {
                shared.progress.note(|progress| progress.vectors_problem = None);
                (is_unfinished, pause) = (!is_over, EMBEDDING_PAUSE);
                if is_due && is_over {
                    texts_at = Instant::now() + TEXTS_EVERY;
                }
            }
            Err(failure) => {
                let problem = failure.in_one_line();
                if shared.progress.read().vectors_problem.as_ref() != Some(&problem) {
                    tracing::warn!("embedding: {problem}");
                }
                shared.progress.note(|progress| progress.vectors_problem = Some(problem));
                (is_unfinished, pause) = (true, PAUSE_AFTER_FAILURE);
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

/// Runs once. Returns false if it did not finish.
fn turn(shared: &Arc<Shared>, depth: Depth) -> Result<bool, Failure> {
    let app = shared.app();
    let Some(store) = Store::open_read_only(&app.paths.memory())? else { return Ok(true) };
    store.limit_cache(CACHE_KB)?;
    // A worker that still has something to embed is not idle.
    let (mut busy, mut times) = (None, os::thread_times());
    let done = embed_missing(&app, &store, depth, 1, |_, _, counts| {
        busy.get_or_insert_with(|| shared.busy());
        shared.progress.note(|progress| progress.vectors = Some(counts));
        while shared.is_searching() && !shared.is_ending() {
            thread::sleep(SEARCH_POLL);
        }
        thread::sleep(pause_for_others(times, os::thread_times()));
        times = os::thread_times();
        !shared.is_ending()
    })?;
    shared.progress.note(|progress| progress.vectors = done.map(|done| done.counts));
    let Some(done) = done else { return Ok(true) };
    if done.embedded > 0 {
        tracing::debug!(memories = done.embedded, missing = done.counts.missing, "embedded");
    }
    Ok(done.counts.missing == 0 || done.is_claimed)
}

/// How long to pause after a piece of work, by the times before and after it.
fn pause_for_others(
    before: Option<(Duration, Duration)>,
    after: Option<(Duration, Duration)>,
) -> Duration {
    let Some(((ran, waited), (ran_before, waited_before))) = after.zip(before) else {
        return Duration::ZERO;
    };
    let ran = ran.saturating_sub(ran_before);
    let waited = waited.saturating_sub(waited_before);
    if waited * WAITED_SHARE < ran { Duration::ZERO } else { (ran * PAUSED_TIMES).min(PAUSED_MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_pauses_while_others_need_the_processor() {
        let millis = Duration::from_millis;
        let pause = |ran: u64, waited: u64| {
            pause_for_others(
                Some((millis(500), millis(50))),
                Some((millis(500 + ran), millis(50 + waited))),
            )
        };
        assert_eq!(pause(60, 5), Duration::ZERO);
        assert_eq!(pause(60, 60), millis(600));
        assert_eq!(pause(900, 900), PAUSED_MAX);
        assert_eq!(pause_for_others(None, None), Duration::ZERO);
    }
}
