use super::*;
use crate::{
    Store,
    test_log::{TestLog, titled},
};
use claude_mem_events::{Event, MemoryAdded};

fn remember(scene: &mut TestLog, title: &str, text: &str) {
    let (title, text) = (title.into(), text.into());
    scene.add(Event::MemoryAdded(MemoryAdded { title, text, ..MemoryAdded::default() }));
}

fn searched(store: &Store, query: &str) -> String {
    searched_as(store, &Search { query: query.into(), ..Search::default() })
}

fn searched_as(store: &Store, search: &Search) -> String {
    let found = store.search(search).unwrap();
    found.hits.iter().map(|hit| hit.name.to_string()).collect::<Vec<_>>().join(" ")
}

fn notes(texts: &[&str]) -> Store {
    let mut scene = TestLog::new();
    for text in texts {
        remember(&mut scene, "", text);
    }
    scene.fold()
}

#[test]
fn memories_are_found_by_the_words_people_use() {
    let store = notes(&[
        "The connection pool was exhausted because handlers never released their connections.",
        "Chose readReply over a full parser; see src/agent/read_reply.rs and `ParseError`.",
        "Café naïveté: übergroß.",
        "記憶は日本語でも検索できる",
        "ฉันจำได้ว่าเขาไปตลาด",
        "Released version 10 of the parser.",
    ]);
    let table = [
        ("why were the handlers not releasing connections?", "1 6"),
        ("\"connection pool\"", "1"),
        ("\"pool connection\"", ""),
        ("exhaust*", "1"),
        ("release parser", "6 1 2"),
        ("+release parser", "6 1"),
        ("release -parser", "1"),
        ("read_reply", "2"),
        ("readReply", "2"),
        ("parse error", "2"),
        ("src/agent/read_reply.rs", "2"),
        ("cafe UBERGROSS", "3"),
        ("日本", "4"),
        ("憶", "4"),
        ("る", "4"),
        ("本日", ""),
        ("จำได้", "5"),
        ("the of", "6 1"),
        ("AND OR NOT NEAR( \"", ""),
    ];
    for (query, expected) in table {
        assert_eq!(searched(&store, query), expected, "{query}");
    }
}

#[test]
fn what_finds_nothing_gives_a_hint() {
    let store = notes(&["something"]);
    for query in ["", "?!", "-something", "missing", &"x ".repeat(6000)] {
        let search = Search { query: query.into(), offset: 0, ..Search::default() };
        let found = store.search(&search).unwrap();
        assert_eq!(found.hits.is_empty(), found.hint.is_some(), "{query:.20}");
        assert_eq!(found.hits.is_empty(), !query.is_empty(), "{query:.20}");
    }
    let search = Search { project: Some("none".into()), ..Search::default() };
    let hint = store.search(&search).unwrap().hint;
    assert_eq!(hint.as_deref(), Some("no project is called `none`"));
}

/// Two projects, two sessions, all kinds.
fn mixed() -> Store {
    let mut scene = TestLog::new();
    scene.prompt("make the parser fast");
    let tool = scene.tool("Edit", r#"{"file_path":"/p/src/parser.rs"}"#);
    let stop = scene.stop();
    let reply = "<observation><type>bugfix</type><title>parser is fast</title><concepts><concept>speed</concept></concepts>
        <files_modified><file>src/parser.rs</file></files_modified></observation>
        <summary><request>fast parser</request><completed>the parser is fast</completed></summary>";
    scene.reply(&[tool, stop], reply);
    scene.envelope.project.key = "other".into();
    scene.envelope.project.label = "q".into();
    scene.envelope.session = "t".into();
    let tool = scene.tool("Read", "{}");
    scene.reply(&[tool], &titled("another parser"));
    scene.fold()
}

#[test]
fn filters_keep_what_was_asked_for() {
    let store = mixed();
    let parser = || Search { query: "parser".into(), order: Order::Oldest, ..Search::default() };
    let table = [
        (parser(), "P1 1 S1 2"),
        (Search { project: Some("p".into()), ..parser() }, "P1 1 S1"),
        (Search { project: Some("other".into()), ..parser() }, "2"),
        (Search { kinds: vec![Kind::Summary], ..parser() }, "S1"),
        (Search { types: vec!["bugfix".into()], ..parser() }, "1"),
        (Search { concepts: vec!["Speed".into()], ..parser() }, "1"),
        (Search { files: vec!["src".into()], ..parser() }, "1 S1"),
        (Search { files: vec!["parser.rs".into()], ..parser() }, "1 S1"),
        (Search { files: vec!["arser.rs".into()], ..parser() }, ""),
        (Search { session: Some("t".into()), ..parser() }, "2"),
        (Search { limit: 1, offset: 1, ..parser() }, "1"),
        (Search { order: Order::Newest, limit: 1, ..parser() }, "2"),
        (Search { since_us: Some(crate::test_log::BEGIN_US + 5_000_000), ..parser() }, "2"),
        (Search { until_us: Some(crate::test_log::BEGIN_US + 2_000_000), ..parser() }, "P1"),
        (Search { query: String::new(), types: vec!["feature".into()], ..parser() }, "2"),
        (Search { query: String::new(), limit: 2, ..parser() }, "P1 1"),
    ];
    for (search, expected) in table {
        assert_eq!(searched_as(&store, &search), expected, "{search:?}");
    }
}

#[test]
fn newer_memories_come_first_only_where_scores_are_close() {
    let store =
        notes(&["a torn log", "the log was torn, and so on, at quite some length", "a torn log"]);
    assert_eq!(searched(&store, "torn log"), "3 1 2");
}

#[test]
fn the_words_of_placeholders_are_not_found() {
    let store = notes(&["plan [redacted:private] of the cart", "a private cart"]);
    assert_eq!(searched(&store, "private"), "2");
    assert_eq!(searched(&store, "redacted"), "");
    assert_eq!(searched(&store, "plan"), "1");
}

#[test]
fn a_search_explains_itself() {
    let search =
        Search { query: "the fast -slow parser".into(), is_explained: true, ..Search::default() };
    let found = mixed().search(&search).unwrap();
    assert_eq!(found.query.dropped, ["the"]);
    let [observations, ..] = &found.explanation[..] else { panic!("{found:?}") };
    assert_eq!(observations.expression, r#"(("fast" OR "parser")) NOT ("slow")"#);
    let rows: Vec<f64> = observations.terms.iter().map(|term| term.rows).collect();
    assert_eq!((rows, observations.matched), (vec![1.0, 2.0], 2));
    let score = found.hits[0].explanation.as_ref().unwrap();
    assert!(
        ((score.terms.iter().sum::<f64>() + score.together) * score.met - score.total).abs() < 1e-9
    );
}

#[test]
fn common_words_do_not_hide_what_is_rare() {
    let mut scene = TestLog::new();
    for number in 0..6000 {
        let text = match number {
            10 => "the common parser was rewritten by a wizard",
            20 => "wizard",
            _ => "common parser notes",
        };
        remember(&mut scene, "", text);
    }
    let mut store = Store::in_memory().unwrap();
    store.fold_events(&scene.events).unwrap();
    assert!(searched(&store, "common wizard") == "21 11");
    let first = searched(&store, "+common +parser");
    assert!(first.starts_with("6000 5999"), "{first}");
}
