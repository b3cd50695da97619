//! Appender, roller, sealer, syncer and reader, interleaved at every call.
//!
//! On the simulated disk every call is a point where another process may run. For two processes all
//! points are tried; for three, one runs at a random point of another that is itself interleaved.

use crate::{
    random::Random,
    records::{self, Reading},
    scale,
    scenario::options,
    sim::Sim,
};
use claude_mem_log::{Appender, Log, Reader, maintain};
use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex},
};

const DIR: &str = "/disk/log";

/// One action of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Append,
    /// Enough to roll.
    AppendMany,
    Maintain,
    Sync,
    Read,
    /// Each segment alone.
    Compact,
    /// All into one.
    Merge,
}

const ACTS: [Act; 7] =
    [Act::Append, Act::AppendMany, Act::Maintain, Act::Sync, Act::Read, Act::Compact, Act::Merge];

struct World {
    sim: Sim,
    /// Each action has its own appender, like a process.
    appenders: Vec<Appender>,
    reader: Reader,
    reading: Reading,
    appended: BTreeSet<u64>,
    next: u64,
}

type Shared = Arc<Mutex<World>>;

fn world(sim: &Sim) -> Shared {
    let open = || Appender::open(Path::new(DIR), options(sim)).unwrap();
    let mut appenders: Vec<Appender> = ACTS.iter().map(|_| open()).collect();
    // One compacted segment, two complete ones, one that is not sealed yet, and the active one just
    // below the size at which it is rolled.
    let mut appended = BTreeSet::new();
    let segments = || Log::open(Path::new(DIR), options(sim)).unwrap().segments().unwrap();
    for (number, is_complete) in [(2, true), (4, true), (5, false)] {
        while segments().last().is_none_or(|last| last.number < number) {
            records::append(&mut appenders[0], &[appended.len() as u64]).unwrap();
            appended.insert(appended.len() as u64);
        }
        if is_complete {
            maintain(Path::new(DIR), &options(sim)).unwrap();
        }
        if number == 2 {
            records::compact(Path::new(DIR), &options(sim), 1).unwrap();
        }
    }
    while segments().last().is_none_or(|last| last.bytes < 1300) {
        records::append(&mut appenders[0], &[appended.len() as u64]).unwrap();
        appended.insert(appended.len() as u64);
    }
    let reader = Log::open(Path::new(DIR), options(sim)).unwrap().read_from_start();
    let reading = Reading::default();
    Arc::new(Mutex::new(World {
        sim: sim.clone(),
        appenders,
        reader,
        reading,
        appended,
        next: 100,
    }))
}

/// Takes the needed parts out of the world, so that other actions can use it meanwhile.
fn act(world: &Shared, act: Act) {
    let index = ACTS.iter().position(|other| *other == act).unwrap();
    let mut now = world.lock().unwrap();
    let options = options(&now.sim);
    let fresh = Appender::open(Path::new(DIR), options.clone()).unwrap();
    let mut appender = std::mem::replace(&mut now.appenders[index], fresh);
    let count = match act {
        Act::Append => 1,
        Act::AppendMany => 12,
        _ => 0,
    };
    let numbers: Vec<u64> = (now.next..now.next + count).collect();
    now.next += count;
    drop(now);
    match act {
        Act::Append | Act::AppendMany => {
            for number in numbers {
                records::append(&mut appender, &[number]).unwrap();
                world.lock().unwrap().appended.insert(number);
            }
        }
        // The other process may hold a lock; then more is left for the next run.
        Act::Maintain => _ = maintain(Path::new(DIR), &options),
        Act::Sync => appender.sync().unwrap(),
        Act::Read => read(world),
        Act::Compact => _ = records::compact(Path::new(DIR), &options, 1).unwrap(),
        Act::Merge => _ = records::compact(Path::new(DIR), &options, 9).unwrap(),
    }
    world.lock().unwrap().appenders[index] = appender;
}

fn read(world: &Shared) {
    let mut now = world.lock().unwrap();
    let empty = Log::open(Path::new(DIR), options(&now.sim)).unwrap().read_from_start();
    let mut reader = std::mem::replace(&mut now.reader, empty);
    let mut reading = std::mem::take(&mut now.reading);
    drop(now);
    while let Some(item) = reader.next().unwrap() {
        reading.take(&item);
    }
    let mut now = world.lock().unwrap();
    (now.reader, now.reading) = (reader, reading);
}

/// Every appended record is returned once: by the reader from the start, and by a new one.
fn finish(world: &Shared, what: &str) {
    let (sim, appended) = {
        let mut now = world.lock().unwrap();
        now.appenders.clear();
        (now.sim.clone(), now.appended.clone())
    };
    maintain(Path::new(DIR), &options(&sim)).unwrap();
    read(world);
    let now = world.lock().unwrap();
    now.reading.assert_no_repetition();
    assert_eq!(now.reading.set(), appended, "{what}");
    assert!(now.reading.gaps.is_empty(), "{what}: {:?}", now.reading.gaps);
    let whole = records::read(Path::new(DIR), &options(&sim));
    assert_eq!(whole.numbers, now.reading.numbers, "{what}");
}

/// Runs `inner` before call `at` of `outer`. Returns whether there was such a call.
fn interleave(outer: Act, at: u64, inner: Act, third: Option<(Act, u64)>) -> bool {
    let sim = Sim::new();
    let world = world(&sim);
    let shared = Arc::clone(&world);
    let start = sim.calls();
    let happened = Arc::new(Mutex::new(false));
    let results = Arc::clone(&happened);
    sim.before_each_call(move |sim, call| {
        if call == start + at {
            *results.lock().unwrap() = true;
            if let Some((third, offset)) = third {
                let (shared, begun) = (Arc::clone(&shared), sim.calls());
                sim.before_each_call(move |sim, call| {
                    if call == begun + offset {
                        sim.no_hook();
                        act(&shared, third);
                    }
                });
            }
            act(&shared, inner);
            sim.no_hook();
        }
    });
    act(&world, outer);
    sim.no_hook();
    finish(&world, &format!("{inner:?} before call {at} of {outer:?}, third {third:?}"));
    *happened.lock().unwrap()
}

#[test]
fn two_processes_can_interleave_at_any_call() {
    let mut schedules = 0;
    for outer in ACTS {
        for inner in ACTS.into_iter().filter(|inner| *inner != outer) {
            let mut at = 1;
            while interleave(outer, at, inner, None) {
                at += 1;
                schedules += 1;
            }
        }
    }
    println!("{schedules} schedules of two");
    assert!(schedules > 500);
}

#[test]
fn three_processes_can_interleave() {
    let mut random = Random::new(3);
    for _ in 0..1500 * scale() {
        let mut acts = ACTS.to_vec();
        let outer = acts.swap_remove(random.below(acts.len()));
        let inner = acts.swap_remove(random.below(acts.len()));
        let third = acts.swap_remove(random.below(acts.len()));
        let (at, offset) = (1 + random.below(60) as u64, 1 + random.below(60) as u64);
        interleave(outer, at, inner, Some((third, offset)));
    }
}
