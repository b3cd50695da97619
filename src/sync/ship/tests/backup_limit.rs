//! A backup that holds only the newest segments.

use std::collections::BTreeSet;

use super::*;
use crate::ship::{backup::BackupLimit, manifest::Segment};

/// A shipper whose remote holds at most these bytes of log.
fn limited(machine: &Machine, bytes_max: u64) -> Shipper {
    let (dir, outer) = (machine.place().to_path_buf(), machine.outer.path());
    let (state, lock) = (outer.join("state.json"), outer.join("lock"));
    machine.shipper().limited(BackupLimit { dir, bytes_max, state, lock })
}

fn ship_limited(machine: &Machine, bytes_max: u64) -> Vec<Segment> {
    wait(limited(machine, bytes_max).ship()).unwrap();
    machine.head().segments()
}

#[test]
fn a_limited_backup_contains_only_the_newest_segments() {
    let mut machine = Machine::new();
    machine.record(30);
    let all = ship_limited(&machine, u64::MAX);
    assert!(all.len() > 6);
    machine.record(10);
    let kept = ship_limited(&machine, 4 * SEGMENT_BYTES);
    assert!(kept.iter().map(|segment| segment.bytes).sum::<u64>() <= 4 * SEGMENT_BYTES);
    assert!(kept.len() > 1 && kept[0].number > all[0].number);
    let needed: BTreeSet<PathBuf> =
        machine.head().objects().iter().map(|name| machine.place().join(name)).collect();
    let mut parts = machine.objects();
    parts.retain(|path, _| path.to_string_lossy().contains("/seg/"));
    assert!(parts.into_keys().all(|path| needed.contains(&path)), "the others were deleted");
    assert_eq!(ship_limited(&machine, 1).len(), 1, "the last one in any case");
}

#[test]
fn a_limited_backup_keeps_the_copy_of_a_replaced_log_while_both_fit() {
    let mut machine = Machine::new();
    machine.record(10);
    ship_limited(&machine, u64::MAX);
    let old = machine.host();
    fs::rename(machine.log(), machine.outer.path().join("old")).unwrap();
    machine.record(10);
    ship_limited(&machine, 64 * SEGMENT_BYTES);
    assert_eq!(machine.head().segments()[0].number, 1);
    let of_old = machine.place().join(old.folder());
    assert!(of_old.is_dir(), "it can still be restored");
    let own_bytes = files(&machine.log()).values().map(Vec::len).sum::<usize>() as u64;
    ship_limited(&machine, own_bytes);
    assert!(!of_old.exists(), "there is room for one of them");
    machine.check();
}

#[test]
fn a_limited_backup_deletes_temporary_files_of_killed_processes() {
    let mut machine = Machine::new();
    machine.record(1);
    ship_limited(&machine, u64::MAX);
    let half = machine.place().join(format!("{}#1", machine.host().entry(2)));
    fs::write(&half, "half of an object").unwrap();
    machine.record(1);
    ship_limited(&machine, u64::MAX);
    assert!(!half.exists());
}

#[test]
fn an_idle_limited_backup_writes_nothing_and_keeps_no_state() {
    let mut machine = Machine::new();
    machine.record(3);
    let mut shipper = limited(&machine, u64::MAX);
    wait(async {
        // The first run seals, which changes the directory; the second finds nothing new.
        shipper.ship().await.unwrap();
        shipper.ship().await.unwrap();
        assert!(shipper.head().is_some());
        let state = machine.outer.path().join("state.json");
        fs::remove_file(&state).unwrap();
        let before = machine.objects();
        assert_eq!(shipper.ship().await.unwrap(), Shipped::default());
        assert!(shipper.head().is_none() && !state.exists());
        assert_eq!(machine.objects(), before);
        machine.record(1);
        assert_eq!(shipper.ship().await.unwrap().objects, 1);
    });
    machine.check();
}
