//! A reader during one write that reaches the file in parts.
//!
//! The kernel serializes appends, but not readers: they see a write page by page. Here every
//! appended record arrives in pieces, and a piece may arrive between any two calls of the reader.

use crate::{
    random::Random,
    records::{self, Reading},
    scale,
    scenario::{DIR, options},
    sim::Sim,
};
use claude_mem_log::{Appender, Log, Report, verify};
use std::path::{Path, PathBuf};

/// Records that are complete before the reader starts, and records that arrive in parts.
const WHOLE: u64 = 2;
const GROWING: u64 = 3;

fn active() -> PathBuf {
    Path::new(DIR).join("active.log")
}

/// The log after all records have arrived, and the length after each record.
struct Growth {
    sim: Sim,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Growth {
    fn new() -> Self {
        let sim = Sim::new();
        let mut appender = Appender::open(Path::new(DIR), options(&sim)).unwrap();
        let mut ends = Vec::new();
        for number in 1..=WHOLE + GROWING {
            records::append(&mut appender, &[number]).unwrap();
            ends.push(sim.get(&active()).len());
        }
        drop(appender);
        let bytes = sim.get(&active());
        Self { sim, bytes, ends }
    }

    /// The same log with only the first `len` bytes of its active segment.
    fn cut(&self, len: usize) -> Sim {
        let sim = self.sim.copy();
        sim.put(&active(), &self.bytes[..len]);
        sim
    }

    fn start(&self) -> usize {
        self.ends[WHOLE as usize - 1]
    }

    /// Schedules pieces of the write: at these calls, counted from now, the file grows to these
    /// lengths.
    fn arrive(&self, sim: &Sim, steps: Vec<(u64, usize)>) {
        let (bytes, begun) = (self.bytes.clone(), sim.calls());
        sim.before_each_call(move |sim, call| {
            for (at, len) in &steps {
                let now = sim.get(&active()).len();
                if call == begun + at && now < *len {
                    sim.grow(&active(), &bytes[now..*len]);
                }
            }
        });
    }

    fn arrive_whole(&self, sim: &Sim) {
        sim.no_hook();
        let now = sim.get(&active()).len();
        sim.grow(&active(), &self.bytes[now..]);
    }
}

/// Reads while pieces arrive and again at the end: each record is returned once, and nothing is
/// reported as damaged. A new reader, a backwards reader and `verify` never see damage either.
fn check(growth: &Growth, first: usize, steps: &[(u64, usize)]) -> u64 {
    let what = format!("{first} bytes, then {steps:?}");
    let sim = growth.cut(first);
    let before = sim.calls();
    growth.arrive(&sim, steps.to_vec());
    let mut reader = Log::open(Path::new(DIR), options(&sim)).unwrap().read_from_start();
    let mut reading = Reading::default();
    while let Some(item) = reader.next().unwrap() {
        reading.take(&item);
    }
    let calls = sim.calls() - before;
    growth.arrive_whole(&sim);
    while let Some(item) = reader.next().unwrap() {
        reading.take(&item);
    }
    assert!(reading.gaps.is_empty(), "{what}: {:?}", reading.gaps);
    assert_eq!(reading.numbers, (1..=WHOLE + GROWING).collect::<Vec<_>>(), "{what}");

    let sim = growth.cut(first);
    growth.arrive(&sim, steps.to_vec());
    let backwards = records::read_backwards(Path::new(DIR), &options(&sim));
    assert!(backwards.gaps.is_empty(), "{what}: {:?}", backwards.gaps);

    let sim = growth.cut(first);
    growth.arrive(&sim, steps.to_vec());
    let report = verify(Path::new(DIR), &options(&sim)).unwrap();
    assert_eq!(Report::gaps(&report).count(), 0, "{what}");
    calls
}

#[test]
fn a_reader_between_two_parts_of_one_write_calls_nothing_damaged() {
    let growth = Growth::new();
    let (end, next_end) = (growth.ends[WHOLE as usize], growth.ends[WHOLE as usize + 1]);
    let mut schedules = 0;
    for first in growth.start()..=end {
        for then in [end, end + 17, next_end, growth.bytes.len()] {
            let mut at = 1;
            while check(&growth, first, &[(at, then)]) >= at {
                at += 1;
                schedules += 1;
            }
        }
    }
    println!("{schedules} schedules of a reader and a write in two parts");
    assert!(schedules > 4000);
}

#[test]
fn a_write_may_arrive_in_parts_between_any_calls_of_the_reader() {
    let growth = Growth::new();
    let mut random = Random::new(14);
    for _ in 0..3000 * scale() {
        let rest = growth.bytes.len() - growth.start();
        let mut lens: Vec<usize> =
            (0..6).map(|_| growth.start() + random.below(rest + 1)).collect();
        lens.sort_unstable();
        let first = lens.remove(0);
        let mut calls: Vec<u64> = lens.iter().map(|_| 1 + random.below(40) as u64).collect();
        calls.sort_unstable();
        let steps: Vec<(u64, usize)> = calls.into_iter().zip(lens).collect();
        check(&growth, first, &steps);
    }
}
