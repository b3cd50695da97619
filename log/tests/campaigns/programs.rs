//! Random programs, compared with a plain vector: all appended records, in order, minus the damaged
//! ones.

use crate::{
    records::{self, Reading},
    scale,
    sim::Sim,
};
use claude_mem_log::{
    Appender, Log, Options, Seq, Spill,
    disk::{Disk as _, Lock},
    maintain, verify,
};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
use std::{collections::HashSet, path::Path, sync::Arc, time::Duration};

const DIR: &str = "/disk/log";

#[derive(Debug, Clone)]
enum Step {
    Append,
    AppendAll(u64),
    /// While another process holds the lock.
    Spill,
    Maintain,
    /// Groups of this many complete segments.
    Compact(usize),
    Sync,
    Reopen,
    /// Flips a bit at about this thousandth of a segment, the active one or the one before.
    Damage(bool, usize),
    ReadFrom(usize),
    ReadSince(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::Append),
        2 => (0_u64..6).prop_map(Step::AppendAll),
        1 => Just(Step::Spill),
        2 => Just(Step::Maintain),
        2 => (1_usize..5).prop_map(Step::Compact),
        2 => Just(Step::Sync),
        1 => Just(Step::Reopen),
        1 => (any::<bool>(), 0_usize..1000).prop_map(|(which, at)| Step::Damage(which, at)),
        2 => (0_usize..1000).prop_map(Step::ReadFrom),
        1 => (0_usize..1000).prop_map(Step::ReadSince),
    ]
}

struct World {
    sim: Sim,
    options: Options,
    appender: Appender,
    next: u64,
    /// The content of the log, in order.
    model: Vec<u64>,
    /// The content of spill files, in order.
    spilled: Vec<u64>,
    /// Segment, byte and bit of the damage.
    flipped: HashSet<(u64, usize, usize)>,
}

impl World {
    fn new(segment_bytes_max: u64) -> Self {
        let sim = Sim::new();
        let options = Options {
            segment_bytes_max,
            compress_bytes_min: 64,
            lock_wait_max: Duration::ZERO,
            reserve_bytes: 0,
            index_interval_bytes: 300,
            spill: Spill::Auto,
            disk: Arc::new(sim.clone()),
        };
        let appender = Appender::open(Path::new(DIR), options.clone()).unwrap();
        let flipped = HashSet::new();
        Self { sim, options, appender, next: 0, model: vec![], spilled: vec![], flipped }
    }

    fn play(&mut self, step: &Step) {
        let dir = Path::new(DIR);
        match step {
            Step::Append => self.append(1, false),
            Step::AppendAll(count) => self.append(*count, false),
            Step::Spill => self.append(1, true),
            Step::Sync => self.appender.sync().unwrap(),
            Step::Reopen => {
                self.appender = Appender::open(dir, self.options.clone()).unwrap();
            }
            Step::Maintain => {
                self.appender.sync().unwrap();
                maintain(dir, &self.options).unwrap();
                self.model.append(&mut self.spilled);
            }
            Step::Compact(size) => {
                // An interrupted reader continues where it stopped.
                let half = self.read_half();
                records::compact(dir, &self.options, *size).unwrap();
                let rest = self.read(half.1);
                assert_eq!([half.0, rest.numbers].concat(), self.model);
            }
            Step::Damage(is_active, at) => self.damage(*is_active, *at),
            Step::ReadFrom(at) => self.read_from(*at),
            Step::ReadSince(at) => self.read_since(*at),
        }
    }

    fn append(&mut self, count: u64, is_blocked: bool) {
        let numbers: Vec<u64> = (self.next..self.next + count).collect();
        self.next += count;
        let active = Path::new(DIR).join("active.log");
        let file = self.sim.open(&active).ok().filter(|_| is_blocked);
        let blocker = file.filter(|file| file.try_lock(Lock::Exclusive).unwrap());
        let appended = records::append(&mut self.appender, &numbers).unwrap();
        assert_eq!(appended.seq.is_none(), blocker.is_some());
        match appended.seq {
            Some(_) => self.model.extend(numbers),
            None => self.spilled.extend(numbers),
        }
    }

    /// Flips one bit, finds the lost record, and removes it from the model: at most one.
    fn damage(&mut self, is_active: bool, at: usize) {
        let segments = Log::open(Path::new(DIR), self.options.clone()).unwrap().segments().unwrap();
        let back = if is_active { 1 } else { 2 };
        let Some(segment) = segments.len().checked_sub(back).map(|index| &segments[index]) else {
            return;
        };
        let file = self.sim.open_read(&segment.path).unwrap();
        let mut content = vec![0; segment.bytes as usize];
        file.read_at(&mut content, 0).unwrap();
        let byte = content.len() * at / 1000;
        // Flipping the same bit again would restore the record, which the model does not do.
        if !self.flipped.insert((segment.number << 8 | u64::from(segment.generation), byte, at % 8))
        {
            return;
        }
        content[byte] ^= 1 << (at % 8);
        self.sim.put(&segment.path, &content);
        let read = self.read(Seq::START).set();
        let before = self.model.len();
        self.model.retain(|number| read.contains(number));
        assert!(before - self.model.len() <= 1, "one bit lost {}", before - self.model.len());
    }

    fn read(&self, from: Seq) -> Reading {
        let mut reader = Log::open(Path::new(DIR), self.options.clone()).unwrap().read_from(from);
        let mut reading = Reading::default();
        while let Some(item) = reader.next().unwrap() {
            reading.take(&item);
        }
        reading
    }

    /// Reads up to some position, and continues there with another reader.
    fn read_from(&self, at: usize) {
        let mut reader = Log::open(Path::new(DIR), self.options.clone()).unwrap().read_from_start();
        let mut reading = Reading::default();
        while reading.numbers.len() < self.model.len() * at / 1000 {
            let Some(item) = reader.next().unwrap() else { break };
            reading.take(&item);
        }
        let rest = self.read(reader.position());
        assert_eq!([reading.numbers, rest.numbers].concat(), self.model);
    }

    fn read_half(&self) -> (Vec<u64>, Seq) {
        let mut reader = Log::open(Path::new(DIR), self.options.clone()).unwrap().read_from_start();
        let mut reading = Reading::default();
        while reading.numbers.len() < self.model.len() / 2 {
            let Some(item) = reader.next().unwrap() else { break };
            reading.take(&item);
        }
        (reading.numbers, reader.position())
    }

    fn read_since(&self, at: usize) {
        let number = self.next * at as u64 / 1000;
        let log = Log::open(Path::new(DIR), self.options.clone()).unwrap();
        let mut reader = log.read_since(records::id(number).time_us()).unwrap();
        let mut reading = Reading::default();
        while let Some(item) = reader.next().unwrap() {
            reading.take(&item);
        }
        let late = self.model.iter().copied().filter(|other| *other >= number);
        assert_eq!(reading.numbers, late.collect::<Vec<_>>());
    }

    fn finish(&mut self) {
        let dir = Path::new(DIR);
        let reading = self.read(Seq::START);
        assert_eq!(reading.numbers, self.model);
        let mut backwards = records::read_backwards(dir, &self.options).numbers;
        backwards.reverse();
        assert_eq!(backwards, self.model);
        let report = verify(dir, &self.options).unwrap();
        if self.flipped.is_empty() {
            assert_eq!((reading.gaps.len(), report.gaps().count()), (0, 0), "{report:#?}");
            assert_eq!(report.records(), self.model.len() as u64);
        }
        self.play(&Step::Maintain);
        assert_eq!(self.read(Seq::START).numbers, self.model);
    }
}

#[test]
fn random_programs_match_a_vector() {
    let cases = 1000 * scale() as u32;
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let programs = (200_u64..3000, vec(step(), 1..80));
    TestRunner::new(config)
        .run(&programs, |(segment_bytes_max, steps)| {
            let mut world = World::new(segment_bytes_max);
            for step in &steps {
                world.play(step);
            }
            world.finish();
            Ok(())
        })
        .unwrap();
}
