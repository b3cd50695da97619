//! Random programs: whatever is recorded, forgotten, compacted, redacted, shipped and killed, in
//! any order, shipping goes on, and a restored log reads like the local one.
//!
//! `CLAUDE_MEM_CAMPAIGN=full` runs 10,000 programs.

use std::{collections::BTreeSet, pin::pin, task::Poll};

use claude_mem_log::{
    CompactionPolicy, Compactor, Entry, Head as RecordHead, Options, Packing, RecordAction, Seq,
    maintain, roll,
};
use proptest::{collection::vec, prelude::*, test_runner::TestRunner};

use super::*;
use crate::ship::{
    comparison::{Comparison, Depth},
    verify,
};

#[derive(Debug, Clone)]
enum Step {
    Save(u64),
    /// Forgets the event that is this many percent of all back.
    Forget(u64),
    /// As `Forget`, and erases what was forgotten.
    ForgetNow(u64),
    /// Erases what was forgotten, and merges groups of this many segments.
    Compact(usize),
    /// As `Compact`, killed after this many replaced files were removed.
    KilledCompact(usize, usize),
    /// Replaces the payload of an event.
    Redact(u64),
    /// By the worker, which keeps the state of the remote.
    WorkerShips,
    WorkerRestarts,
    /// By another process.
    Ship,
    /// Killed when it waited for the remote this many times.
    KilledShip(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1_u64..6).prop_map(Step::Save),
        1 => (0_u64..100).prop_map(Step::Forget),
        2 => (0_u64..100).prop_map(Step::ForgetNow),
        2 => (1_usize..5).prop_map(Step::Compact),
        1 => (1_usize..5, 0_usize..4).prop_map(|(size, left)| Step::KilledCompact(size, left)),
        1 => (0_u64..100).prop_map(Step::Redact),
        3 => Just(Step::WorkerShips),
        1 => Just(Step::WorkerRestarts),
        2 => Just(Step::Ship),
        2 => (0_usize..40).prop_map(Step::KilledShip),
    ]
}

/// Erases and redacts the events with these numbers.
struct Policy<'a> {
    forgotten: &'a BTreeSet<u64>,
    redacted: Option<u64>,
}

impl CompactionPolicy for Policy<'_> {
    fn concerns(&mut self, head: &RecordHead) -> bool {
        let number = head.id.time_us() / 1_000_000;
        !head.is_tombstone && (self.forgotten.contains(&number) || self.redacted == Some(number))
    }

    fn judge(&mut self, entry: &Entry<'_>) -> RecordAction {
        match self.redacted {
            _ if entry.is_tombstone || entry.payload == b"redacted" => RecordAction::Keep,
            Some(_) => RecordAction::Replace { schema: 1, codec: 0, payload: b"redacted".into() },
            None => RecordAction::Erase(Vec::new()),
        }
    }
}

struct World {
    machine: Machine,
    worker: Option<Shipper>,
    forgotten: BTreeSet<u64>,
}

/// What folding sees of a record.
type Reading = Vec<(Seq, Id, Vec<u8>)>;

impl World {
    fn new() -> Self {
        Self { machine: Machine::in_memory(), worker: None, forgotten: BTreeSet::new() }
    }

    fn play(&mut self, step: &Step) {
        let event =
            |back: u64| (self.machine.next - 1).saturating_sub(back * self.machine.next / 100);
        match *step {
            Step::Save(count) => self.machine.record(count),
            Step::Forget(back) => {
                self.forgotten.insert(event(back));
                self.machine.record(1);
            }
            Step::ForgetNow(back) => {
                self.forgotten.insert(event(back));
                self.machine.record(1);
                self.compact(1, false, None);
            }
            Step::Compact(size) => self.compact(size, true, None),
            Step::KilledCompact(size, left) => {
                let before = files(&self.machine.log());
                self.compact(size, true, None);
                let after = files(&self.machine.log());
                // Files are removed in order, after the one that replaces them has its name.
                let removed = before.iter().filter(|(name, _)| !after.contains_key(*name));
                for (name, bytes) in removed.skip(left) {
                    fs::write(self.machine.log().join(name), bytes).unwrap();
                }
            }
            Step::Redact(back) => {
                let event = event(back);
                roll(&self.machine.log(), &Options::default()).unwrap();
                self.compact(1, false, Some(event));
            }
            Step::WorkerShips => {
                let machine = &self.machine;
                let worker = self.worker.get_or_insert_with(|| machine.shipper());
                wait(worker.ship()).unwrap();
            }
            Step::WorkerRestarts => self.worker = None,
            Step::Ship => _ = self.machine.ship().unwrap(),
            Step::KilledShip(waits_max) => {
                let mut shipper = self.machine.shipper();
                wait(async {
                    let mut shipping = pin!(shipper.ship());
                    let mut waits = 0;
                    std::future::poll_fn(|context| match shipping.as_mut().poll(context) {
                        Poll::Pending if waits < waits_max => {
                            waits += 1;
                            Poll::Pending
                        }
                        _ => Poll::Ready(()),
                    })
                    .await;
                });
            }
        }
    }

    /// As `claude-mem compact`, or `redact` if an event is given.
    fn compact(&self, size: usize, is_always: bool, redacted: Option<u64>) {
        let dir = self.machine.log();
        let options = Options::default();
        let Some(compactor) = Compactor::begin(&dir, &options, Packing::default()).unwrap() else {
            return;
        };
        let mut policy = Policy { forgotten: &self.forgotten, redacted };
        let log = Log::open(&dir, Options::default()).unwrap();
        maintain(&dir, &options).unwrap();
        let active = log.segments().unwrap().pop().unwrap();
        if has_work(&log, &active, &mut policy) {
            roll(&dir, &options).unwrap();
            maintain(&dir, &options).unwrap();
        }
        let mut sealed = log.segments().unwrap();
        sealed.retain(|info| info.seal.is_some());
        for group in sealed.chunks(size) {
            let is_due = is_always && (size > 1 || group[0].generation == 0);
            if is_due || group.iter().any(|info| has_work(&log, info, &mut policy)) {
                compactor.rewrite(group, &mut policy).unwrap().unwrap();
            }
        }
    }

    fn check(&mut self) {
        let Self { machine, .. } = self;
        machine.record(1);
        machine.ship().unwrap();
        let here = read(&machine.log());
        assert_eq!(here.len() as u64, machine.next - 1);
        machine.restore("again", None, false).unwrap();
        assert_eq!(read(&machine.restored("again")), here);
        let found =
            wait(verify::verify_remote(&machine.remote(), machine.host(), &machine.log())).unwrap();
        assert!(found.is_sound() && found.behind_bytes == 0, "{found:?}");
        assert_eq!(wait(machine.shipper().check()).unwrap(), Comparison::default());
        if let Some(worker) = &mut self.worker {
            wait(worker.ship()).unwrap();
        }
    }
}

fn has_work(log: &Log, info: &SegmentInfo, policy: &mut Policy<'_>) -> bool {
    let mut reader = log.read_from(Seq::new(info.number, 0));
    while let Some(item) = reader.next().unwrap() {
        let Item::Record(entry) = item else { panic!("the log is damaged") };
        if entry.seq.segment() > info.number_last {
            break;
        }
        let head = RecordHead {
            seq: entry.seq,
            id: entry.id,
            kind: entry.kind,
            is_tombstone: entry.is_tombstone,
        };
        if policy.concerns(&head) && policy.judge(&entry) != RecordAction::Keep {
            return true;
        }
    }
    false
}

fn read(log: &Path) -> Reading {
    let mut reader = Log::open(log, Options::default()).unwrap().read_from_start();
    let mut reading = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Record(entry) = item else { panic!("the log is damaged") };
        reading.push((entry.seq, entry.id, entry.payload.to_vec()));
    }
    reading
}

#[test]
fn after_any_program_the_log_ships_and_a_restored_one_reads_the_same() {
    let is_full = std::env::var_os("CLAUDE_MEM_CAMPAIGN").is_some_and(|size| size == "full");
    let cases = if is_full { 10_000 } else { 300 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new(config)
        .run(&vec(step(), 1..25), |steps| {
            let mut world = World::new();
            world.machine.record(1);
            for step in &steps {
                world.play(step);
            }
            world.check();
            Ok(())
        })
        .unwrap();
}

/// A remote whose last segment grew by an increment and was then merged here with earlier ones.
#[test]
fn a_remote_whose_last_segment_was_merged_here_ships_again() {
    for is_killed in [false, true] {
        let mut world = World::new();
        let merge = if is_killed { Step::KilledCompact(4, 1) } else { Step::Compact(4) };
        let before = [Step::Save(4), Step::ForgetNow(99), Step::Save(2), Step::Ship, Step::Save(1)];
        for step in before.iter().chain(&[Step::Ship, Step::ForgetNow(10), merge]) {
            world.play(step);
        }
        let head = world.machine.head();
        let here = local::segments(&world.machine.log(), world.machine.host(), (0, 0)).unwrap();
        let last = &head.manifest.segments.last().unwrap();
        assert!(!head.increments.is_empty() && here[0].number < last.number);
        assert!(here[0].number_last >= last.number, "{here:?}");
        let compared = comparison::compare(&head, &here, Depth::All).unwrap();
        assert!(compared.differences.is_empty(), "{compared:?}");
        world.check();
    }
}
