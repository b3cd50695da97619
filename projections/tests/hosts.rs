//! Several machines: logs arrive in any order and fold into the same rows everywhere.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_events::{
    Forgotten, Id, Imported, MemoryAdded, ObservationRef, ProjectMerged, Revision,
};
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{EventFilter, FoldState, Host, Options, RebuildReason, Store};
use made::{BEGIN_US, Writer};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A machine with a log, copies of other logs, and a database.
struct Machine {
    dir: TempDir,
    writer: Writer,
    store: Store,
}

impl Machine {
    /// `skew_us` is how far its clock is ahead.
    fn new(skew_us: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = Writer::new(&dir.path().join("log"));
        writer.at_us = BEGIN_US + skew_us;
        let options =
            Options { foreign: dir.path().join("foreign"), batch_events: 7, ..Options::default() };
        let store = Store::open(&dir.path().join("memory.db"), options).unwrap();
        Self { dir, writer, store }
    }

    fn log(&self) -> Log {
        Log::open(&self.dir.path().join("log"), LogOptions::default()).unwrap()
    }

    fn fold(&mut self) {
        let log = self.log();
        self.store.catch_up(&log, |_| {}).unwrap();
    }

    /// The directory of the copy of another machine's log.
    fn copy_of(&self, other: &Self) -> PathBuf {
        let id = Id::from_bytes(other.log().id().unwrap()).to_string();
        self.dir.path().join("foreign").join(id)
    }

    /// Copies another machine's log as it is now.
    fn fetch(&self, other: &Self, number: u8) {
        let copy = self.copy_of(other);
        let host = self::host(number, &format!("machine {number}"), false);
        copy_all(&other.dir.path().join("log"), &copy);
        write_host(&copy, &host);
    }

    /// The dump that is the same on all machines.
    fn shared(&self) -> String {
        self.store.check_index().unwrap();
        let mut text = Vec::new();
        self.store.write_shared_dump(&mut text).unwrap();
        String::from_utf8(text).unwrap()
    }

    fn titles(&self) -> String {
        let sql = "select id, title from observations where is_visible order by id";
        self.store.dump(sql).unwrap().replace('\n', " ")
    }

    fn note(&mut self, text: &str) -> [u8; 16] {
        let title = text.into();
        self.writer.add(MemoryAdded { title, text: text.into(), ..MemoryAdded::default() })
    }
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

fn host(number: u8, name: &str, is_hidden: bool) -> Host {
    Host { number, name: name.into(), is_hidden, is_dropped: false, is_confirmed: false }
}

fn write_host(copy: &Path, host: &Host) {
    fs::write(copy.join(Host::FILE), serde_json::to_vec(host).unwrap()).unwrap();
}

/// Machines whose clocks differ by hours, each with a number for every other one.
fn machines(count: usize) -> Vec<Machine> {
    (0..count as u64).map(|at| Machine::new((at * 977) % 3 * 7_200_000_000 + at)).collect()
}

fn number(of: usize, at: usize) -> u8 {
    // Every machine numbers the others differently.
    ((of + at * 2) % 7 + 1) as u8
}

#[test]
fn logs_that_arrive_in_any_order_come_to_the_same_rows_everywhere() {
    let mut machines = machines(3);
    let mut random = 7_u64;
    let mut next = |below: usize| {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut known: Vec<[u8; 16]> =
        machines.iter_mut().flat_map(|machine| machine.writer.session(0)).collect();
    // Sessions of the same names on every machine.
    let mut begun = [0; 3];
    for _ in 0..75 {
        let at = next(3);
        match next(10) {
            8 | 9 => {
                let sql = "select hex(event), number from observations order by id";
                let rows = machines[at].store.dump(sql).unwrap();
                let rows: Vec<&str> = rows.lines().collect();
                let Some(row) = rows.get(next(rows.len().max(1))) else { continue };
                let (event, number) = row.split_once('|').unwrap();
                let event = *Id::parse(event).unwrap().as_bytes();
                let revision = match next(5) {
                    0 => Revision::Edited {
                        title: None,
                        text: Some(format!("edit {row}")),
                        kind: None,
                    },
                    1 => Revision::Pinned,
                    2 => Revision::MarkedWrong { because: String::new() },
                    3 => Revision::SupersededBy(ObservationRef { event, number: 1 }),
                    _ => Revision::Restored,
                };
                machines[at].writer.revise(event, number.parse().unwrap(), revision);
            }
            0 if known.len() > 4 => {
                let events = vec![known[next(known.len())], known[next(known.len())]];
                machines[at].writer.add(Forgotten { events, ..Forgotten::default() });
            }
            1 => {
                let forgotten = match next(3) {
                    0 => {
                        Forgotten { session: format!("session-{}", next(9)), ..Default::default() }
                    }
                    1 => Forgotten {
                        file: "src/part_1.rs".into(),
                        project: "example.org/1".into(),
                        ..Default::default()
                    },
                    _ => Forgotten { until_us: Some(BEGIN_US + 40_000_000), ..Default::default() },
                };
                machines[at].writer.add(forgotten);
            }
            2 => {
                let (from, into) = (next(3), next(3));
                let (from, into) = (format!("example.org/{from}"), format!("example.org/{into}"));
                let label = if next(2) == 0 { String::new() } else { format!("name {}", next(9)) };
                machines[at].writer.add(ProjectMerged { from, into, label });
            }
            3 | 4 => {
                let from = (at + 1 + next(2)) % 3;
                machines[at].fetch(&machines[from], number(from, at));
                machines[at].fold();
            }
            _ => {
                begun[at] += 1;
                known.extend(machines[at].writer.session(begun[at]));
            }
        }
    }
    let own: Vec<_> = machines.iter().map(own_numbers).collect();
    for at in 0..3 {
        for from in (0..3).filter(|from| *from != at) {
            machines[at].fetch(&machines[from], number(from, at));
        }
        machines[at].fold();
    }
    let shared: Vec<_> = machines.iter().map(Machine::shared).collect();
    assert!(shared[0].contains("second v0") && shared[0].contains("-- forgettings"));
    similar(&shared[0], &shared[1]);
    similar(&shared[0], &shared[2]);
    for (machine, before) in machines.iter_mut().zip(own) {
        let log = machine.log();
        machine.store.rebuild(&log, |_| {}).unwrap();
        similar(&machine.shared(), &shared[0]);
        let after = own_numbers(machine);
        let is_renumbered =
            |(id, event): &(&i64, &String)| before.get(id).is_some_and(|was| was != *event);
        assert_eq!(after.iter().find(is_renumbered), None);
        assert!(!after.is_empty());
    }
}

/// The event that each of its own observations comes from.
fn own_numbers(machine: &Machine) -> BTreeMap<i64, String> {
    let sql = "select id, hex(event) || number from observations where id < 1000000000";
    let rows = machine.store.dump(sql).unwrap();
    let parted = |line: &str| {
        line.split_once('|').map(|(id, event)| (id.parse().unwrap(), event.to_owned()))
    };
    rows.lines().filter_map(parted).collect()
}

/// As `assert_eq`, but shows only the first line that differs.
#[track_caller]
fn similar(left: &str, right: &str) {
    let mut lines = left.lines().zip(right.lines());
    if let Some((left, right)) = lines.find(|(left, right)| left != right) {
        panic!("{left}\n{right}");
    }
    assert_eq!(left.len(), right.len());
}

#[test]
fn own_rows_keep_small_numbers_and_others_have_the_numbers_of_their_machine() {
    let mut machines = machines(2);
    machines[1].note("theirs");
    machines[0].fetch(&machines[1], 3);
    machines[0].fold();
    machines[0].note("ours");
    machines[0].fold();
    assert_eq!(machines[0].titles(), "1|ours 3000000001|theirs ");
    let log = machines[0].log();
    machines[0].store.rebuild(&log, |_| {}).unwrap();
    assert_eq!(machines[0].titles(), "1|ours 3000000001|theirs ");
    let details = machines[0].store.details(&["3000000001".parse().unwrap()]).unwrap();
    assert_eq!(details[0].provenance.host.as_deref(), Some("machine 3"));
}

#[test]
fn events_of_another_machine_are_never_pending() {
    let mut machines = machines(2);
    machines[1].writer.session(0);
    machines[0].fetch(&machines[1], 1);
    machines[0].fold();
    let store = &machines[0].store;
    assert_eq!(store.pending_turns(&EventFilter::default(), 9).unwrap(), []);
    assert_eq!(store.parked_turns(&EventFilter::default()).unwrap(), []);
    let counts = store.counts().unwrap();
    assert_eq!((counts.outstanding, counts.parked, counts.sessions), (0, 0, 1));
    assert_eq!(store.spent(0).unwrap().tokens, 0);
    assert_eq!(store.last_failure().unwrap(), None);
}

#[test]
fn a_forgetting_covers_earlier_and_later_events() {
    let mut machines = machines(3);
    let secret = machines[0].note("secret");
    machines[0].note("kept");
    machines[1].writer.add(Forgotten { events: vec![secret], ..Forgotten::default() });
    // The second machine never gets it; the third gets the forgetting first.
    machines[2].fetch(&machines[1], 1);
    machines[2].fold();
    machines[2].fetch(&machines[0], 2);
    machines[0].fold();
    machines[0].fetch(&machines[1], 1);
    for machine in [2, 0] {
        machines[machine].fold();
        assert!(!machines[machine].titles().contains("secret"));
        assert!(machines[machine].titles().contains("kept"));
    }
    assert_eq!(machines[0].store.search(&search("secret")).unwrap().hits.len(), 0);
}

#[test]
fn a_forgetting_is_undone_from_another_machine_in_any_order() {
    let mut machines = machines(3);
    let note = machines[0].note("here");
    let forgetting = machines[0].writer.add(Forgotten { events: vec![note], ..Default::default() });
    machines[1].writer.add(Forgotten { undoes: Some(forgetting), ..Default::default() });
    machines[0].fold();
    assert_eq!(machines[0].titles(), "");
    machines[0].fetch(&machines[1], 1);
    machines[0].fold();
    assert_eq!(machines[0].titles(), "1|here ");
    machines[2].fetch(&machines[1], 1);
    machines[2].fold();
    machines[2].fetch(&machines[0], 2);
    machines[2].fold();
    assert_eq!(machines[2].titles(), "2000000001|here ");
}

#[test]
fn events_imported_on_two_machines_are_shown_once() {
    let mut machines = machines(2);
    machines[1].writer.at_us = machines[0].writer.at_us;
    for machine in &mut machines {
        machine.writer.add(Imported {
            origin: "o".into(),
            table: "observation".into(),
            row_id: "17".into(),
            row: r#"{"type":"bugfix","title":"old"}"#.into(),
            ..Imported::default()
        });
        machine.fold();
    }
    machines[0].fetch(&machines[1], 1);
    machines[1].fetch(&machines[0], 1);
    for machine in &mut machines {
        machine.fold();
        assert_eq!(machine.titles().matches("old").count(), 1);
        assert_eq!(machine.store.search(&search("old")).unwrap().hits.len(), 1);
    }
    similar(&machines[0].shared(), &machines[1].shared());
}

#[test]
fn a_machine_is_hidden_and_shown_again_and_what_it_forgets_stays_forgotten() {
    let mut machines = machines(2);
    let secret = machines[0].note("secret");
    machines[1].writer.add(Forgotten { events: vec![secret], ..Forgotten::default() });
    machines[1].note("theirs");
    machines[0].fetch(&machines[1], 1);
    machines[0].fold();
    assert_eq!(machines[0].titles(), "1000000001|theirs ");
    let copy = machines[0].copy_of(&machines[1]);
    for (is_hidden, titles) in [(true, ""), (false, "1000000001|theirs ")] {
        let host = self::host(1, "other", is_hidden);
        write_host(&copy, &host);
        let log = machines[0].log();
        let due = machines[0].store.rebuild_reason(&log).unwrap();
        assert_eq!(due, Some(RebuildReason::HostsChanged));
        machines[0].fold();
        assert_eq!(machines[0].titles(), titles);
        assert_eq!(machines[0].store.hosts().unwrap()[0].is_hidden, is_hidden);
    }
    fs::remove_dir_all(&copy).unwrap();
    machines[0].fold();
    assert_eq!(machines[0].store.hosts().unwrap(), []);
}

#[test]
fn folding_only_our_own_log_leaves_rows_of_other_hosts_alone() {
    let mut machines = machines(2);
    machines[1].note("theirs");
    machines[0].note("ours");
    machines[0].fetch(&machines[1], 1);
    machines[0].fold();
    let path = machines[0].dir.path().join("memory.db");
    let mut store = Store::open(&path, Options::default()).unwrap();
    machines[0].note("more");
    let folded = store.fold(&machines[0].log(), |_| true).unwrap();
    assert_eq!((folded.events, folded.state), (1, FoldState::Complete));
    assert_eq!(machines[0].titles(), "1|ours 2|more 1000000001|theirs ");
}

fn search(query: &str) -> claude_mem_projections::search::Search {
    claude_mem_projections::search::Search { query: query.into(), limit: 9, ..Default::default() }
}
