//! Logs whose history differs from that of the rows, and repaired damage.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_events::MemoryAdded;
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{FoldState, Host, Options, RebuildReason, Store};
use made::{BEGIN_US, Writer, dump, fill};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// A data directory: a log, copies of other machines' logs, a database.
struct Place(PathBuf);

impl Place {
    fn log_dir(&self) -> PathBuf {
        self.0.join("log")
    }

    fn active(&self) -> PathBuf {
        self.log_dir().join("active.log")
    }

    fn log(&self) -> Log {
        Log::open(&self.log_dir(), LogOptions::default()).unwrap()
    }

    fn open(&self) -> Store {
        let options = Options { foreign: self.0.join("foreign"), ..Options::default() };
        Store::open(&self.0.join("memory.db"), options).unwrap()
    }

    fn folded(&self) -> Store {
        let mut store = self.open();
        store.catch_up(&self.log(), |_| {}).unwrap();
        store
    }

    /// The rows match the current log, each event once.
    #[track_caller]
    fn assert_folds_as_it_is(&self, what: &str) -> Store {
        let store = self.folded();
        let options = Options { foreign: self.0.join("foreign"), ..Options::default() };
        let fresh = self.0.join("fresh.db");
        claude_mem_projections::rebuild(&fresh, &self.log(), &options, |_| {}).unwrap();
        assert_eq!(dump(&store), dump(&Store::open(&fresh, options).unwrap()), "{what}");
        fs::remove_file(fresh).unwrap();
        store
    }

    fn copy_to(&self, to: PathBuf) -> Self {
        copy_all(&self.0, &to);
        Self(to)
    }

    fn cut_to(&self, len: u64) {
        fs::OpenOptions::new().write(true).open(self.active()).unwrap().set_len(len).unwrap();
    }

    /// Records some sessions, this many days after all others begin.
    fn go_on(&self, days: u64) {
        let mut writer = Writer::new(&self.log_dir());
        writer.at_us = BEGIN_US + days * 86_400_000_000;
        for number in 10..16 {
            writer.session(number);
        }
    }

    /// Records notes that the first log does not have.
    fn add(&self, count: u64) {
        let mut writer = Writer::new(&self.log_dir());
        writer.at_us = BEGIN_US * 2;
        for number in 0..count {
            let text = format!("another past {number}");
            writer.add(MemoryAdded { text, ..MemoryAdded::default() });
        }
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => copy_all(&entry.path(), &to.join(entry.file_name())),
            false => _ = fs::copy(entry.path(), to.join(entry.file_name())).unwrap(),
        }
    }
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_log_truncated_anywhere_and_its_next_events_are_folded() {
    let dir = tempfile::tempdir().unwrap();
    let whole = Place(dir.path().join("whole"));
    fill(&whole.log_dir(), 3);
    let events = whole.folded().checkpoint().unwrap().events;
    let len = fs::metadata(whole.active()).unwrap().len();
    assert!(len > 4000, "{len}");
    for cut in [1, 39, 200, 701, 1_900, 3_999] {
        for added in [0, 1, 30] {
            let what = format!("{cut} bytes cut, {added} events added");
            let place = whole.copy_to(dir.path().join(format!("{cut}-{added}")));
            place.cut_to(len - cut);
            place.add(added);
            let store = place.assert_folds_as_it_is(&what);
            let rebuilt = store.last_history_rebuild().unwrap().expect(&what);
            assert!(!rebuilt.is_other_log, "{what}");
            let now = store.checkpoint().unwrap().events;
            assert_eq!(now, events - rebuilt.lost_events + added, "{what}");
            assert!(rebuilt.lost_events > 0 && rebuilt.lost_until_us < BEGIN_US * 2, "{what}");
            // The second time there is nothing to do.
            assert_eq!(place.open().rebuild_reason(&place.log()).unwrap(), None, "{what}");
        }
    }
}

/// The torn record is in a sealed segment when the log is folded next.
#[test]
fn a_truncated_and_rolled_log_is_folded() {
    let dir = tempfile::tempdir().unwrap();
    let whole = Place(dir.path().join("whole"));
    fill(&whole.log_dir(), 1);
    whole.folded();
    let len = fs::metadata(whole.active()).unwrap().len();
    for cut in [1, 39] {
        for added in [1, 30] {
            let what = format!("{cut} bytes cut, {added} events added");
            let place = whole.copy_to(dir.path().join(format!("{cut}-{added}")));
            place.cut_to(len - cut);
            place.add(added);
            claude_mem_log::roll(&place.log_dir(), &LogOptions::default()).unwrap();
            place.add(1);
            let store = place.assert_folds_as_it_is(&what);
            let rebuilt = store.last_history_rebuild().unwrap().expect(&what);
            assert_eq!(rebuilt.lost_events, 1, "{what}");
        }
    }
}

#[test]
fn an_older_log_under_a_newer_database_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().join("now"));
    for sessions in [1, 2, 5] {
        fill(&place.log_dir(), sessions);
        let older = place.copy_to(dir.path().join(format!("older-{sessions}")));
        place.go_on(2);
        place.folded();
        for added in [0, 1, 200] {
            let mixed = older.copy_to(dir.path().join(format!("mixed-{sessions}-{added}")));
            for suffix in ["", "-wal"] {
                let name = format!("memory.db{suffix}");
                let _ = fs::remove_file(mixed.0.join(&name));
                let _ = fs::copy(place.0.join(&name), mixed.0.join(&name));
            }
            mixed.add(added);
            let store = mixed.assert_folds_as_it_is(&format!("{sessions} sessions, {added} added"));
            assert!(store.last_history_rebuild().unwrap().unwrap().lost_events > 0);
        }
        fs::remove_dir_all(&place.0).unwrap();
    }
}

/// The database is in segment 2, and the restored log still appends to segment 1.
#[test]
fn a_log_from_before_it_was_rolled_is_another_past_as_soon_as_it_grows() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().join("now"));
    fill(&place.log_dir(), 1);
    let older = place.copy_to(dir.path().join("older"));
    claude_mem_log::roll(&place.log_dir(), &LogOptions::default()).unwrap();
    let store = place.folded();
    assert_eq!(store.checkpoint().unwrap().position.segment(), 2);
    drop(store);
    fs::remove_dir_all(place.log_dir()).unwrap();
    copy_all(&older.log_dir(), &place.log_dir());
    assert_eq!(place.folded().last_history_rebuild().unwrap(), None, "nothing is lost yet");
    place.add(1);
    place.assert_folds_as_it_is("one event in segment 1");
}

#[test]
fn a_replaced_log_is_folded_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().join("one"));
    fill(&place.log_dir(), 2);
    let events = place.folded().checkpoint().unwrap().events;
    fs::remove_dir_all(place.log_dir()).unwrap();
    place.add(3);
    let store = place.assert_folds_as_it_is("another log");
    let rebuilt = store.last_history_rebuild().unwrap().unwrap();
    assert!(rebuilt.is_other_log);
    assert_eq!(rebuilt.lost_events, events);
}

#[test]
fn damage_to_the_record_that_was_folded_last_costs_no_row() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().to_owned());
    let log = fill(&place.log_dir(), 1);
    let before = dump(&place.folded());
    let len = fs::metadata(place.active()).unwrap().len() as usize;
    flip(&place.active(), len - 1);
    let mut store = place.open();
    assert_eq!(store.fold(&log, |_| true).unwrap().state, FoldState::Complete);
    assert_eq!(dump(&store), before);
    place.add(2);
    let folded = store.fold(&log, |_| true).unwrap();
    assert_eq!((folded.events, folded.state), (2, FoldState::Complete));
}

#[test]
fn repaired_events_are_folded() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().to_owned());
    let log = fill(&place.log_dir(), 12);
    let middle = fs::metadata(place.active()).unwrap().len() as usize / 2;
    flip(&place.active(), middle);
    assert_eq!(place.folded().counts().unwrap().gaps, 1);
    // Still damaged: a rebuild gains nothing.
    assert_eq!(place.open().rebuild_reason(&log).unwrap(), None);
    flip(&place.active(), middle);
    assert_eq!(place.open().rebuild_reason(&log).unwrap(), Some(RebuildReason::DamageHealed));
    let store = place.assert_folds_as_it_is("repaired");
    assert_eq!(store.counts().unwrap().gaps, 0);
    assert_eq!(store.last_history_rebuild().unwrap(), None, "nothing is lost");
    drop(store);

    let segment = place.log_dir().join("0000000000000001.g00.seg");
    let aside = dir.path().join("aside");
    fs::rename(&segment, &aside).unwrap();
    place.open().rebuild(&log, |_| {}).unwrap();
    assert_eq!(place.folded().counts().unwrap().gaps, 1);
    fs::rename(&aside, &segment).unwrap();
    let store = place.assert_folds_as_it_is("brought back");
    assert_eq!(store.counts().unwrap().gaps, 0);
}

#[test]
fn a_database_with_a_schema_of_no_release_is_filled_from_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let place = Place(dir.path().to_owned());
    fill(&place.log_dir(), 3);
    let before = dump(&place.folded());
    let older = rusqlite::Connection::open(dir.path().join("memory.db")).unwrap();
    older.execute_batch("drop table corrections; pragma user_version = 23").unwrap();
    drop(older);
    assert_eq!(place.open().checkpoint().unwrap().events, 0);
    assert_eq!(dump(&place.assert_folds_as_it_is("filled again")), before);
}

#[test]
fn a_different_history_of_another_hosts_log_is_detected() {
    let dir = tempfile::tempdir().unwrap();
    let (place, other) = (Place(dir.path().join("here")), Place(dir.path().join("there")));
    fill(&place.log_dir(), 1);
    other.go_on(1);
    let fork = other.copy_to(dir.path().join("fork"));
    other.go_on(2);
    let copy = place.0.join("foreign/there");
    let fetch = |from: &Place| {
        let _ = fs::remove_dir_all(&copy);
        copy_all(&from.log_dir(), &copy);
        let host = Host {
            number: 1,
            name: "there".into(),
            is_hidden: false,
            is_dropped: false,
            is_confirmed: false,
        };
        fs::write(copy.join(Host::FILE), serde_json::to_string(&host).unwrap()).unwrap();
    };
    fetch(&other);
    place.assert_folds_as_it_is("the first copy");
    fork.add(300);
    fetch(&fork);
    assert_eq!(
        place.open().rebuild_reason(&place.log()).unwrap(),
        Some(RebuildReason::HistoryDiffers)
    );
    place.assert_folds_as_it_is("the copy of the fork");
}
