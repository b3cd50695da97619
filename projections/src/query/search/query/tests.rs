//! Tests of the query parser.

use super::*;
use crate::scan_counter;
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use rusqlite::Connection;

/// `+` for required, `-` for excluded, then the expression.
fn parsed(text: &str) -> String {
    let query = Query::parse(text);
    let term =
        |term: &Term| format!("{}{}", if term.is_required { "+" } else { "" }, term.expression());
    let mut all: Vec<String> = query.terms.iter().map(term).collect();
    all.extend(query.excluded.iter().map(|term| format!("-{}", term.expression())));
    all.join(", ")
}

#[test]
fn queries_are_parsed_as_intended() {
    let table = [
        ("Why did the login fail?", r#""login", "fail""#),
        ("to be or not to be", r#""to", "be", "or", "not""#),
        ("the", r#""the""#),
        (r#""connection pool" size"#, r#""connection pool", "size""#),
        (r#""no closing quote"#, r#""no closing quote""#),
        (r#"a"b"c"#, r#""b", "c""#),
        (
            r#"please check why the page says "no such cart" after login"#,
            r#""please", "check", "page", "says", "cart", "login""#,
        ),
        (
            r#""one two three four five six seven eight nine""#,
            r#""one two three four five six seven eight nine""#,
        ),
        (
            r#"one two three four five -six +seven eight* -"old api" **nine**"#,
            r#""one", "two", "three", "four", "five", "six", "seven", "eight", "old", "api", "nine""#,
        ),
        (
            "why does git commit -v fail on long messages in repositories",
            r#""git", "commit", "v", "fail", "long", "messages", "repositories""#,
        ),
        ("+must -not maybe", r#"+"must", "maybe", -"not""#),
        (r#"-"old api" new"#, r#""new", -"old api""#),
        ("+snake_case", r#"+"snake case""#),
        ("migr*", r#""migr" *"#),
        ("src/migr*", r#""migr" *, "src""#),
        ("*", ""),
        ("readReply", r#""readreply", "read", "reply""#),
        ("snake_case", r#""snake", "case", "snakecase""#),
        ("path/to/file.rs", r#""path", "file", "rs""#),
        ("a-b.c", r#""b", "c", "ab""#),
        ("--json", r#""json""#),
        ("commit -v", r#""commit", "v""#),
        ("exit code -11", r#""exit", "code", "11""#),
        ("https://git.example.com/acme/pull/7668", r#""pull", "7668""#),
        ("http://wiki.example.com/", r#""wiki", "example", "com""#),
        ("fail fails failed", r#""fail""#),
        ("Café", r#""café""#),
        ("日本語", r#"grams : "日本", grams : "本語""#),
        ("\"日本語\"", r#"grams : "日本 本語""#),
        ("+日本語", r#"+grams : "日本 本語""#),
        ("語", r#"grams : "語" *"#),
        ("Rustの記憶", r#""rust", grams : "記憶""#),
        ("怎么限制登录?", r#"grams : "限制", grams : "制登", grams : "登录""#),
        ("ログインはどうですか", r#"grams : "ログ", grams : "グイ", grams : "イン""#),
        ("どう", r#"grams : "どう""#),
        ("NEAR(a b) AND title:x OR {y} ^z", r#""near", "b", "title", "x", "z""#),
        ("'; drop table observations; --", r#""drop", "table", "observations""#),
        ("!!! ... ???", ""),
        ("", ""),
    ];
    for (text, expected) in table {
        assert_eq!(parsed(text), expected, "{text}");
    }
}

#[test]
fn words_next_to_each_other_are_pairs() {
    let pairs = |text: &str| {
        let query = Query::parse(text);
        let text = |at: usize| query.terms[at].text.clone();
        let pairs = query.pairs.iter().map(|(left, right)| text(*left) + "+" + &text(*right));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let table = [
        ("why did the login fail again", "login+fail"),
        ("read_reply fails", "read+reply reply+fails"),
        ("\"login fails\" -often", ""),
        ("fail fails", ""),
        ("记忆 login", ""),
    ];
    for (text, expected) in table {
        assert_eq!(pairs(text), expected, "{text}");
    }
}

#[test]
fn the_last_word_is_a_prefix_while_it_is_typed() {
    let typed = |text| {
        let query = Query::parse_as(text, true);
        query.terms.iter().map(Term::expression).collect::<Vec<_>>().join(", ")
    };
    let table = [
        ("webho", r#""webho" *"#),
        ("failing webho", r#""failing", "webho" *"#),
        ("failing webhook ", r#""failing", "webhook""#),
        ("failing w", r#""failing", "w""#),
        ("failing th", r#""failing", "th" *"#),
        ("failing the", r#""failing""#),
        ("the", r#""the" *"#),
        ("+read_rep", r#""read rep" *"#),
        ("read -rep", r#""read""#),
        (r#""read rep"#, r#""read rep""#),
        ("webho?", r#""webho""#),
        ("日本", r#"grams : "日本""#),
    ];
    for (text, expected) in table {
        assert_eq!(typed(text), expected, "{text}");
    }
    let mut query = Query::parse_as("failing deploymen", true);
    let mut words = Vec::new();
    while query.shorten_typed() {
        words.push(query.terms[1].expression());
    }
    let shorter = ["deployme", "deploym", "deploy", "deplo", "depl"];
    assert_eq!(words, shorter.map(|word| format!("\"{word}\" *")));
    assert_eq!(query.terms[1].text, "deploymen");
    assert!(!Query::parse("deploymen").shorten_typed());
}

#[test]
fn a_query_that_can_find_nothing_gives_a_hint() {
    for (text, hint) in [
        ("", "is empty"),
        ("  \n", "is empty"),
        ("?!*\"+-", "no letters"),
        ("-word", "only excludes memories"),
        ("word ".repeat(2000).as_str(), "too long"),
    ] {
        let query = Query::parse(text);
        assert!(query.hint.is_some_and(|given| given.contains(hint)), "{text:.20} {query:?}");
    }
    assert_eq!(Query::parse("word").hint, None);
}

#[test]
fn a_query_of_hostile_fragments_is_read_in_linear_time() {
    scan_counter::assert_linear(|fragment, size| {
        // Longer text is not read, so the sizes stay below that limit.
        let bytes = size * QUERY_BYTES_MAX / (4 << 20);
        Query::parse(&fragment.repeat(bytes / fragment.len()));
    });
    scan_counter::assert_linear(|fragment, size| {
        Query::parse(&fragment.repeat(size / fragment.len()));
    });
    let words: String = (0..2000).map(|word| format!("w{word} ")).collect();
    let words = &words[..QUERY_BYTES_MAX];
    let looks = scan_counter::count(|| drop(Query::parse(words)));
    assert!(looks < 80 * words.len(), "{looks}");
}

#[test]
fn no_query_breaks_the_syntax_of_the_index() {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("create virtual table f using fts5 (a, grams)").unwrap();
    let texts = "(?s).{0,60}|[\"+*(){}:^a -]{0,30}";
    let asked = TestRunner::new(Config { failure_persistence: None, ..Config::default() }).run(
        &texts,
        |text| {
            let query = Query::parse(&text);
            for term in query.terms.iter().chain(&query.excluded) {
                let sql = "select count(*) from f where f match ?1";
                let found =
                    connection.query_row(sql, [term.expression()], |row| row.get::<_, i64>(0));
                prop_assert!(found.is_ok(), "{text:?}: {found:?}");
            }
            Ok(())
        },
    );
    asked.unwrap();
}
