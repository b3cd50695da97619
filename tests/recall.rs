//! `claude-mem search`, `timeline`, `show` and `eval`.

use std::{fs::File, io::Write};

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::{
    hook_session::HookSession,
    sandbox::{Run, Sandbox},
};

const NOW: &[(&str, &str)] = &[
    ("CLAUDE_MEM_NOW", "2026-03-03T12:00:00Z"),
    ("TZ", "UTC"),
    ("CLAUDE_MEM_PROVIDER", "extract"),
];

/// One turn, distilled by rules.
fn remembered() -> Sandbox {
    let sandbox = Sandbox::new();
    let shop = sandbox.home().join("shop");
    std::fs::create_dir(&shop).unwrap();
    let at = |now: &'static str| {
        let session = HookSession::new(&sandbox, "aaaa-1").in_folder(&shop);
        let mut session = session.with(&[("CLAUDE_MEM_NOW", now)]);
        session.common["prompt_id"] = json!("p1");
        session
    };
    at("2026-03-02T10:00:00Z").prompt("coupons are applied twice");
    let edit = ("src/coupon.rs", "apply(coupon)", "apply_once(coupon)");
    at("2026-03-02T10:01:00Z").edit("toolu_1", edit.0, edit.1, edit.2);
    at("2026-03-02T10:02:00Z").stop("Coupons are now applied once.");
    sandbox.run_with(&["distill"], NOW, "").ok();
    sandbox
}

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run_with(arguments, NOW, "")
}

fn objects(sandbox: &Sandbox, arguments: &[&str]) -> Vec<Value> {
    let printed = run(sandbox, arguments).ok();
    printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn past_work_is_found_by_half_remembered_words() {
    let sandbox = remembered();
    let hits = objects(
        &sandbox,
        &["search", "why", "was", "a", "coupon", "applied", "two times?", "--json"],
    );
    let [hit] = &hits[..] else { panic!("a turn is one hit: {hits:#?}") };
    assert_eq!((&hit["kind"], &hit["file"]), (&json!("observation"), &json!("src/coupon.rs")));
    assert!(hit["also"].as_array().unwrap().contains(&json!("P1")), "{hit:#}");
    assert!(hit["project"] == "shop" && hit["score"].as_f64() > Some(0.0), "{hit:#}");
    let by_file =
        objects(&sandbox, &["search", "--file", "coupon.rs", "--kind", "observation", "--json"]);
    assert_eq!(by_file.len(), 1, "{by_file:#?}");
    let lines = run(&sandbox, &["search", "applied twice", "--kind", "prompt"]).ok();
    assert_eq!(lines, "P1  1d  shop  prompt  coupons are applied twice\n");
}

#[test]
fn a_search_without_results_has_a_hint() {
    let sandbox = remembered();
    for (arguments, hint) in [
        (["search", "xyzzy", "--json"], "hint: try fewer or other words"),
        (["search", "?!", "--json"], "hint: the query has no letters or digits"),
        (["search", "coupon", "--session=zzz"], "hint: try fewer filters"),
        (["search", "the cuopon", "--json"], "hint: did you mean `the coupon`?"),
    ] {
        let found = run(&sandbox, &arguments);
        assert_eq!((found.code, found.stdout.as_str()), (0, ""), "{found:?}");
        assert!(found.stderr.starts_with(&format!("no memory matches\n{hint}")), "{found:?}");
    }
    run(&sandbox, &["search", "coupon", "--kind", "nonsense"]).fails(2);
    let unknown = run(&sandbox, &["search", "coupon", "--project", "none"]).fails(2);
    assert!(unknown.contains("there is no recorded project `none`"), "{unknown}");
}

#[test]
fn a_search_explains_itself_to_people_and_scripts() {
    let sandbox = remembered();
    let [explained, hit, ..] =
        &objects(&sandbox, &["search", "the coupon", "--explain", "--json"])[..]
    else {
        panic!("nothing was found")
    };
    assert_eq!(explained["dropped"], json!(["the"]));
    assert_eq!(explained["explanation"][0]["expression"], "(\"coupon\")");
    assert!(hit["explanation"]["total"].as_f64() > Some(0.0));
    let lines = run(&sandbox, &["search", "the coupon", "--explain"]).ok();
    assert!(
        lines.contains("observation: 1 match (\"coupon\")") && lines.contains("score "),
        "{lines}"
    );
}

#[test]
fn a_timeline_shows_events_before_and_after() {
    let sandbox = remembered();
    for anchor in ["P1", "2026-03-02T10:00:00Z", "coupons applied twice"] {
        let moments = objects(&sandbox, &["timeline", anchor, "--json"]);
        let names: Vec<String> = moments.iter().map(|moment| moment["id"].to_string()).collect();
        assert_eq!(names[..2], ["\"P1\"", "\"1\""], "{anchor}");
    }
    let lines = run(&sandbox, &["timeline", "1", "--before", "1", "--after", "0"]).ok();
    assert!(
        lines.starts_with("2026-03-02\n  P1  10:00  prompt  coupons are applied twice\n▶  1  10:0"),
        "{lines}"
    );
    let prompts = run(&sandbox, &["timeline", "--type", "prompts", "1"]).ok();
    assert!(prompts.contains("  P1  ") && !prompts.contains("S1"), "{prompts}");
    let invalid = run(&sandbox, &["timeline", "2026-13-40"]).fails(2);
    assert!(invalid.contains("`2026-13-40` is not a time"), "{invalid}");
    let latest = run(&sandbox, &["timeline", "--before", "1"]).ok();
    assert!(latest.lines().last().unwrap().starts_with("▶ "), "{latest}");
    let missing = run(&sandbox, &["timeline", "99"]).fails(2);
    assert!(missing.contains("there is no memory `99`"), "{missing}");
}

#[test]
fn memories_are_one_number() {
    let sandbox = remembered();
    let status: Value = serde_json::from_str(&run(&sandbox, &["status", "--json"]).ok()).unwrap();
    let counts = &status["memory"];
    let projects = objects(&sandbox, &["projects", "--json"]);
    assert_eq!(
        (&projects[0]["memories"], &counts["summaries"]),
        (&counts["observations"], &json!(1))
    );
}

#[test]
fn a_memory_is_shown_with_its_source_events() {
    let sandbox = remembered();
    let [observation, prompt] = &objects(&sandbox, &["show", "1", "P1", "--raw", "--json"])[..]
    else {
        panic!("two were asked for")
    };
    assert_eq!(observation["provenance"]["reply"]["provider"], "extract");
    let sources = observation["provenance"]["sources"].as_array().unwrap();
    let events = observation["events"].as_array().unwrap();
    assert_eq!(sources.len(), events.len());
    assert!(sources.iter().zip(events).all(|(source, event)| source["seq"] == event["seq"]));
    assert!(events.iter().any(|event| event["tool_use_id"] == "toolu_1"), "{events:#?}");
    assert_eq!(prompt["events"][0]["kind"], "PromptSubmitted");
    let text = run(&sandbox, &["show", "1", "--raw"]).ok();
    assert!(text.contains("extract") && text.contains("apply_once(coupon)"), "{text}");
    let failed = run(&sandbox, &["show", "1", "S99"]);
    assert!(failed.stdout.contains("coupon"));
    assert!(failed.fails(2).contains("there is no memory `S99`"));
}

#[test]
fn search_is_measured_on_sets_plain_and_packed() {
    let sandbox = Sandbox::new();
    let documents = r#"{"corpus":"a","id":"x","title":"torn writes","text":"The log survives torn writes.","ts":1}
{"corpus":"a","id":"y","title":"","text":"Coupons are applied once.","ts":2}
{"corpus":"b","id":"z","title":"","text":"Torn writes and coupons elsewhere.","ts":3}
"#;
    let docs = sandbox.home().join("docs.jsonl.gz");
    let mut packed = GzEncoder::new(File::create(&docs).unwrap(), Compression::default());
    packed.write_all(documents.as_bytes()).unwrap();
    packed.finish().unwrap();
    let queries = r#"{"corpus":"a","id":"1","text":"What about torn writes?","gold":["x"],"type":"t"}
{"corpus":"a","id":"2","text":"coupons","gold":["y", "x"]}
"#;
    sandbox.write("queries.jsonl", queries);
    let arguments = ["eval", "--docs", "docs.jsonl.gz", "--queries", "queries.jsonl", "--json"];
    let [figures] = &objects(&sandbox, &arguments)[..] else { panic!("one set was given") };
    for (name, figure) in
        [("documents", 3.0), ("queries", 2.0), ("recall_at_10", 0.75), ("mrr_at_10", 1.0)]
    {
        assert_eq!(figures[name].as_f64(), Some(figure), "{figures}");
    }
    assert!(!sandbox.data().join("memory.db").exists());
    sandbox.write("queries.jsonl", "{}\n");
    let wrong = run(&sandbox, &arguments).fails(1);
    assert!(wrong.contains("queries.jsonl is invalid in line 1"), "{wrong}");
    assert!(run(&sandbox, &["eval", "--docs", "docs.jsonl.gz"]).code == 2);
}

#[test]
fn search_is_measured_on_ones_own_memory() {
    let sandbox = remembered();
    let sets = objects(&sandbox, &["eval", "--json"]);
    assert!(sets.iter().any(|set| set["set"] == "titles"), "{sets:?}");
    let empty = run(&Sandbox::new(), &["eval"]).fails(1);
    assert!(empty.contains("there is nothing to measure yet"), "{empty}");
}
