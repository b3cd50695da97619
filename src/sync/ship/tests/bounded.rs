//! A copy that holds no more than the newest segments.

use std::collections::BTreeSet;

use super::*;
use crate::ship::{backup::Bound, manifest::Segment};

/// Ships to a remote that holds no more than these bytes of the log.
fn bounded(machine: &Machine, bytes_max: u64) -> Shipper {
    let (dir, outer) = (machine.place().to_path_buf(), machine.outer.path());
    let (state, lock) = (outer.join("state.json"), outer.join("lock"));
    machine.shipper().bounded(Bound { dir, bytes_max, state, lock })
}

fn copy_bounded(machine: &Machine, bytes_max: u64) -> Vec<Segment> {
    wait(bounded(machine, bytes_max).once()).unwrap();
    machine.head().segments()
}

#[test]
fn a_bounded_copy_holds_the_newest_segments_and_nothing_else() {
    let mut machine = Machine::new();
    machine.record(30);
    let all = copy_bounded(&machine, u64::MAX);
    assert!(all.len() > 6);
    machine.record(10);
    let kept = copy_bounded(&machine, 4 * SEGMENT_BYTES);
    assert!(kept.iter().map(|segment| segment.bytes).sum::<u64>() <= 4 * SEGMENT_BYTES);
    assert!(kept.len() > 1 && kept[0].number > all[0].number);
    let needed: BTreeSet<PathBuf> =
        machine.head().objects().iter().map(|name| machine.place().join(name)).collect();
    let mut parts = machine.objects();
    parts.retain(|path, _| path.to_string_lossy().contains("/seg/"));
    assert!(parts.into_keys().all(|path| needed.contains(&path)), "the others were deleted");
    assert_eq!(copy_bounded(&machine, 1).len(), 1, "the last one in any case");
}

#[test]
fn a_bounded_copy_keeps_that_of_a_replaced_log_while_both_fit() {
    let mut machine = Machine::new();
    machine.record(10);
    copy_bounded(&machine, u64::MAX);
    let old = machine.host();
    fs::rename(machine.log(), machine.outer.path().join("old")).unwrap();
    machine.record(10);
    copy_bounded(&machine, 64 * SEGMENT_BYTES);
    assert_eq!(machine.head().segments()[0].number, 1);
    let of_old = machine.place().join(old.folder());
    assert!(of_old.is_dir(), "it can still be restored");
    let own_bytes = files(&machine.log()).values().map(Vec::len).sum::<usize>() as u64;
    copy_bounded(&machine, own_bytes);
    assert!(!of_old.exists(), "there is room for one of them");
    machine.check();
}

#[test]
fn a_bounded_copy_deletes_what_a_killed_process_left_half_written() {
    let mut machine = Machine::new();
    machine.record(1);
    copy_bounded(&machine, u64::MAX);
    let half = machine.place().join(format!("{}#1", machine.host().entry(2)));
    fs::write(&half, "half of an object").unwrap();
    machine.record(1);
    copy_bounded(&machine, u64::MAX);
    assert!(!half.exists());
}

#[test]
fn at_rest_a_bounded_copy_writes_nothing_and_holds_nothing_in_memory() {
    let mut machine = Machine::new();
    machine.record(3);
    let mut shipper = bounded(&machine, u64::MAX);
    wait(async {
        // The first turn seals and so changes the log's directory, the second finds nothing new.
        shipper.once().await.unwrap();
        shipper.once().await.unwrap();
        assert!(shipper.head().is_some());
        let state = machine.outer.path().join("state.json");
        fs::remove_file(&state).unwrap();
        let before = machine.objects();
        assert_eq!(shipper.once().await.unwrap(), Shipped::default());
        assert!(shipper.head().is_none() && !state.exists());
        assert_eq!(machine.objects(), before);
        machine.record(1);
        assert_eq!(shipper.once().await.unwrap().objects, 1);
    });
    machine.check();
}
