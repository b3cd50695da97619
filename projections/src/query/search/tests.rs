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
fn a_query_without_results_gives_a_hint() {
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
fn filters_select_the_requested_memories() {
    let store = mixed();
    let parser = || Search { query: "parser".into(), order: Order::Oldest, ..Search::default() };
    let listed = || Search { query: String::new(), ..parser() };
    let table = [
        (parser(), "1 2"),
        (Search { project: Some("p".into()), ..parser() }, "1"),
        (Search { project: Some("other".into()), ..parser() }, "2"),
        (Search { kinds: vec![Kind::Prompt], ..parser() }, "P1"),
        (Search { kinds: vec![Kind::Summary, Kind::Prompt], ..parser() }, "S1"),
        (Search { kinds: vec![Kind::Summary], ..parser() }, "S1"),
        (Search { types: vec!["bugfix".into()], ..parser() }, "1"),
        (Search { concepts: vec!["Speed".into()], ..parser() }, "1"),
        (Search { files: vec!["src".into()], ..parser() }, "1"),
        (Search { files: vec!["parser.rs".into()], ..parser() }, "1"),
        (Search { files: vec!["none.rs".into(), "parser.rs".into()], ..parser() }, "1"),
        (Search { files: vec!["arser.rs".into()], ..parser() }, ""),
        (Search { files: vec!["src".into()], ..listed() }, "1 S1"),
        (Search { session: Some("t".into()), ..parser() }, "2"),
        (Search { limit: 1, offset: 1, ..parser() }, "2"),
        (Search { order: Order::Newest, limit: 1, ..parser() }, "2"),
        (Search { since_us: Some(crate::test_log::BEGIN_US + 5_000_000), ..parser() }, "2"),
        (Search { until_us: Some(crate::test_log::BEGIN_US + 2_000_000), ..parser() }, "P1"),
        (Search { types: vec!["feature".into()], ..listed() }, "2"),
        (Search { limit: 2, ..listed() }, "P1 1"),
        (listed(), "P1 1 S1 2"),
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
    assert!(score.bm25 > 0.0 && score.share >= 1.0 && score.total >= score.words, "{score:?}");
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

fn reply(scene: &mut TestLog, sources: &[[u8; 16]], titles: &[&str]) {
    let observations: String = titles.iter().map(|title| titled(title)).collect();
    scene.reply(sources, &observations);
}

#[test]
fn a_turn_is_one_hit_shown_by_the_fullest_of_its_best_observations() {
    let mut scene = TestLog::new();
    scene.prompt("why is the parser slow, the parser of tables?");
    let tool = scene.tool("Read", "{}");
    reply(
        &mut scene,
        &[tool],
        &["tables are long and the parser is here", "slow parser of tables"],
    );
    scene.prompt("make the otter swim in the parser");
    let tool = scene.tool("Read", "{}");
    reply(&mut scene, &[tool], &["a walrus was taught"]);
    scene.prompt("the parser has an otter");
    let store = scene.fold();
    let found = |query: &str| {
        let search = Search { query: query.into(), ..Search::default() };
        store.search(&search).unwrap()
    };
    // The third prompt is all that is known of its turn. Of the second, an observation is known.
    let hits = found("parser").hits;
    let shown: Vec<_> = hits.iter().map(|hit| (hit.name.to_string(), names(&hit.also))).collect();
    let expected = [("1", "P1 2"), ("P3", ""), ("3", "P2")];
    assert_eq!(shown, expected.map(|(name, also)| (name.to_owned(), also.to_owned())));
    assert_eq!(found("slow parser of tables").hits[0].name.to_string(), "2", "much better");
    let swims = &found("swim").hits[0];
    assert_eq!((swims.name.to_string(), names(&swims.also)), ("3".into(), "P2".into()));
    assert_eq!(
        (&*swims.title, &*swims.snippet),
        ("a walrus was taught", "make the otter swim in the parser")
    );
    assert_eq!(found("parser").matched, 5);
    let prompts = Search { query: "parser".into(), kinds: vec![Kind::Prompt], ..Search::default() };
    assert_eq!(store.search(&prompts).unwrap().hits.len(), 3);
}

fn names(memories: &[MemoryId]) -> String {
    memories.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_superseded_observation_represents_a_turn_only_if_nothing_else_matches() {
    let mut scene = TestLog::new();
    let turn = |scene: &mut TestLog, reply: &str| {
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], reply);
    };
    turn(&mut scene, &(titled("The walrus walrus leaks") + &titled("One walrus in the parser")));
    turn(&mut scene, &titled("The otter otter leaks"));
    turn(&mut scene, &titled("In the parser, an otter was seen among many other animals"));
    let corrects =
        "<corrects>The walrus walrus leaks</corrects><corrects>The otter otter leaks</corrects>";
    turn(&mut scene, corrects);
    let store = scene.fold();
    assert_eq!(searched(&store, "walrus"), "2");
    assert_eq!(searched(&store, "otter"), "4 3", "it is found, behind what holds");
}

#[test]
fn what_replaced_a_superseded_observation_comes_before_it_although_no_word_matches() {
    let mut scene = TestLog::new();
    let mut turn = |reply: &str| {
        scene.prompt("go");
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], reply);
    };
    turn(&titled("The ledger uses Postgres"));
    let replaced = "<title>SQLite is enough</title><corrects>The ledger uses Postgres</corrects>";
    turn(&format!("<observation><type>feature</type>{replaced}</observation>"));
    turn(&titled("Postgres was never installed"));
    let store = scene.fold();
    assert_eq!(searched(&store, "ledger"), "2 1");
    assert_eq!(searched(&store, "Postgres"), "3 2 1");
    let decisions = Search { types: vec!["decision".into()], ..Search::default() };
    assert_eq!(searched_as(&store, &Search { query: "ledger".into(), ..decisions }), "");
}

#[test]
fn a_hint_names_the_known_types_and_an_open_quote() {
    let mut scene = TestLog::new();
    let tool = scene.tool("Bash", "{}");
    scene.reply(&[tool], &titled("The ledger"));
    let store = scene.fold();
    let hint = |query: &str, types: &[&str]| {
        let types = types.iter().map(|type_| (*type_).to_owned()).collect();
        let search = Search { query: query.into(), types, ..Search::default() };
        store.search(&search).unwrap().hint.unwrap_or_default()
    };
    let unknown = "no observation has the type `nosuch`; there are feature";
    assert_eq!([hint("ledger", &["nosuch"]), hint("", &["nosuch"])], [unknown, unknown]);
    assert!(hint("\"the ledger", &[]).contains("not closed"));
    assert_eq!(hint("ledger", &["feature"]), "");
}

#[test]
fn a_superseded_observation_with_its_mark_is_shown_before_a_summary_that_has_none() {
    let mut scene = TestLog::new();
    let mut turn = |reply: &str| {
        scene.prompt("choose a store for the ledger");
        let tool = scene.tool("Bash", "{}");
        scene.reply(&[tool], reply);
    };
    let summary = "<summary><request>A store for the ledger, the ledger</request></summary>";
    turn(&(titled("The ledger uses Postgres") + summary));
    turn("<corrects>The ledger uses Postgres</corrects>");
    let found = scene.fold().search(&Search { query: "ledger".into(), ..Search::default() });
    let hit = &found.unwrap().hits[0];
    assert_eq!(
        (hit.marked_title(), names(&hit.also)),
        ("[withdrawn] The ledger uses Postgres".into(), "P1 S1".into())
    );
}

#[test]
fn an_observation_with_an_excluded_word_does_not_represent_its_prompt() {
    let mut scene = TestLog::new();
    scene.prompt("move the ledger to something simple");
    let tool = scene.tool("Read", "{}");
    reply(&mut scene, &[tool], &["Accounts are in SQLite now"]);
    let store = scene.fold();
    assert_eq!(searched(&store, "ledger"), "1");
    assert_eq!(searched(&store, "ledger -sqlite"), "P1");
}

#[test]
fn a_prompt_of_a_running_turn_belongs_to_that_turn() {
    let mut scene = TestLog::new();
    let prompt = |scene: &mut TestLog, text: &str| {
        let prompt = claude_mem_events::PromptSubmitted {
            prompt: text.into(),
            prompt_id: "p1".into(),
            ..claude_mem_events::PromptSubmitted::default()
        };
        scene.add(Event::PromptSubmitted(prompt))
    };
    prompt(&mut scene, "sort the tables");
    prompt(&mut scene, "and the rows of tables");
    let tool = scene.tool("Read", "{}");
    reply(&mut scene, &[tool], &["tables are sorted"]);
    let hits =
        scene.fold().search(&Search { query: "tables".into(), ..Search::default() }).unwrap().hits;
    assert_eq!((hits.len(), hits[0].name.to_string()), (1, "1".into()), "{hits:#?}");
    assert_eq!(hits[0].also.len(), 2, "{hits:#?}");
}

#[test]
fn a_word_finds_memories_while_it_is_typed() {
    let store = notes(&["the webhook is retried", "a new deployment of authentication"]);
    let words = ["webhook is", "deployment of", "authentication deploy", "retried webhook"];
    for text in words {
        for end in 3..=text.len() {
            let search = Search { query: text[..end].into(), is_typing: true, ..Search::default() };
            let found = store.search(&search).unwrap();
            let expected = if text.contains("deploy") { "2" } else { "1" };
            assert_eq!(names(&[found.hits[0].name]), expected, "{}", &text[..end]);
        }
    }
    let typed = |query: &str| {
        let search = Search { query: query.into(), is_typing: true, ..Search::default() };
        store.search(&search).unwrap().hits.len()
    };
    assert_eq!((typed("webho"), typed("webho "), typed("webx"), typed("xyzzy")), (1, 0, 0, 0));
    assert_eq!(searched(&store, "webho"), "");
}

#[test]
fn a_misspelled_word_brings_a_suggestion() {
    let mut scene = TestLog::new();
    scene.envelope.project.key = "p".into();
    remember(&mut scene, "Timezones of the ledger", "Invoices are dated in UTC.");
    remember(&mut scene, "", "The timeout of the ledger");
    scene.envelope.project.key = "q".into();
    scene.envelope.project.label = "q".into();
    remember(&mut scene, "", "walrus");
    let store = scene.fold();
    let table = [
        ("timzone", Some("timezones")),
        ("the TIMZONE, ledger", Some("the timezones, ledger")),
        ("ledgre", Some("ledger")),
        ("invoises timeuot", Some("invoices timeout")),
        ("timezone", None),
        ("walrsu", None),
        ("utd", None),
        ("xyzzy", None),
    ];
    for (query, expected) in table {
        let project = Some("p".into());
        let search = Search { query: query.into(), project, ..Search::default() };
        let found = store.search(&search).unwrap();
        assert_eq!(found.suggestion.as_deref(), expected, "{query}");
        let hint = expected.map(|expected| format!("did you mean `{expected}`?"));
        assert!(hint.is_none() || found.hint == hint, "{found:?}");
    }
    let search = Search { query: "walrsu".into(), ..Search::default() };
    assert_eq!(store.search(&search).unwrap().suggestion.as_deref(), Some("walrus"));
}

#[test]
fn counts_are_true_or_marked_as_a_lower_bound() {
    let mut scene = TestLog::new();
    for number in 0..5200 {
        remember(&mut scene, "", if number < 5150 { "common" } else { "rare" });
    }
    let mut store = Store::in_memory().unwrap();
    store.fold_events(&scene.events).unwrap();
    let counted = |query: &str, limit: usize| {
        let search = Search { query: query.into(), limit, ..Search::default() };
        let found = store.search(&search).unwrap();
        (found.hits.len(), found.matched, found.is_capped, found.has_more)
    };
    assert_eq!(counted("rare", 20), (20, 50, false, true));
    assert_eq!(counted("rare", 50), (50, 50, false, false));
    assert_eq!(counted("common", 20), (20, 2000, true, true));
    assert_eq!(counted("", 20), (20, 20, true, true));
    assert_eq!(counted("", 6000), (5200, 5200, false, false));
}

#[test]
fn a_hit_names_a_file_and_the_tokens_it_takes() {
    let store = mixed();
    let search = Search { kinds: vec![Kind::Observation], ..Search::default() };
    let hits = store.search(&search).unwrap().hits;
    let shown: Vec<_> = hits.iter().map(|hit| (hit.file.as_deref(), hit.tokens)).collect();
    assert_eq!(shown, [(None, 4), (Some("src/parser.rs"), 4)]);
}
