//! Tests of revisions.

use crate::{
    ContextNote, ContextObservation, ContextQuery, Retired, Store,
    search::{Kind, MemoryId, Recall},
    test_log::{TestLog, titled},
};
use claude_mem_events::{
    Forgotten, Id, LogCompacted, MemoryAdded, MemoryRevised, ObservationRef, Revision,
};

fn named(event: [u8; 16], number: u32) -> ObservationRef {
    ObservationRef { event, number }
}

fn revise(scene: &mut TestLog, target: ObservationRef, revision: Revision) -> [u8; 16] {
    scene.add(MemoryRevised { target, revision, via: "cli".into() })
}

fn wrong(because: &str) -> Revision {
    Revision::MarkedWrong { because: because.into() }
}

fn edited(title: Option<&str>, text: Option<&str>) -> Revision {
    let (title, text) = (title.map(Into::into), text.map(Into::into));
    Revision::Edited { title, text, kind: None }
}

/// Every visible observation with its marks.
fn state(store: &Store) -> String {
    store.check_index().unwrap();
    let mut lines = Vec::new();
    for id in store.dump("select id from visible_observations order by id").unwrap().lines() {
        let name = MemoryId { kind: Kind::Observation, id: id.parse().unwrap() };
        let title = store.dump(&format!("select title from observations where id = {id}")).unwrap();
        let marks = store.marks(name).unwrap();
        let mut line = format!("{id} {}", title.trim());
        for (is_set, mark) in [(marks.is_pinned, " pinned"), (marks.is_edited, " edited")] {
            line += if is_set { mark } else { "" };
        }
        if let Some(retired) = marks.retired {
            line = format!("{line} ({retired})");
        }
        lines.push(line);
    }
    lines.join(" | ")
}

fn found(store: &Store, word: &str) -> String {
    let sql = format!("select rowid from observations_fts ('{word}') order by 1");
    store.dump(&sql).unwrap().replace('\n', " ")
}

/// A session with a turn of one tool use, and a reply with two observations.
fn scene() -> (TestLog, [u8; 16], [u8; 16]) {
    let mut scene = TestLog::new();
    scene.prompt("go");
    let tool = scene.tool("Bash", "{}");
    let text = "<observation><type>discovery</type><title>Redis is needed</title>\
                <subtitle>by tests</subtitle><narrative>The tests start redis first.</narrative>\
                <facts><fact>port 6379</fact></facts></observation>";
    let reply = scene.reply(&[tool], &(text.to_owned() + &titled("other")));
    (scene, tool, reply)
}

#[test]
fn an_edited_row_is_found_by_its_new_text_alone() {
    let (mut scene, _, reply) = scene();
    revise(&mut scene, named(reply, 1), edited(Some("Valkey is needed"), None));
    let store = scene.fold();
    assert_eq!(state(&store), "1 Valkey is needed edited | 2 other");
    assert_eq!((found(&store, "valkey"), found(&store, "6379")), ("1 ".into(), "1 ".into()));
    revise(&mut scene, named(reply, 1), edited(None, Some("Start valkey.")));
    let store = scene.fold();
    let text = "select type, title, subtitle, narrative, facts from observations where id = 1";
    assert_eq!(store.dump(text).unwrap(), "discovery|Valkey is needed||Start valkey.|\n");
    assert_eq!((found(&store, "redis"), found(&store, "6379")), (String::new(), String::new()));
}

#[test]
fn the_latest_revision_wins() {
    let (mut scene, _, reply) = scene();
    let target = named(reply, 1);
    for (revision, expected) in [
        (Revision::Pinned, "1 Redis is needed pinned | 2 other"),
        (wrong("never was"), "1 Redis is needed pinned (wrong: never was) | 2 other"),
        (Revision::Unpinned, "1 Redis is needed (wrong: never was) | 2 other"),
        (Revision::SupersededBy(named(reply, 2)), "1 Redis is needed (superseded by #2) | 2 other"),
        (wrong(""), "1 Redis is needed (wrong) | 2 other"),
        (Revision::Restored, "1 Redis is needed | 2 other"),
    ] {
        revise(&mut scene, target, revision);
        assert_eq!(state(&scene.fold()), expected);
    }
}

#[test]
fn a_retired_observation_is_found_but_not_given_as_context() {
    let (mut scene, _, reply) = scene();
    let in_context = |store: &Store| {
        let prompt = "do the tests need redis on port 6379?";
        let until_us = i64::MAX as u64;
        let recall = Recall { prompt, project: "k", until_us, limit: 5, ..Recall::default() };
        store.recall(&recall, None).unwrap()
    };
    assert_eq!(in_context(&scene.fold()), [1]);
    revise(&mut scene, named(reply, 1), wrong("no"));
    let store = scene.fold();
    assert_eq!((in_context(&store), found(&store, "redis")), (Vec::new(), "1 ".into()));
    let marks = store.marks("1".parse().unwrap()).unwrap();
    assert!(
        matches!(marks.retired, Some(Retired::Wrong { because: Some(why), .. }) if why == "no")
    );
    let recap = store.session_recap(1, None, 10).unwrap();
    assert_eq!(recap.iter().map(|entry| entry.title.as_str()).collect::<Vec<_>>(), ["other"]);
}

#[test]
fn the_user_overrules_a_correction_of_the_model() {
    let mut scene = TestLog::new();
    scene.prompt("go");
    let (one, two) = (scene.tool("Bash", "{}"), scene.tool("Bash", "{}"));
    let first = scene.reply(&[one], &titled("a"));
    scene.reply(&[two], "<observation><title>b</title><corrects>a</corrects></observation>");
    assert_eq!(state(&scene.fold()), "1 a (superseded by #2) | 2 b");
    revise(&mut scene, named(first, 1), Revision::Restored);
    assert_eq!(state(&scene.fold()), "1 a | 2 b");
}

#[test]
fn an_observation_marked_wrong_is_retired_when_distilled_again() {
    let (mut scene, tool, reply) = scene();
    revise(&mut scene, named(reply, 1), wrong("never was"));
    scene.start(1, "v1");
    // The same title; nearly the same text; something else.
    let same = "<observation><title>redis is  needed</title></observation>";
    let near = "\
        <observation><title>Redis needed</title><subtitle>is by tests</subtitle><narrative>The \
        tests start redis first.</narrative><facts><fact>port 6379</fact></facts></observation>";
    scene.reply_in(1, "v1", &[tool], &(same.to_owned() + near + &titled("new")));
    assert_eq!(state(&scene.fold()), "1 Redis is needed (wrong: never was) | 2 other");
    scene.finish(1, true);
    let refused =
        "3 redis is needed (wrong: never was) | 4 Redis needed (wrong: never was) | 5 new";
    assert_eq!(state(&scene.fold()), refused);
    // Marked after it was distilled again, the earlier one is refused, too.
    scene.finish(0, true);
    assert_eq!(state(&scene.fold()), "1 Redis is needed (wrong: never was) | 2 other");
    revise(&mut scene, named(reply, 1), Revision::Restored);
    scene.finish(1, true);
    assert_eq!(state(&scene.fold()), "3 redis is needed | 4 Redis needed | 5 new");
    // The same words about other events do not repeat it.
    revise(&mut scene, named(reply, 1), wrong("never was"));
    let later = scene.tool("Bash", "{}");
    scene.reply(&[later], &titled("Redis is needed"));
    assert_eq!(state(&scene.fold()), format!("{refused} | 6 Redis is needed"));
}

#[test]
fn edited_and_pinned_rows_survive_a_reprocessing() {
    let (mut scene, tool, reply) = scene();
    revise(&mut scene, named(reply, 1), edited(Some("Valkey is needed"), None));
    revise(&mut scene, named(reply, 2), Revision::Pinned);
    scene.start(1, "v1");
    scene.reply_in(1, "v1", &[tool], &(titled("Redis is needed") + &titled("new")));
    scene.finish(1, true);
    let kept = "1 Valkey is needed edited | 2 other pinned \
                | 3 Redis is needed (superseded by #1) | 4 new";
    assert_eq!(state(&scene.fold()), kept);
    revise(&mut scene, named(reply, 2), Revision::Unpinned);
    let kept = "1 Valkey is needed edited | 3 Redis is needed (superseded by #1) | 4 new";
    assert_eq!(state(&scene.fold()), kept);
    scene.add(LogCompacted { drops_superseded: true, ..LogCompacted::default() });
    assert_eq!(state(&scene.fold()), kept);
}

#[test]
fn a_revision_may_come_before_what_it_revises() {
    // As in another log that is folded first.
    let (mut later, tool, reply) = scene();
    let target = named(reply, 1);
    revise(&mut later, target, edited(Some("Valkey is needed"), None));
    revise(&mut later, target, Revision::Pinned);
    let expected = state(&later.fold());
    let mut events = later.events.clone();
    let at = events.iter().position(|event| *event.id.as_bytes() == reply).unwrap();
    let revisions = events.split_off(at + 1);
    let last = events.pop().unwrap();
    events.extend(revisions.into_iter().rev());
    events.push(last);
    for (event, at) in events.iter_mut().zip(1..) {
        event.seq = claude_mem_events::Seq::new(1, at);
    }
    let mut early = TestLog::new();
    early.events = events;
    assert_eq!(state(&early.fold()), expected);
    let _ = tool;
}

type Forget = fn([u8; 16], [u8; 16]) -> Forgotten;

#[test]
fn forgetting_an_observation_forgets_its_revisions() {
    let left = |store: &Store| {
        let sql = "select (select count(*) from revisions), (select count(*) from originals),
                       (select count(*) from events where kind = 17 and forgotten_by is not null)";
        store.dump(sql).unwrap()
    };
    let forgets: [Forget; 3] = [
        |_, reply| Forgotten {
            rows: vec![format!("{}/1", Id::from_bytes(reply))],
            ..Forgotten::default()
        },
        |tool, _| Forgotten { events: vec![tool], ..Forgotten::default() },
        |_, _| Forgotten { session: "s".into(), ..Forgotten::default() },
    ];
    for forget in forgets {
        let (mut scene, tool, reply) = scene();
        scene.envelope.session = String::new();
        revise(&mut scene, named(reply, 1), edited(None, Some("my secret")));
        revise(&mut scene, named(reply, 1), wrong("it was secret"));
        scene.add(forget(tool, reply));
        assert_eq!(left(&scene.fold()), "0|0|2\n");
        // One that arrives later, from another machine, is forgotten as well.
        revise(&mut scene, named(reply, 1), wrong("it was secret"));
        let store = scene.fold();
        assert_eq!(left(&store), "0|0|3\n");
        assert_eq!(found(&store, "secret"), "");
    }
}

#[test]
fn a_forgotten_edit_restores_the_text() {
    let (mut scene, _, reply) = scene();
    let before = state(&scene.fold());
    let edit = revise(&mut scene, named(reply, 1), edited(Some("Valkey"), Some("my secret")));
    scene.add(Forgotten { events: vec![edit], ..Forgotten::default() });
    let store = scene.fold();
    assert_eq!(state(&store), before);
    assert_eq!((found(&store, "secret"), found(&store, "6379")), (String::new(), "1 ".into()));
}

#[test]
fn text_that_an_edit_removed_can_still_be_forgotten() {
    let (mut scene, _, reply) = scene();
    revise(&mut scene, named(reply, 1), edited(None, Some("nothing to see")));
    let store = scene.fold();
    let rows = store.forget_targets_by_text("6379").unwrap().rows;
    assert_eq!(rows, [format!("{}/1", Id::from_bytes(reply))]);
}

#[test]
fn what_claude_edits_or_pins_is_not_told_as_the_users() {
    let mut scene = TestLog::new();
    scene.prompt("go");
    let tool = scene.tool("Bash", "{}");
    let rule = "<observation><type>rule</type><title>Use tabs</title></observation>";
    let rule = scene.reply(&[tool], rule);
    scene.envelope.session = String::new();
    let note =
        MemoryAdded { text: "Ask first".into(), via: "cli".into(), ..MemoryAdded::default() };
    let note = scene.add(note);
    // Of each section the ids, with the authors that it names.
    let told = |scene: &TestLog| {
        let store = scene.fold();
        let wanted = ContextQuery {
            project: "k",
            root: "/p",
            until_us: u64::MAX >> 1,
            since: None,
            client: None,
            reads_auto_memory: false,
            types: &[],
            concepts: &[],
            observations_max: 0,
            sessions_max: 0,
        };
        let found = store.context_material(&wanted).unwrap();
        let ids = |rows: &[ContextObservation]| rows.iter().map(|row| row.id).collect::<Vec<_>>();
        let notes = |rows: &[ContextNote]| {
            let note =
                |row: &ContextNote| format!("{}{}", row.memory.id, row.marks.authors(&row.origin));
            rows.iter().map(note).collect::<Vec<_>>()
        };
        (ids(&found.by_hand), ids(&found.rules), notes(&found.noted), notes(&found.pinned))
    };
    let nobody = Vec::<String>::new;
    assert_eq!(told(&scene), (vec![2], vec![1], nobody(), nobody()));
    let mut revise = |target, revision, via: &str| {
        scene.add(MemoryRevised { target: named(target, 1), revision, via: via.into() });
        told(&scene)
    };
    revise(rule, edited(Some("Run evil"), None), "mcp");
    let noted = vec!["2, edited by a program over HTTP".into(), "1, edited by Claude".into()];
    let changed = revise(note, edited(None, Some("Run evil")), "http");
    assert_eq!(changed, (vec![], vec![], noted, nobody()));
    let pinned = vec!["1, edited by Claude, pinned by Claude".to_owned()];
    assert_eq!(revise(rule, Revision::Pinned, "mcp").3, pinned);
    revise(rule, edited(Some("Use tabs"), None), "viewer");
    revise(note, edited(None, Some("Ask first, always")), "cli");
    revise(rule, Revision::Unpinned, "mcp");
    assert_eq!(
        revise(note, Revision::Pinned, "cli"),
        (vec![], vec![1], nobody(), vec!["2".into()])
    );
}
