//! The database as a file: rebuilt, damaged, too new, replaced under its readers.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_events::{Forgotten, MemoryAdded};
use claude_mem_log::{Log, Options as LogOptions};
use claude_mem_projections::{Error, FoldState, Options, RebuildReason, Store, rebuild};
use made::{Writer, dump, fill};
use std::{fs, path::Path, thread, time::Duration};

fn open(path: &Path) -> Store {
    Store::open(path, Options::default()).unwrap()
}

/// The rows of a log, rebuilt elsewhere.
fn rebuilt_rows(log: &Log) -> String {
    let mut store = Store::in_memory().unwrap();
    store.rebuild(log, |_| {}).unwrap();
    dump(&store)
}

#[test]
fn the_same_rows_come_back_after_the_database_is_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let log = fill(&log_dir, 12);
    let mut store = open(&path);
    let folded = store.fold(&log, |_| true).unwrap();
    assert_eq!(folded.state, FoldState::Complete);
    let before = dump(&store);
    assert!(before.contains("part 2 of thing 1 in v0") && before.contains("|user|note|"));
    drop(store);
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(dir.path().join(format!("memory.db{suffix}")));
    }
    let mut store = open(&path);
    store.catch_up(&log, |_| {}).unwrap();
    assert_eq!(dump(&store), before);

    let copy = dir.path().join("elsewhere");
    fs::create_dir(&copy).unwrap();
    for entry in fs::read_dir(&log_dir).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    assert_eq!(rebuilt_rows(&Log::open(&copy, LogOptions::default()).unwrap()), before);
}

#[test]
fn forgotten_text_is_in_no_page_of_a_rebuilt_database() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let mut writer = Writer::new(&log_dir);
    let memories = ["kept qwvzkj", "lost xkjqzv"]
        .map(|text| writer.add(MemoryAdded { text: text.into(), ..MemoryAdded::default() }));
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let is_in_file = |word: &[u8]| {
        rebuild(&path, &log, &Options::default(), |_| {}).unwrap();
        open(&path).check_index().unwrap();
        fs::read(&path).unwrap().windows(word.len()).any(|bytes| bytes == word)
    };
    assert!(is_in_file(b"xkjqzv"));
    writer.add(Forgotten { events: vec![memories[1]], ..Forgotten::default() });
    assert!(!is_in_file(b"xkjqzv"));
    assert!(is_in_file(b"qwvzkj"));
    let left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|at| at.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_str().unwrap().contains(".new")), "{left:?}");
}

#[test]
fn incremental_folding_equals_folding_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let options = Options { batch_events: 7, ..Options::default() };
    let mut store = Store::open(&dir.path().join("memory.db"), options).unwrap();
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut writer = Writer::new(&log_dir);
    let mut tools = Vec::new();
    for number in 0..6 {
        tools.extend(writer.session(number));
        store.fold(&log, |_| true).unwrap();
        claude_mem_log::maintain(&log_dir, &LogOptions::default()).unwrap();
    }
    writer.history(&tools);
    let limited = store.fold(&log, |_| false).unwrap();
    assert_eq!((limited.events, limited.state), (7, FoldState::Behind));
    store.fold(&log, |_| true).unwrap();
    assert_eq!(dump(&store), rebuilt_rows(&log));
}

#[test]
fn a_damaged_log_folds_and_reports_the_damage() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let log = fill(&log_dir, 4);
    let whole = Store::in_memory().unwrap().fold(&log, |_| true).unwrap();
    let segment = log_dir.join("active.log");
    let mut bytes = fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(&segment, bytes).unwrap();
    let mut store = Store::in_memory().unwrap();
    let folded = store.fold(&log, |_| true).unwrap();
    assert_eq!((folded.events, folded.gaps.len()), (whole.events - 1, 1));
    assert_eq!(folded.state, FoldState::Complete);
    assert_eq!(store.counts().unwrap().gaps, 1);
    assert_eq!(rebuilt_rows(&log), dump(&store));
}

#[test]
fn a_database_of_a_newer_version_is_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.db");
    drop(open(&path));
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", 4711).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    for result in [
        Store::open(&path, Options::default()).map(|_| ()),
        Store::open_read_only(&path).map(|_| ()),
        Store::open_or_set_aside(&path, Options::default(), 7).map(|_| ()),
    ] {
        assert!(matches!(result, Err(Error::Newer { schema: 4711, .. })), "{result:?}");
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn an_unusable_database_is_set_aside_and_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let log = fill(&dir.path().join("log"), 2);
    let path = dir.path().join("memory.db");
    let mut whole = open(&path);
    whole.catch_up(&log, |_| {}).unwrap();
    let before = dump(&whole);
    drop(whole);
    let mut scribbled = fs::read(&path).unwrap();
    scribbled[16..400].fill(0xAA);
    let foreign = {
        let other = dir.path().join("other.db");
        rusqlite::Connection::open(&other)
            .unwrap()
            .execute_batch("pragma application_id = 5")
            .unwrap();
        fs::read(other).unwrap()
    };
    let broken = [b"not a database, but long enough to be one".repeat(9), scribbled, foreign];
    for (index, bytes) in broken.into_iter().enumerate() {
        fs::write(&path, &bytes).unwrap();
        assert!(Store::open(&path, Options::default()).unwrap_err().is_damage());
        assert_eq!(fs::read(&path).unwrap(), bytes, "opening changed it");
        let now_us = 1_700_000_000_000_000 + index as u64 * 1_000_000;
        let (mut store, aside) =
            Store::open_or_set_aside(&path, Options::default(), now_us).unwrap();
        let aside = aside.unwrap();
        assert!(
            aside.to_str().unwrap().ends_with(&format!("memory.db.broken-{}", now_us / 1_000_000))
        );
        assert_eq!(fs::read(aside).unwrap(), bytes);
        store.catch_up(&log, |_| {}).unwrap();
        assert_eq!(dump(&store), before);
    }
}

#[test]
fn readers_keep_the_old_file_while_it_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let log = fill(&log_dir, 3);
    let path = dir.path().join("memory.db");
    let mut writer = open(&path);
    writer.fold(&log, |_| true).unwrap();
    let reader = Store::open_read_only(&path).unwrap().unwrap();
    let before = reader.dump("select count(*) from events").unwrap();
    Writer::new(&log_dir).session(99);
    rebuild(&path, &log, &Options::default(), |_| {}).unwrap();
    assert_eq!(reader.dump("select count(*) from events").unwrap(), before);
    assert!(reader.is_replaced() && writer.is_replaced());
    drop(reader);
    // A writer notices, and continues in the new file.
    Writer::new(&log_dir).session(100);
    writer.fold(&log, |_| true).unwrap();
    assert!(!writer.is_replaced());
    assert_eq!(dump(&open(&path)), rebuilt_rows(&log));
    assert_eq!(writer.dump("pragma journal_mode").unwrap(), "wal\n");
    assert_eq!(writer.dump("pragma integrity_check").unwrap(), "ok\n");
}

#[test]
fn a_snapshot_can_be_opened_next_to_other_connections() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let log = fill(&log_dir, 2);
    let path = dir.path().join("a b?c%#.db");
    let events = |store: &Store| store.dump("select count(*) from events").unwrap();
    let look = || events(&Store::open_snapshot(&path).unwrap().unwrap());
    assert!(Store::open_snapshot(&path).unwrap().is_none());
    let mut writer = open(&path);
    writer.fold(&log, |_| true).unwrap();
    let before = events(&writer);
    assert_eq!(look(), before);
    // First the database is closed and has no companion files; then the last reader leaves them.
    drop(writer);
    assert_eq!(look(), before);
    drop(Store::open_read_only(&path).unwrap());
    assert_eq!(look(), before);
    // Left behind by a killed process, with rows in the write-ahead log.
    let mut more = Writer::new(&log_dir);
    (0..9).for_each(|session| drop(more.session(session)));
    let mut writer = open(&path);
    writer.fold(&log, |_| true).unwrap();
    let copy = dir.path().join("killed.db");
    for suffix in ["", "-wal", "-shm"] {
        let name = |path: &std::path::Path| format!("{}{suffix}", path.display());
        fs::copy(name(&path), name(&copy)).unwrap();
    }
    let killed = events(&Store::open_snapshot(&copy).unwrap().unwrap());
    assert_eq!(killed, events(&writer));
    assert_ne!(killed, before);
}

#[test]
fn an_interrupted_rebuild_leaves_the_old_file_and_the_next_one_succeeds() {
    let dir = tempfile::tempdir().unwrap();
    let log = fill(&dir.path().join("log"), 3);
    let path = dir.path().join("memory.db");
    let mut store = open(&path);
    store.fold(&log, |_| true).unwrap();
    let before = dump(&store);
    fs::write(dir.path().join("memory.db.new"), b"half of a database").unwrap();
    fs::write(dir.path().join("memory.db.new-journal"), b"and its journal").unwrap();
    assert_eq!(dump(&open(&path)), before);
    rebuild(&path, &log, &Options::default(), |_| {}).unwrap();
    assert_eq!(dump(&open(&path)), before);
    assert!(!dir.path().join("memory.db.new").exists());
}

#[test]
fn two_rebuilds_at_once_do_not_meet() {
    let dir = tempfile::tempdir().unwrap();
    let log = fill(&dir.path().join("log"), 2);
    let path = dir.path().join("memory.db");
    let mut other = None;
    rebuild(&path, &log, &Options::default(), |_| {
        other = Some(rebuild(&path, &log, &Options::default(), |_| {}));
    })
    .unwrap();
    assert!(matches!(other, Some(Err(Error::Rebuilding { .. }))), "{other:?}");
}

#[test]
fn undoing_a_forgetting_restores_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut writer = Writer::new(&log_dir);
    let mut store = open(&dir.path().join("memory.db"));
    writer.session(2);
    store.fold(&log, |_| true).unwrap();
    let titles = |store: &Store| store.dump("select id, title from observations").unwrap();
    let before = titles(&store);
    let session = "session-2".to_owned();
    let forgetting = writer.add(Forgotten { session, ..Forgotten::default() });
    store.fold(&log, |_| true).unwrap();
    assert_eq!((titles(&store).as_str(), before.lines().count()), ("", 6));

    let undoing = writer.add(Forgotten { undoes: Some(forgetting), ..Forgotten::default() });
    let folded = store.fold(&log, |_| true).unwrap();
    assert_eq!(folded.state, FoldState::NeedsRebuild(RebuildReason::EarlierEventsAffected));
    store.catch_up(&log, |_| {}).unwrap();
    assert_eq!(titles(&store), before);
    assert_eq!(dump(&store), rebuilt_rows(&log));

    // And undone once more.
    writer.add(Forgotten { undoes: Some(undoing), ..Forgotten::default() });
    store.catch_up(&log, |_| {}).unwrap();
    assert_eq!(titles(&store), "");
    assert_eq!(dump(&store), rebuilt_rows(&log));
}

#[test]
fn an_empty_database_is_replaced_only_for_a_long_log() {
    for (words, is_replaced) in [(100_u64, false), (200_000, true)] {
        let dir = tempfile::tempdir().unwrap();
        let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
        let mut writer = Writer::new(&log_dir);
        // Records are compressed, so the words differ.
        let text: String =
            (0..words).map(|n| format!("{:x} ", n.wrapping_mul(0x9E37_79B9_7F4A_7C15))).collect();
        writer.add(MemoryAdded { text, ..MemoryAdded::default() });
        let log = Log::open(&log_dir, LogOptions::default()).unwrap();
        let (mut store, reader) = (open(&path), open(&path));
        store.catch_up(&log, |_| {}).unwrap();
        assert_eq!(reader.is_replaced(), is_replaced, "{words} words");
        assert_eq!(dump(&store), rebuilt_rows(&log), "{words} words");
    }
}

#[test]
fn of_two_processes_that_need_a_rebuild_one_waits_for_the_other() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut writer = Writer::new(&log_dir);
    writer.session(1);
    let forgetting = writer.add(Forgotten { session: "session-1".into(), ..Forgotten::default() });
    let (mut one, mut other) = (open(&path), open(&path));
    one.catch_up(&log, |_| {}).unwrap();
    writer.add(Forgotten { undoes: Some(forgetting), ..Forgotten::default() });
    thread::scope(|scope| {
        let mut also = Some(|| other.catch_up(&log, |_| {}).unwrap());
        one.catch_up(&log, |_| {
            // Rebuilding now. What is written meanwhile must not be lost.
            if let Some(also) = also.take() {
                writer.session(2);
                scope.spawn(also);
                // Time for the other one to reach the lock. The test holds for every order.
                thread::sleep(Duration::from_millis(100));
            }
        })
        .unwrap();
        assert!(also.is_none());
    });
    assert!(!one.is_replaced() && !other.is_replaced());
    assert_eq!(dump(&one), rebuilt_rows(&log));
    assert_eq!(dump(&other), rebuilt_rows(&log));
}

#[test]
fn forgotten_text_is_in_no_byte_of_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let log_dir = dir.path().join("log");
    let path = dir.path().join("memory.db");
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut writer = Writer::new(&log_dir);
    writer.session(1);
    let text = "the xylophone is in the cellar".to_owned();
    let memory = claude_mem_events::MemoryAdded { text, ..Default::default() };
    let id = writer.add(memory);
    let mut store = open(&path);
    store.catch_up(&log, |_| {}).unwrap();
    store.dump("pragma wal_checkpoint(truncate)").unwrap();
    let contains = |word: &str| {
        let bytes = fs::read(&path).unwrap();
        bytes.windows(word.len()).any(|window| window == word.as_bytes())
    };
    assert!(contains("xylophon"));
    writer.add(Forgotten { events: vec![id], ..Forgotten::default() });
    store.fold(&log, |_| true).unwrap();
    store.dump("pragma wal_checkpoint(truncate)").unwrap();
    assert!(!contains("xylophon"));
    // In a rebuild it is inserted and deleted in the same transaction.
    store.rebuild(&log, |_| {}).unwrap();
    assert!(!contains("xylophon"));
    store.check_index().unwrap();
}

#[test]
fn rows_of_another_log_or_another_mode_are_rebuilt() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.db");
    let (one, two) = (fill(&dir.path().join("1"), 2), fill(&dir.path().join("2"), 3));
    let mut store = open(&path);
    store.catch_up(&one, |_| {}).unwrap();
    assert_eq!(
        store.fold(&two, |_| true).unwrap().state,
        FoldState::NeedsRebuild(RebuildReason::OtherLog)
    );
    store.catch_up(&two, |_| {}).unwrap();
    assert_eq!(dump(&store), rebuilt_rows(&two));
    drop(store);
    let options = Options { kinds: vec!["clue".into()], ..Options::default() };
    let mut store = Store::open(&path, options).unwrap();
    assert_eq!(
        store.fold(&two, |_| true).unwrap().state,
        FoldState::NeedsRebuild(RebuildReason::Outdated)
    );
    store.catch_up(&two, |_| {}).unwrap();
    let types =
        store.dump("select distinct type from observations where origin = 'agent'").unwrap();
    assert_eq!(types, "clue\n");
}

#[test]
fn two_processes_folding_at_once_fold_each_event_once() {
    let dir = tempfile::tempdir().unwrap();
    let log = fill(&dir.path().join("log"), 8);
    let path = dir.path().join("memory.db");
    let options = Options { batch_events: 5, ..Options::default() };
    let (mut one, mut two) =
        (Store::open(&path, options.clone()).unwrap(), Store::open(&path, options).unwrap());
    let mut turns = 0;
    one.fold(&log, |_| {
        turns += 1;
        two.fold(&log, |_| turns % 3 == 0 && turns < 20).unwrap();
        true
    })
    .unwrap();
    assert_eq!(dump(&one), rebuilt_rows(&log));
}

#[test]
fn a_database_that_began_empty_does_not_scan_its_index_when_it_has_grown() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("memory.db");
    let log = Log::open(&dir.path().join("log"), LogOptions::default()).unwrap();
    open(&path).catch_up(&log, |_| {}).unwrap();
    rebuild(&path, &log, &Options::default(), |_| {}).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    // The statement of an FTS5 merge.
    let sql = "explain query plan delete from prompts_fts_data where id >= ?1 and id <= ?2";
    let plan: String = connection.query_row(sql, [1, 2], |row| row.get(3)).unwrap();
    assert!(plan.starts_with("SEARCH"), "{plan}");
}
