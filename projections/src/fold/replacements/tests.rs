//! Tests of replacements.

use crate::{
    Store,
    search::{Kind, MemoryId, Recall},
    test_log::TestLog,
};
use claude_mem_events::{Forgotten, MemoryRevised, ObservationRef, Revision};

const EARLIER: &str = "Chose Postgres for the ledger";
const LATER: &str = "Moved the ledger off Postgres to SQLite";

fn decision(title: &str) -> String {
    format!("<observation><type>decision</type><title>{title}</title></observation>")
}

fn edit(scene: &mut TestLog, file: &str) -> [u8; 16] {
    scene.prompt("go");
    scene.tool("Edit", &format!(r#"{{"file_path":"/p/{file}"}}"#))
}

/// Ids of the decisions that sessions are given, and the marks of the others.
fn state(store: &Store) -> String {
    store.check_index().unwrap();
    let ids = store.dump("select id from visible_observations order by id").unwrap();
    let line = |id: &str| {
        let name = MemoryId { kind: Kind::Observation, id: id.parse().unwrap() };
        let retired = store.marks(name).unwrap().retired;
        retired.map_or_else(|| id.to_owned(), |retired| format!("{id} {retired}"))
    };
    ids.lines().map(line).collect::<Vec<_>>().join(", ")
}

/// Two decisions about one file in two sessions; returns the events of their replies.
fn scene() -> (TestLog, [[u8; 16]; 2]) {
    let mut scene = TestLog::new();
    let tool = edit(&mut scene, "db.rs");
    let earlier = scene.reply(&[tool], &decision(EARLIER));
    scene.envelope.session = "later".into();
    let tool = edit(&mut scene, "db.rs");
    let later = scene.reply(&[tool], &decision(LATER));
    (scene, [earlier, later])
}

const REPLACED: &str = "1 superseded by #2, 2";

#[test]
fn a_replaced_decision_is_found_and_not_given() {
    let (scene, _) = scene();
    let store = scene.fold();
    assert_eq!(state(&store), REPLACED);
    let found = store.dump("select rowid from observations_fts ('postgres') order by 1").unwrap();
    assert_eq!(found, "1\n2\n");
    let (prompt, until_us) = ("is the ledger in Postgres?", i64::MAX as u64);
    let recall = Recall { prompt, project: "k", until_us, limit: 5, ..Recall::default() };
    assert_eq!(store.recall(&recall, None).unwrap(), [2]);
}

#[test]
fn the_time_of_the_work_counts_and_not_that_of_the_distilling() {
    let mut scene = TestLog::new();
    let (first, second) = (edit(&mut scene, "db.rs"), edit(&mut scene, "db.rs"));
    scene.reply(&[second], &decision(LATER));
    scene.reply(&[first], &decision(EARLIER));
    assert_eq!(state(&scene.fold()), "1, 2 superseded by #1");
}

#[test]
fn decisions_of_other_files_or_turns_or_kinds_stay() {
    let change = decision(LATER).replace("decision", "change");
    for (file, later) in [("cart.rs", decision(LATER)), ("db.rs", change)] {
        let mut scene = TestLog::new();
        let tool = edit(&mut scene, "db.rs");
        scene.reply(&[tool], &decision(EARLIER));
        let tool = edit(&mut scene, file);
        scene.reply(&[tool], &later);
        assert_eq!(state(&scene.fold()), "1, 2", "{file}");
    }
    let mut scene = TestLog::new();
    let tool = edit(&mut scene, "db.rs");
    scene.reply(&[tool], &(decision(EARLIER) + &decision(LATER)));
    assert_eq!(state(&scene.fold()), "1, 2", "one turn weighs both");
}

#[test]
fn marks_by_hand_win() {
    let revise = |scene: &mut TestLog, event, revision| {
        let target = ObservationRef { event, number: 1 };
        scene.add(MemoryRevised { target, revision, via: "cli".into() });
    };
    let edited = || Revision::Edited { title: None, text: Some("still true".into()), kind: None };
    for revision in [Revision::Restored, Revision::Pinned, edited()] {
        let (mut scene, [earlier, _]) = scene();
        revise(&mut scene, earlier, revision.clone());
        assert_eq!(state(&scene.fold()), "1, 2", "{revision:?}");
    }
    let (mut scene, [_, later]) = scene();
    revise(&mut scene, later, Revision::MarkedWrong { because: String::new() });
    assert_eq!(state(&scene.fold()), "1, 2 wrong");
    revise(&mut scene, later, Revision::Restored);
    assert_eq!(state(&scene.fold()), REPLACED);
    revise(&mut scene, later, edited());
    assert_eq!(state(&scene.fold()), REPLACED, "its first text is compared");
}

#[test]
fn a_deleted_or_withdrawn_decision_replaces_nothing() {
    let (mut forgotten, [_, later]) = scene();
    forgotten.add(Forgotten { events: vec![later], ..Forgotten::default() });
    assert_eq!(state(&forgotten.fold()), "1");
    let (mut corrected, _) = scene();
    let tool = edit(&mut corrected, "db.rs");
    corrected.reply(&[tool], &format!("<corrects>{LATER}</corrects>"));
    assert_eq!(state(&corrected.fold()), "1, 2 withdrawn");
    let (mut again, _) = scene();
    again.start(1, "v1");
    let tool = again.events[4].id;
    again.reply_in(1, "v1", &[*tool.as_bytes()], &decision("The ledger needs a backup"));
    again.finish(1, true);
    assert_eq!(state(&again.fold()), "1, 3");
    again.finish(0, true);
    assert_eq!(state(&again.fold()), REPLACED);
}

#[test]
fn a_lesson_that_is_learned_again_counts_once() {
    let mut scene = TestLog::new();
    for (session, title) in [
        ("a", "Use `bun test`, not `npm test`: no such script"),
        ("b", "Use `bun test`, not `npm test`"),
        ("b", "Use `bun test`, not `npx vitest`"),
        ("c", "Use `bun test`, not `npm test`: Missing script"),
        ("c", "Use tabs, not spaces"),
        ("d", "Use tabs, not spaces"),
        ("d", "`pytest` fails: no module"),
        ("e", "`pytest` fails: no module"),
        ("e", "`pytest` fails: 2 tests"),
    ] {
        scene.envelope.session = session.into();
        let tool = edit(&mut scene, "a.ts");
        let lesson = decision(title).replace("decision", "discovery");
        scene.reply(&[tool], &lesson);
    }
    assert_eq!(
        state(&scene.fold()),
        "1 superseded by #4, 2 superseded by #4, 3, 4, 5, 6, 7 superseded by #8, 8, 9"
    );
}
