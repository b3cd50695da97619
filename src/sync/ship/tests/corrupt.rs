//! Damaged and faulty remotes: exact errors, no data loss.

use claude_mem_tools::bucket::Faults;

use super::*;
use crate::ship::{repair, verify::verify_remote};

fn shipped() -> Machine {
    let mut machine = Machine::new();
    machine.record(30);
    machine.ship().unwrap();
    machine.record(1);
    machine.ship().unwrap();
    machine
}

#[test]
fn every_damaged_or_missing_object_is_reported_and_repaired() {
    let machine = shipped();
    let ways: [fn(&Path, &[u8]); 3] = [
        |path, bytes| {
            let mut changed = bytes.to_vec();
            changed[bytes.len() / 2] ^= 1;
            fs::write(path, changed).unwrap();
        },
        |path, bytes| fs::write(path, &bytes[..bytes.len() / 2]).unwrap(),
        |path, _| fs::remove_file(path).unwrap(),
    ];
    let healthy = machine.objects();
    for (path, bytes) in &healthy {
        for (number, way) in ways.iter().enumerate() {
            way(path, bytes);
            let name = path.strip_prefix(machine.place()).unwrap().to_string_lossy().into_owned();
            let is_description = name.ends_with("/host");
            let is_last_gone = number == 2 && name.ends_with(&format!("{:016x}", 2));
            if !is_description && !is_last_gone {
                let error = machine.restore("again", None, false).unwrap_err().to_string();
                assert!(error.contains(&name), "{name} {number}: {error}");
                assert!(!machine.restored("again").exists(), "nothing half-done is in use");
            }
            let findings =
                wait(verify_remote(&machine.remote(), machine.host(), &machine.log())).unwrap();
            let is_reported = findings.damage.iter().any(|damage| damage.what.contains(&name));
            assert_eq!(
                is_reported,
                !(is_last_gone || is_description && number == 2),
                "{findings:?}"
            );
            wait(machine.shipper().reship()).unwrap();
            let findings =
                wait(verify_remote(&machine.remote(), machine.host(), &machine.log())).unwrap();
            assert!(findings.is_sound(), "{name} {number}: {findings:?}");
            let _ = fs::remove_dir_all(machine.outer.path().join("again"));
            machine.check();
            fs::remove_dir_all(machine.place()).unwrap();
            for (path, bytes) in &healthy {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, bytes).unwrap();
            }
        }
    }
}

#[test]
fn salvage_restores_the_intact_parts() {
    let machine = shipped();
    let objects = machine.objects();
    let part = objects.keys().find(|path| path.to_string_lossy().contains("/seg/")).unwrap();
    fs::remove_file(part).unwrap();
    let restored = machine.restore("again", None, true).unwrap();
    assert_eq!(restored.lost.len(), 1, "{restored:?}");
    let (found, is_damaged) = numbers(&machine.restored("again"));
    let (all, _) = numbers(&machine.log());
    let lost = all.len() - found.len();
    assert!(is_damaged && (1..=5).contains(&lost), "{lost} events were in that part");
    assert!(found.iter().all(|number| all.contains(number)));
}

#[test]
fn salvage_falls_back_to_the_entry_before_a_damaged_one() {
    let machine = shipped();
    let newest = machine.place().join(machine.host().entry(2));
    fs::write(&newest, b"nonsense").unwrap();
    assert!(machine.restore("again", None, false).is_err());
    let restored = machine.restore("again", None, true).unwrap();
    assert_eq!((restored.head.number, restored.lost.len()), (1, 1));
    assert_eq!(numbers(&machine.restored("again")).0, (1..=30).collect::<Vec<_>>());
}

#[test]
fn local_damage_is_repaired_byte_for_byte() {
    let healthy = files(&shipped().log());
    for name in healthy.keys() {
        for way in 0..3 {
            let machine = shipped();
            let path = machine.log().join(name);
            let right = fs::read(&path).unwrap();
            let mut wrong = right.clone();
            match way {
                0 => wrong[right.len() / 2] ^= 1,
                1 => wrong[100..160].fill(0),
                _ if name == "active.log" => wrong[10] ^= 1,
                _ => wrong.truncate(right.len() / 2),
            }
            fs::write(&path, &wrong).unwrap();
            let report = repair::report(&machine.log()).unwrap();
            let outcome =
                wait(repair::repair(&machine.remote(), &machine.head(), &machine.log(), &report))
                    .unwrap();
            assert_eq!(
                (outcome.repaired.len(), outcome.unrepaired.len()),
                (1, 0),
                "{name} {way} {outcome:?}"
            );
            assert_eq!(fs::read(&path).unwrap(), right, "{name} {way}");
            assert_eq!(numbers(&machine.log()), ((1..=31).collect(), false));
        }
    }
}

#[test]
fn a_missing_local_segment_is_restored() {
    let machine = shipped();
    let before = files(&machine.log());
    let second =
        Log::open(&machine.log(), Options::default()).unwrap().segments().unwrap().remove(1);
    fs::remove_file(&second.path).unwrap();
    assert!(matches!(machine.ship(), Err(Error::Diverged { .. })), "nothing is taken away there");
    let report = repair::report(&machine.log()).unwrap();
    let outcome =
        wait(repair::repair(&machine.remote(), &machine.head(), &machine.log(), &report)).unwrap();
    assert_eq!(outcome.repaired.len(), 1);
    assert_eq!(files(&machine.log()), before);
}

#[test]
fn lost_records_at_the_end_are_appended_again_and_shipping_continues() {
    let mut machine = shipped();
    let active = machine.log().join("active.log");
    let bytes = fs::read(&active).unwrap();
    // Lose the last event, and record another in its place.
    fs::write(&active, &bytes[..bytes.len() - 40 - text(31).len()]).unwrap();
    machine.record(1);
    assert!(matches!(machine.ship(), Err(Error::Diverged { .. })));
    let (remote, log) = (machine.remote(), machine.log());
    let head = machine.head();
    assert!(!wait(repair::is_remote_contained(&remote, &head, &log)).unwrap());
    let report = repair::report(&log).unwrap();
    wait(repair::repair(&remote, &head, &log, &report)).unwrap();
    assert!(wait(repair::is_remote_contained(&remote, &head, &log)).unwrap());
    wait(machine.shipper().reship()).unwrap();
    let mut all = numbers(&log).0;
    all.sort_unstable();
    assert_eq!(all, (1..=32).collect::<Vec<_>>());
    machine.check();
}

#[test]
fn a_manifest_of_another_log_is_reported_as_such() {
    let (machine, other) = (shipped(), shipped());
    let entry = |machine: &Machine, number| machine.place().join(machine.host().entry(number));
    fs::remove_file(entry(&machine, 2)).unwrap();
    fs::copy(entry(&other, 1), entry(&machine, 1)).unwrap();
    let error = machine.restore("again", None, false).unwrap_err();
    assert!(matches!(&error, Error::OtherLog { found, .. } if *found == other.host().to_string()));
    assert!(matches!(machine.ship(), Err(Error::OtherLog { .. })));
}

#[test]
fn two_machines_that_ship_the_same_log_diverge_with_an_error() {
    let mut machine = shipped();
    machine.restore("again", None, false).unwrap();
    machine.record(1);
    machine.ship().unwrap();
    // The copy records another event and ships to the same remote.
    let mut copy = Machine::new();
    copy.place.clone_from(&machine.place);
    fs::rename(machine.restored("again"), copy.log()).unwrap();
    copy.next = 100;
    copy.record(3);
    let before = machine.objects();
    assert!(matches!(copy.ship(), Err(Error::Diverged { .. })));
    assert_eq!(machine.objects(), before);
    machine.check();
}

#[test]
fn server_errors_time_outs_and_truncated_responses_lose_nothing() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(10);
    machine.ship().unwrap();
    machine.record(10);
    let expect = |faults: Faults, expected: &str| {
        bucket.inject(faults);
        let error = machine.restore("again", None, false).unwrap_err();
        let words = error.to_string();
        assert!(words.contains(expected), "{words}");
        assert!(!machine.restored("again").exists());
        let failure = claude_mem_core::failure::Failure::from(error).render(false);
        assert!(failure.contains("note: ") && failure.contains("hint: "), "{failure}");
        words
    };
    expect(Faults { status: Some(403), ..Faults::default() }, "denied access");
    expect(Faults { status: Some(401), ..Faults::default() }, "denied access");
    expect(Faults { status: Some(500), ..Faults::default() }, "cannot be reached");
    expect(Faults { status: Some(503), ..Faults::default() }, "cannot be reached");
    expect(Faults { cut: Some("/seg/".into()), ..Faults::default() }, "cannot be reached");
    expect(Faults { flip: Some("/seg/".into()), ..Faults::default() }, "is damaged");
    expect(Faults { flip: Some("/chain/".into()), ..Faults::default() }, "is damaged");
    expect(Faults { silent: Some("/seg/".into()), ..Faults::default() }, "cannot be reached");
    bucket.inject(Faults { status: Some(500), ..Faults::default() });
    assert!(machine.ship().unwrap_err().is_transient());
    bucket.inject(Faults::default());
    machine.ship().unwrap();
    machine.check();
}

#[test]
fn an_outdated_listing_loses_nothing() {
    let bucket = Bucket::start().unwrap();
    let mut machine = Machine::with_bucket(&bucket);
    machine.record(2);
    machine.ship().unwrap();
    bucket.inject(Faults { is_listing_old: true, ..Faults::default() });
    for _ in 0..3 {
        machine.record(1);
        machine.ship().unwrap();
    }
    machine.check();
    bucket.inject(Faults::default());
    machine.check();
}

#[test]
fn without_conditional_requests_existence_is_checked_first() {
    let bucket = Bucket::start().unwrap();
    bucket.inject(Faults { is_without_conditions: true, ..Faults::default() });
    let mut machine = Machine::with_bucket(&bucket);
    for _ in 0..3 {
        machine.record(5);
        machine.ship().unwrap();
    }
    machine.check();
}

#[test]
fn an_emptied_remote_is_filled_again_and_that_is_reported() {
    let machine = shipped();
    assert!(!machine.ship().unwrap().is_refilled);
    fs::remove_dir_all(machine.place()).unwrap();
    let again = machine.ship().unwrap();
    assert!(again.is_refilled && again.objects > 0, "{again:?}");
    machine.check();
    assert!(!machine.ship().unwrap().is_refilled, "reported once");
}
