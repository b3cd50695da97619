//! Compaction with a power loss, a failing call or a kill at every call, and damage to its output.

use crate::{
    random::Random,
    records::{self, assert_still_works, compact, is_erased, read, read_backwards},
    scale,
    scenario::options,
    sim::{Fault, Sim},
};
use claude_mem_log::{
    Appender, Compactor, Error, KeepAll, Log, Options, Packing, SegmentInfo, Seq, disk::Disk as _,
    maintain, roll, verify,
};
use std::{collections::BTreeSet, io::ErrorKind, path::Path, sync::Arc};

const DIR: &str = "/disk/log";
const RECORDS: u64 = 88;

fn dir() -> &'static Path {
    Path::new(DIR)
}

/// Some complete segments, one of them compacted before, with torn writes, and an active one.
fn prepared() -> Sim {
    let sim = Sim::new();
    let mut appender = Appender::open(dir(), options(&sim)).unwrap();
    for number in 0..RECORDS {
        if number % 9 == 4 && number < 70 {
            sim.fail(sim.calls() + 4, Fault::Short);
        }
        records::append(&mut appender, &[number]).unwrap();
        if number == 14 {
            appender.sync().unwrap();
            maintain(dir(), &options(&sim)).unwrap();
            compact(dir(), &options(&sim), 1).unwrap();
        }
    }
    appender.sync().unwrap();
    maintain(dir(), &options(&sim)).unwrap();
    sim
}

fn segments(options: &Options) -> Vec<SegmentInfo> {
    Log::open(dir(), options.clone()).unwrap().segments().unwrap()
}

/// Every record in order, in both directions, each with its position; nothing else, and no damage.
fn assert_all_there(options: &Options, places: &[Seq]) {
    let reading = read(dir(), options);
    assert_eq!(reading.numbers, (0..RECORDS).collect::<Vec<_>>());
    let mut backwards = read_backwards(dir(), options).numbers;
    backwards.reverse();
    assert_eq!(backwards, reading.numbers);
    assert_eq!(self::places(options), places);
    let report = verify(dir(), options).unwrap();
    assert!(!report.is_damaged(), "{report:#?}");
}

fn places(options: &Options) -> Vec<Seq> {
    let mut reader = Log::open(dir(), options.clone()).unwrap().read_from_start();
    let mut places = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        if let claude_mem_log::Item::Record(entry) = item {
            places.push(entry.seq);
        }
    }
    places
}

/// The state after a complete compaction: only files of the log, and no byte of an erased record.
fn assert_finished(sim: &Sim) {
    let names = sim.list(dir()).unwrap();
    let files: Vec<_> = names.iter().filter(|name| name.ends_with(".seg")).collect();
    let listed = segments(&options(sim)).len() - 1;
    assert_eq!(files.len(), listed, "superseded files are left: {names:?}");
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
    for name in files {
        let content = content(sim, &dir().join(name));
        for number in (0..RECORDS).filter(|number| is_erased(*number)) {
            let payload = records::payload(number);
            let is_there =
                payload.len() > 16 && content.windows(payload.len()).any(|bytes| bytes == payload);
            assert!(!is_there, "{number} is still in {name}");
        }
    }
}

fn content(sim: &Sim, path: &Path) -> Vec<u8> {
    let file = sim.open_read(path).unwrap();
    let mut content = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut content, 0).unwrap();
    content
}

#[test]
fn a_finished_compaction_keeps_positions_and_no_byte_of_erased_records() {
    for size in [1, 2, 3, 100] {
        let sim = prepared();
        let options = options(&sim);
        let (before, places) = (segments(&options), places(&options));
        assert!(before.len() >= 6, "{} segments", before.len());
        assert!(verify(dir(), &options).unwrap().gaps().count() > 3, "torn writes");
        assert!(compact(dir(), &options, size).unwrap() > 0);
        assert_all_there(&options, &places);
        assert_finished(&sim);
        let after = segments(&options);
        assert_eq!(after.len(), (before.len() - 1).div_ceil(size) + 1);
        assert_eq!(after.last().unwrap().number, before.last().unwrap().number);
        assert_eq!(verify(dir(), &options).unwrap().gaps().count(), 0, "torn bytes are gone");
        // Merged segments can be compacted and merged again.
        assert!(compact(dir(), &options, 2).unwrap() > 0);
        assert_all_there(&options, &places);
        assert_finished(&sim);
    }
}

#[test]
fn power_lost_at_any_call_of_a_compaction_loses_nothing_and_the_next_one_finishes() {
    for size in [1, 3] {
        let first = prepared();
        let places = places(&options(&first));
        let sim = first.copy();
        let mut states = Vec::new();
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let shared = Arc::clone(&seen);
        sim.before_each_call(move |sim, call| shared.lock().unwrap().push((call, sim.copy())));
        compact(dir(), &options(&sim), size).unwrap();
        sim.no_hook();
        states.append(&mut seen.lock().unwrap());
        println!("{} calls", states.len());
        assert!(states.len() > 100);
        for (call, state) in states {
            let killed = [state.copy()];
            let random = |seed| Random::new(call << 8 | seed);
            let lost = (0..3 * scale()).map(|seed| state.lose_power(&mut random(seed)));
            for after in killed.into_iter().chain(lost) {
                assert_all_there(&options(&after), &places);
                compact(dir(), &options(&after), size).unwrap();
                assert_all_there(&options(&after), &places);
                assert_finished(&after);
                assert_still_works(dir(), &options(&after), &(0..RECORDS).collect(), 10_000);
            }
        }
    }
}

#[test]
fn a_call_that_fails_in_a_compaction_loses_nothing_and_the_next_one_finishes() {
    let first = prepared();
    let places = places(&options(&first));
    let faults = [
        Fault::Fails(ErrorKind::Other),
        Fault::Fails(ErrorKind::StorageFull),
        Fault::Short,
        Fault::Lies,
    ];
    for fault in faults {
        let (mut calls, mut failed) = (0, 0);
        loop {
            let sim = first.copy();
            sim.fail(sim.calls() + 1 + calls, fault);
            let result = compact(dir(), &options(&sim), 2);
            if sim.is_fault_pending() {
                break;
            }
            calls += 1;
            failed += u64::from(result.is_err());
            for seed in 0..2 {
                let after = sim.lose_power(&mut Random::new(calls << 8 | seed));
                assert_all_there(&options(&after), &places);
            }
            assert_all_there(&options(&sim), &places);
            compact(dir(), &options(&sim), 2).unwrap();
            assert_all_there(&options(&sim), &places);
            assert_finished(&sim);
        }
        println!("{calls} calls with {fault:?}, {failed} failed");
        assert!(calls > 100 && (failed > 5 || fault == Fault::Short), "{calls} {failed}");
    }
}

#[test]
fn a_full_disk_is_an_error_and_changes_nothing() {
    let first = prepared();
    let before = segments(&options(&first));
    let mut is_full = 0;
    for call in 1.. {
        let sim = first.copy();
        let compactor = Compactor::begin(dir(), &options(&sim), Packing::default());
        let compactor = compactor.unwrap().unwrap();
        sim.fail(sim.calls() + call, Fault::Fails(ErrorKind::StorageFull));
        match compactor.rewrite(&before[..2], &mut KeepAll) {
            Err(Error::Full { .. }) => is_full += 1,
            result => assert!(result.is_ok(), "call {call} does not say that the disk is full"),
        }
        if sim.is_fault_pending() {
            break;
        }
        // Before the new name exists, nothing has changed; afterwards only the cleanup is left.
        let after = segments(&options(&sim));
        assert!(after == before || after[0].number_last == before[1].number, "call {call}");
        assert_eq!(read(dir(), &options(&sim)).numbers, (0..RECORDS).collect::<Vec<_>>());
    }
    assert!(is_full > 10, "{is_full}");
}

/// As in segments that were never compacted: one bit costs at most its own record.
#[test]
fn a_flipped_bit_in_a_merged_segment_costs_one_record_at_most() {
    let sim = prepared();
    let options = options(&sim);
    compact(dir(), &options, 3).unwrap();
    let merged = segments(&options)[0].clone();
    assert!(merged.number_last > merged.number);
    let whole = content(&sim, &merged.path);
    let all: BTreeSet<u64> = (0..RECORDS).collect();
    let mut lost_one = 0;
    for byte in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[byte] ^= 1 << (byte % 8);
        sim.put(&merged.path, &damaged);
        let reading = read(dir(), &options);
        let lost = all.difference(&reading.set()).count();
        assert!(lost <= 1, "a bit of byte {byte} lost {lost}");
        assert!(lost == 0 || !reading.gaps.is_empty(), "byte {byte} was lost silently");
        let report = verify(dir(), &options).unwrap();
        assert!(report.gaps().count() > 0, "byte {byte} was not noticed");
        lost_one += lost;
    }
    assert!(lost_one > 1000);
}

#[test]
fn only_one_compacts_at_a_time() {
    let sim = prepared();
    let begin = || Compactor::begin(dir(), &options(&sim), Packing::default()).unwrap();
    let first = begin();
    assert!(first.is_some() && begin().is_none());
    drop(first);
    assert!(begin().is_some());
    let nowhere = Path::new("/disk/nowhere");
    assert!(Compactor::begin(nowhere, &options(&sim), Packing::default()).unwrap().is_none());
}

#[test]
fn the_active_segment_can_be_rolled_and_compacted() {
    let sim = prepared();
    let options = options(&sim);
    let places = places(&options);
    assert!(roll(dir(), &options).unwrap());
    assert!(!roll(dir(), &options).unwrap(), "there is nothing in the new one");
    maintain(dir(), &options).unwrap();
    compact(dir(), &options, 100).unwrap();
    assert_eq!(segments(&options).len(), 2);
    assert_all_there(&options, &places);
    assert_still_works(dir(), &options, &(0..RECORDS).collect(), 10_000);
}

#[test]
fn a_reader_in_the_middle_of_a_segment_continues_in_the_merged_one() {
    for read_before in 0..RECORDS {
        let sim = prepared();
        let options = options(&sim);
        let log = Log::open(dir(), options.clone()).unwrap();
        let mut reader = log.read_from_start();
        let mut reading = records::Reading::default();
        while reading.numbers.len() < read_before as usize {
            reading.take(&reader.next().unwrap().unwrap());
        }
        let position = reader.position();
        let before = reading.numbers.len();
        compact(dir(), &options, 100).unwrap();
        while let Some(item) = reader.next().unwrap() {
            reading.take(&item);
        }
        assert_eq!(reading.numbers, (0..RECORDS).collect::<Vec<_>>(), "from {read_before}");
        // So does a reader that is opened at the position of the first one.
        let mut rest = log.read_from(position);
        let mut numbers = records::Reading::default();
        while let Some(item) = rest.next().unwrap() {
            numbers.take(&item);
        }
        assert_eq!(numbers.numbers, reading.numbers[before..], "from {position}");
        let mut earlier = log.read_backwards(Some(position)).unwrap();
        let mut numbers = records::Reading::default();
        while let Some(item) = earlier.next().unwrap() {
            numbers.take(&item);
        }
        numbers.numbers.reverse();
        assert_eq!(numbers.numbers, reading.numbers[..before], "before {position}");
    }
}
