//! A typical sequence on a log: two processes that append, sync, roll and spill, and a maintainer.

use crate::{records, sim::Sim};
use claude_mem_log::{
    Appender, Error, Options, Spill,
    disk::{Disk as _, Lock},
    maintain,
};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// The directory of the log. Its parent exists; it does not.
pub const DIR: &str = "/disk/log";

pub fn options(sim: &Sim) -> Options {
    Options {
        segment_bytes_max: 1500,
        compress_bytes_min: 64,
        lock_wait_max: Duration::from_micros(400),
        reserve_bytes: 600,
        index_interval_bytes: 400,
        spill: Spill::Auto,
        disk: Arc::new(sim.clone()),
    }
}

/// Results of the calls so far, as the callers saw them.
#[derive(Debug, Clone, Default)]
pub struct CallResults {
    /// The append returned.
    pub acknowledged: BTreeSet<u64>,
    /// A sync returned after that.
    pub synced: BTreeSet<u64>,
    /// The records of each process in its spill file.
    spilled: [BTreeSet<u64>; 2],
    /// Spilled and unsynced records of processes that have ended.
    left: BTreeSet<u64>,
    /// Calls that failed.
    pub errors: u64,
}

impl CallResults {
    fn forget(&mut self, who: usize) {
        let spilled = std::mem::take(&mut self.spilled[who]);
        self.left.extend(spilled);
    }
}

pub type Shared = Arc<Mutex<CallResults>>;

/// Appends `count` records in all ways. Errors are counted, not fatal.
pub fn play(sim: &Sim, results: &Shared, count: u64) {
    let mut appenders = [open(sim), open(sim)];
    let mut number = 0;
    while number < count {
        let who = (number / 3 % 2) as usize;
        // A process that holds the lock and is stopped.
        let blocker = matches!(number % 80, 50..56).then(|| block(sim));
        let batch = if number.is_multiple_of(23) { 5 } else { 1 };
        let numbers: Vec<u64> = (number..number + batch).collect();
        append(results, &mut appenders[who], who, &numbers);
        drop(blocker);
        number += batch;
        if number % 7 < batch {
            sync(results, &mut appenders[who], who);
        }
        if number % 31 < batch {
            appenders[who] = open(sim);
            results.lock().unwrap().forget(who);
        }
        if number % 40 < batch {
            note(results, &maintain(Path::new(DIR), &options(sim)));
        }
        if number % 60 < batch {
            note(results, &records::compact(Path::new(DIR), &options(sim), (number / 60) as usize));
        }
    }
    for (who, appender) in appenders.iter_mut().enumerate() {
        sync(results, appender, who);
    }
}

fn open(sim: &Sim) -> Appender {
    Appender::open(Path::new(DIR), options(sim)).unwrap()
}

fn block(sim: &Sim) -> Option<Arc<dyn claude_mem_log::disk::File>> {
    let file = sim.open(&Path::new(DIR).join("active.log")).ok()?;
    file.try_lock(Lock::Exclusive).ok()?.then_some(file)
}

fn append(results: &Shared, appender: &mut Appender, who: usize, numbers: &[u64]) {
    let result = records::append(appender, numbers);
    let mut results_now = results.lock().unwrap_or_else(PoisonError::into_inner);
    if let Ok(appended) = &result {
        results_now.acknowledged.extend(numbers);
        if appended.seq.is_none() {
            results_now.spilled[who].extend(numbers);
        }
    }
    drop(results_now);
    note(results, &result);
}

fn sync(results: &Shared, appender: &mut Appender, who: usize) {
    let result = appender.sync();
    if result.is_ok() {
        let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
        results.spilled[who].clear();
        let unsynced = &results.spilled[1 - who] | &results.left;
        results.synced = &results.acknowledged - &unsynced;
    }
    note(results, &result);
}

fn note<T>(results: &Shared, result: &Result<T, Error>) {
    if result.is_err() {
        results.lock().unwrap_or_else(PoisonError::into_inner).errors += 1;
    }
}
