//! Interrupted runs: the remote is complete at any time, and shipping resumes.

use claude_mem_tools::bucket::Faults;

use super::*;

/// Ships while the server stops after one request, after two, and so on, until shipping succeeds.
/// After each attempt the remote must hold an undamaged log; at the end, all of it.
fn interrupt_at_every_request(bucket: &Bucket, machine: &Machine, least: u64) {
    let before = bucket.objects();
    let state = fs::read(machine.paths.ship_state());
    for requests_max in 0.. {
        bucket.set(before.clone());
        // Reset the local state, too; otherwise it would detect the rollback.
        let _ = match &state {
            Ok(state) => fs::write(machine.paths.ship_state(), state),
            Err(_) => fs::remove_file(machine.paths.ship_state()),
        };
        bucket.inject(Faults { requests_max: Some(requests_max), ..Faults::default() });
        let is_enough = machine.ship().is_ok();
        bucket.inject(Faults::default());
        let name = format!("died after {requests_max}");
        if let Some(head) = wait(remote_head::newest(&machine.remote(), machine.host(), 0)).unwrap()
        {
            assert!(head.bytes() > 0);
            machine.restore(&name, None, false).unwrap();
            let (found, is_damaged) = numbers(&machine.restored(&name));
            assert!(!is_damaged && found.len() as u64 >= least, "{name}");
            let whole: Vec<u64> = (1..=found.len() as u64).collect();
            assert_eq!(found, whole, "{name}");
        } else {
            assert_eq!(least, 0, "{name}");
        }
        machine.ship().unwrap();
        machine.check();
        if is_enough {
            return;
        }
    }
}

#[test]
fn the_first_upload_can_be_interrupted_at_any_request() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(12);
    interrupt_at_every_request(&bucket, &machine, 0);
}

#[test]
fn a_later_upload_can_be_interrupted_at_any_request() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(12);
    machine.ship().unwrap();
    machine.record(12);
    interrupt_at_every_request(&bucket, &machine, 12);
}

#[test]
fn an_upload_after_a_compaction_can_be_interrupted_and_leaves_no_garbage() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(20);
    machine.ship().unwrap();
    let sealed = machine.compact();
    interrupt_at_every_request(&bucket, &machine, 20);
    let old = format!("/{:016x}.g00/", sealed[0].number);
    assert!(!bucket.names().iter().any(|name| name.contains(&old)), "{:?}", bucket.names());
}

#[test]
fn an_interrupted_restore_continues() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(40);
    machine.ship().unwrap();
    bucket.inject(Faults::default());
    machine.check();
    let all = bucket.requests();
    bucket.inject(Faults { requests_max: Some(all / 2), ..Faults::default() });
    assert!(machine.restore("again", None, false).is_err());
    assert!(!machine.restored("again").exists());
    bucket.inject(Faults::default());
    machine.restore("again", None, false).unwrap();
    assert!(bucket.requests() < all, "{} of {all}", bucket.requests());
    assert_eq!(files(&machine.restored("again")), files(&machine.log()));
    assert!(!machine.outer.path().join("again/restoring").exists());
}
