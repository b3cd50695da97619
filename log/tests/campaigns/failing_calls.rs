//! Every call on the disk fails once, in every way, and a failing sync reports success from then
//! on.

use crate::{
    random::Random,
    records::{assert_still_works, read},
    scale,
    scenario::{DIR, Shared, options, play},
    sim::{Fault, Sim},
};
use claude_mem_log::maintain;
use std::{io::ErrorKind, path::Path};

const RECORDS: u64 = 90;

/// Runs the scenario with one fault; every acknowledged record must be there exactly once.
fn with_fault(call: u64, fault: Fault) -> bool {
    let sim = Sim::new();
    let results = Shared::default();
    sim.fail(call, fault);
    play(&sim, &results, RECORDS);
    if sim.is_fault_pending() {
        return false;
    }
    let results = results.lock().unwrap().clone();
    assert!(results.errors <= 2, "{fault:?} at call {call} made {} calls fail", results.errors);
    assert_still_works(Path::new(DIR), &options(&sim), &results.acknowledged, 10_000);
    assert!(
        read(Path::new(DIR), &options(&sim))
            .gaps
            .iter()
            .all(|gap| { gap.reason == claude_mem_log::GapReason::TornWrite })
    );
    true
}

fn at_every_call(fault: Fault) {
    let mut calls = 0;
    while with_fault(calls + 1, fault) {
        calls += 1;
    }
    println!("{calls} calls failed with {fault:?}");
    assert!(calls > 800, "only {calls} calls");
}

#[test]
fn a_call_that_fails_loses_nothing_acknowledged() {
    at_every_call(Fault::Fails(ErrorKind::Other));
}

#[test]
fn a_call_that_finds_the_disk_full_loses_nothing_acknowledged() {
    at_every_call(Fault::Fails(ErrorKind::StorageFull));
}

#[test]
fn a_call_that_is_interrupted_loses_nothing_acknowledged() {
    at_every_call(Fault::Fails(ErrorKind::Interrupted));
}

#[test]
fn a_call_on_a_read_only_disk_loses_nothing_acknowledged() {
    at_every_call(Fault::Fails(ErrorKind::ReadOnlyFilesystem));
}

#[test]
fn a_short_write_loses_nothing_acknowledged() {
    at_every_call(Fault::Short);
}

/// After such a failure the kernel regards the file as clean, so only rewritten data is safe.
#[test]
fn a_sync_that_fails_and_then_lies_loses_nothing_that_was_synced() {
    let mut syncs = 0;
    for call in 1.. {
        let sim = Sim::new();
        let results = Shared::default();
        sim.fail(call, Fault::Lies);
        play(&sim, &results, RECORDS);
        if sim.is_fault_pending() {
            break;
        }
        let results = results.lock().unwrap().clone();
        syncs += 1;
        for state in 0..2 * scale() {
            let after = sim.lose_power(&mut Random::new(call << 8 | state));
            assert_still_works(Path::new(DIR), &options(&after), &results.synced, 10_000);
        }
        assert_still_works(Path::new(DIR), &options(&sim), &results.acknowledged, 10_000);
    }
    println!("{syncs} calls, of which the syncs lied");
    assert!(syncs > 800);
}

#[test]
fn a_full_disk_accepts_records_again_after_space_is_freed() {
    let sim = Sim::new();
    let results = Shared::default();
    play(&sim, &results, 20);
    for _ in 0..5 {
        sim.fail(sim.calls() + 1, Fault::Fails(ErrorKind::StorageFull));
        let _ = maintain(Path::new(DIR), &options(&sim));
    }
    let results = results.lock().unwrap().clone();
    assert_still_works(Path::new(DIR), &options(&sim), &results.acknowledged, 10_000);
}
