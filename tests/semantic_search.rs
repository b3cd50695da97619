//! Search by meaning: from the command line, over HTTP and over MCP, and with a prompt.

use serde_json::json;

use crate::{
    http::Site,
    mcp::process::McpProcess,
    sandbox::{Run, Sandbox},
    vectors::SEMANTIC,
};

const QUESTION: &str = "how do we keep people from logging in too often";
const NOTES: [&str; 3] = [
    "Each address may try five passwords a minute; then it gets status 429.",
    "The headline of the invoice is printed in dark green.",
    "Prices are stored in cents.",
];

fn run(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    sandbox.run_with(arguments, &[SEMANTIC], "")
}

#[test]
fn a_question_finds_the_memory_that_shares_no_word_with_it() {
    let site = Site::with(&[SEMANTIC]);
    let sandbox = &site.sandbox;
    for note in NOTES {
        sandbox.run(&["remember", note]).ok();
    }
    let path = format!("/api/search?query={}", QUESTION.replace(' ', "+"));
    let found = run(sandbox, &["search", &format!("\"{QUESTION}\"")]);
    assert_eq!(found.stdout, "", "a phrase has no other words");
    // Embedded by the worker or by this command, whichever is first.
    crate::serving::until(|| run(sandbox, &["index"]).ok().contains("0 of 3 vectors missing"));

    let found = run(sandbox, &["search", QUESTION, "--explain"]).ok();
    assert!(found.contains("cosine 0."), "{found}");
    let first = found.lines().find(|line| line.contains("note")).unwrap_or_default();
    assert!(first.contains("five passwords"), "{found}");

    assert_eq!(run(sandbox, &["search", "zzzxqv"]).stdout, "", "it means nothing");

    let found = site.get(&path);
    let ranking = (&found["hits"][0]["id"], &found["ranking"], &found["totalResults"]);
    assert_eq!(ranking, (&json!("1"), &json!("words_and_meaning"), &json!(0)));
    assert!(found["nearResults"].as_u64() > Some(0), "{found}");

    let mut command = sandbox.command(&["mcp"]);
    let mut server = McpProcess::start(command.env(SEMANTIC.0, SEMANTIC.1));
    let found = server.call_ok("search", &json!({"query": QUESTION}));
    assert!(found.contains("0 matches and") && found.contains("five passwords"), "{found}");
    server.end();
}

#[test]
fn without_vectors_search_uses_words_and_reports_it() {
    let sandbox = Sandbox::new();
    sandbox.run(&["remember", NOTES[0]]).ok();
    let found = run(&sandbox, &["search", QUESTION]);
    assert_eq!((found.code, found.stdout.as_str()), (0, ""), "{found:?}");
    assert!(found.stderr.contains("note: searched by words alone"), "{found:?}");
    let found = run(&sandbox, &["search", "passwords"]);
    assert!(found.stdout.contains("five passwords") && found.stderr.is_empty(), "{found:?}");
}
