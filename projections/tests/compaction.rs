//! After any compaction, the rest of the log folds into the same rows.

#![allow(clippy::unwrap_used, reason = "this is a test")]

mod made;

use claude_mem_events::{
    AgentReplied, Forgotten, Id, Imported, LogCompacted, MemoryAdded, PromptSubmitted,
    ReprocessFinished, Revision, ToolUsed,
};
use claude_mem_log::{
    Compactor, Item, Log, Options as LogOptions, Packing, SegmentState, Seq, maintain, roll, verify,
};
use claude_mem_projections::{FoldState, Options, Store};
use made::{Writer, dump};
use std::{fs, path::Path};

/// A text that must not be found afterwards.
const SECRET: &str = "xyzzy-plugh";

fn rebuilt_rows(log: &Log) -> String {
    let mut store = Store::in_memory().unwrap();
    store.rebuild(log, |_| {}).unwrap();
    dump(&store)
}

/// Compacts everything, `size` segments at a time; returns the number of erased records.
fn compact(dir: &Path, store: &mut Store, size: usize) -> u64 {
    let options = LogOptions::default();
    roll(dir, &options).unwrap();
    maintain(dir, &options).unwrap();
    let log = Log::open(dir, options.clone()).unwrap();
    assert_eq!(store.catch_up(&log, |_| {}).unwrap().state, FoldState::Complete);
    let compactor = Compactor::begin(dir, &options, Packing::default()).unwrap().unwrap();
    let all = store.eraser().unwrap();
    let mut segments = log.segments().unwrap();
    segments.retain(|info| info.state == SegmentState::Sealed);
    let mut count = 0;
    for group in segments.chunks(size) {
        let to = Seq::new(group[group.len() - 1].number_last + 1, 0);
        let mut eraser = store.eraser_of(&all, Seq::new(group[0].number, 0), to).unwrap();
        count += compactor.rewrite(group, &mut eraser).unwrap().unwrap().erased;
    }
    assert!(!verify(dir, &options).unwrap().is_damaged());
    count
}

fn assert_nowhere(dir: &Path) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_nowhere(&path);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let is_there = bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        assert!(!is_there, "{} still has it", path.display());
    }
}

/// Whether any record contains it, compressed or not.
fn is_read(log: &Log) -> bool {
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next().unwrap() {
        if let Item::Record(entry) = item
            && entry.payload.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())
        {
            return true;
        }
    }
    false
}

fn secret(text: &str) -> String {
    format!("{text} {SECRET}")
}

/// A log with a secret in one event of each kind, and everything that `forget` names forgotten.
fn filled(dir: &Path, forget: impl Fn(&Written) -> Forgotten) -> Log {
    let mut writer = Writer::new(dir);
    let mut tools: Vec<_> = (0..9).flat_map(|number| writer.session(number)).collect();
    writer.session(77);
    let before_us = writer.at_us;
    let tool = writer.add(ToolUsed {
        tool: "Write".into(),
        input: format!(r#"{{"file_path":"/home/project-2/{SECRET}.rs"}}"#),
        output: secret("wrote").repeat(100),
        cwd: format!("/home/{SECRET}"),
        tool_use_id: "secret".into(),
        ..ToolUsed::default()
    });
    let reply = writer.add(AgentReplied {
        answers: vec![tool],
        reply: format!(
            "{SECRET} <observation><title>kept</title></observation><observation>\
             <title>{SECRET}</title></observation><summary><completed>{SECRET}</completed>\
             </summary>"
        ),
        prompt_version: "v0".into(),
        tokens_in: 10,
        ..AgentReplied::default()
    });
    let memory = writer.add(MemoryAdded { text: secret("by hand"), ..MemoryAdded::default() });
    let imported = writer.add(Imported {
        source: "s".into(),
        origin: "o".into(),
        table: "prompt".into(),
        row_id: "5".into(),
        row: format!(
            r#"{{"prompt_text":"{SECRET}","prompt_number":9,"created_at_epoch":1700000000000}}"#
        ),
    });
    for (event, number) in [(reply, 2), (memory, 1)] {
        let (title, text) = (Some(secret("edited")), Some(secret("text")));
        writer.revise(event, number, Revision::Edited { title, text, kind: None });
        writer.revise(event, number, Revision::MarkedWrong { because: secret("why") });
    }
    writer.revisions();
    let after_us = writer.at_us + 1;
    writer.session(78);
    let written = Written { tool, reply, memory, imported, before_us, after_us };
    writer.add(forget(&written));
    tools.truncate(24);
    writer.history(&tools);
    writer.revisions();
    // Replaces earlier replies, so that some are superseded.
    writer.add(ReprocessFinished { generation: 1, is_current: true });
    writer.session(79);
    let tools = vec!["Bash".into()];
    writer.add(LogCompacted { drops_superseded: true, tools, raw_before_us: None });
    writer.session(80);
    Log::open(dir, LogOptions::default()).unwrap()
}

struct Written {
    tool: [u8; 16],
    reply: [u8; 16],
    memory: [u8; 16],
    imported: [u8; 16],
    before_us: u64,
    after_us: u64,
}

/// The dumps of the whole log and of the compacted one are equal, and nothing of the secret is
/// left.
fn assert_same(forget: impl Fn(&Written) -> Forgotten) {
    for size in [1, 4] {
        let dir = tempfile::tempdir().unwrap();
        let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
        let log = filled(&log_dir, &forget);
        let mut store = Store::open(&path, Options::default()).unwrap();
        store.catch_up(&log, |_| {}).unwrap();
        let before = dump(&store);
        assert!(before.contains("|erased|"), "something is superseded");
        assert!(log.segments().unwrap().len() > 3 && is_read(&log));
        let erased = compact(&log_dir, &mut store, size);
        assert!(erased > 10, "{erased}");
        assert_same_text(&rebuilt_rows(&log), &before);
        assert_same_text(&dump(&store), &before);
        store.vacuum().unwrap();
        drop(store);
        assert_nowhere(dir.path());
        assert!(!is_read(&log), "it is still there, packed");
        // The second time there is nothing to do.
        let mut store = Store::open(&path, Options::default()).unwrap();
        assert_eq!(compact(&log_dir, &mut store, 1), 0);
        assert_same_text(&rebuilt_rows(&log), &before);
    }
}

fn assert_same_text(now: &str, before: &str) {
    let differs = now.lines().zip(before.lines()).find(|(now, before)| now != before);
    assert!(differs.is_none() && now.len() == before.len(), "{differs:#?}");
}

#[test]
fn forgetting_single_events_changes_nothing_else() {
    assert_same(|written| Forgotten {
        events: vec![written.tool, written.memory, written.imported],
        ..Forgotten::default()
    });
}

#[test]
fn forgetting_a_session_changes_nothing_else() {
    assert_same(|_| Forgotten { session: "session-77".into(), ..Forgotten::default() });
}

#[test]
fn forgetting_a_project_changes_nothing_else() {
    assert_same(|_| Forgotten { project: "example.org/2".into(), ..Forgotten::default() });
}

#[test]
fn forgetting_a_time_range_changes_nothing_else() {
    assert_same(|written| Forgotten {
        since_us: Some(written.before_us),
        until_us: Some(written.after_us),
        ..Forgotten::default()
    });
}

#[test]
fn the_branch_of_a_forgotten_session_is_gone_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(dir.path());
    writer.session(2);
    writer.envelope.branch = secret("fix");
    writer.add(ToolUsed::default());
    writer.envelope.branch.clear();
    writer.add(Forgotten { session: "session-2".into(), ..Forgotten::default() });
    // It continues without the earlier history.
    writer.envelope.branch = "later".into();
    writer.envelope.commit = "c0ffee".into();
    writer.add(ToolUsed::default());
    writer.add(LogCompacted::default());
    let log = Log::open(dir.path(), LogOptions::default()).unwrap();
    let mut store = Store::in_memory().unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    let before = dump(&store);
    let state = store.dump("select branch, first_commit, last_commit from sessions").unwrap();
    assert_eq!(state, "later|c0ffee|c0ffee\n");
    assert!(is_read(&log));
    assert!(compact(dir.path(), &mut store, 1) > 0);
    assert!(!is_read(&log));
    assert_same_text(&rebuilt_rows(&log), &before);
}

/// An older version recorded text of the client as the user's. Without the text, it is still no
/// turn.
#[test]
fn a_forgotten_notification_does_not_become_a_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(dir.path());
    writer.session(2);
    let prompt = format!("<task-notification>{SECRET}</task-notification>");
    let event = writer.add(PromptSubmitted { prompt, ..PromptSubmitted::default() });
    writer.add(ToolUsed::default());
    writer.add(Forgotten { events: vec![event], ..Forgotten::default() });
    writer.add(LogCompacted::default());
    let log = Log::open(dir.path(), LogOptions::default()).unwrap();
    let mut store = Store::in_memory().unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    let before = dump(&store);
    assert!(compact(dir.path(), &mut store, 1) > 0);
    assert!(!is_read(&log));
    assert_same_text(&rebuilt_rows(&log), &before);
}

/// The reply also contains a memory that stays.
#[test]
fn one_forgotten_memory_leaves_the_others_of_its_reply() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let log = filled(&log_dir, |written| {
        let address = |number: u32| format!("{}/{number}", Id::from_bytes(written.reply));
        Forgotten { rows: vec![address(2), address(0)], ..Forgotten::default() }
    });
    let mut store = Store::open(&path, Options::default()).unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    let before = dump(&store);
    compact(&log_dir, &mut store, 2);
    assert_same_text(&rebuilt_rows(&log), &before);
    let titles = store.dump("select title from observations where title = 'kept'").unwrap();
    assert_eq!(titles, "kept\n");
}

#[test]
fn a_rebuild_of_a_compacted_log_forgets_the_same_file() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let log = filled(&log_dir, |_| Forgotten {
        file: "src/part_1.rs".into(),
        project: "example.org/0".into(),
        ..Forgotten::default()
    });
    let mut store = Store::open(&path, Options::default()).unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    let before = dump(&store);
    compact(&log_dir, &mut store, 2);
    assert_same_text(&rebuilt_rows(&log), &before);
}

#[test]
fn digests_of_old_tool_uses_fold_into_the_same_rows() {
    let dir = tempfile::tempdir().unwrap();
    let (log_dir, path) = (dir.path().join("log"), dir.path().join("memory.db"));
    let mut writer = Writer::new(&log_dir);
    for number in 0..20 {
        writer.session(number);
    }
    let raw_before_us = Some(writer.at_us - 200_000_000);
    writer.add(LogCompacted { raw_before_us, ..LogCompacted::default() });
    let log = Log::open(&log_dir, LogOptions::default()).unwrap();
    let mut store = Store::open(&path, Options::default()).unwrap();
    store.catch_up(&log, |_| {}).unwrap();
    let before = dump(&store);
    let size = |log: &Log| log.segments().unwrap().iter().map(|info| info.bytes).sum::<u64>();
    let bytes = size(&log);
    assert!(compact(&log_dir, &mut store, 1) > 30);
    assert!(size(&log) < bytes);
    assert_same_text(&rebuilt_rows(&log), &before);
    // Settled events are not pending any more, others are.
    let settled = store.dump("select sum(is_settled), sum(not is_settled) from tool_uses").unwrap();
    assert!(!settled.starts_with("0|") && !settled.ends_with("|0\n"), "{settled}");
}

#[test]
fn compacted_events_cannot_be_undone() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = Writer::new(dir.path());
    writer.session(2);
    let forget = || Forgotten { session: "session-2".into(), ..Forgotten::default() };
    let forgetting = writer.add(forget());
    let log = Log::open(dir.path(), LogOptions::default()).unwrap();
    let mut store = Store::in_memory().unwrap();
    store.fold(&log, |_| true).unwrap();
    writer.add(LogCompacted::default());
    let undo = || Forgotten { undoes: Some(forgetting), ..Forgotten::default() };
    writer.add(undo());
    let folded = store.fold(&log, |_| true).unwrap();
    assert_eq!(folded.state, FoldState::Complete, "nothing is restored");
    let before = dump(&store);
    assert_eq!(rebuilt_rows(&log), before);
    // A later one still is.
    writer.session(5);
    let later = writer.add(Forgotten { session: "session-5".into(), ..Forgotten::default() });
    writer.add(Forgotten { undoes: Some(later), ..Forgotten::default() });
    store.catch_up(&log, |_| {}).unwrap();
    assert_eq!(store.dump("select count(*) from prompts").unwrap(), "3\n");
    assert_eq!(rebuilt_rows(&log), dump(&store));
}
