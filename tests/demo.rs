//! `claude-mem demo` for a user who has not installed anything.

use std::fs;

use crate::{
    sandbox::{AtTerminal, Sandbox},
    terminal::too_wide,
};

#[test]
fn the_demo_shows_all_steps_and_leaves_nothing() {
    let sandbox = Sandbox::new();
    let scratch = sandbox.home().join("scratch");
    fs::create_dir(&scratch).unwrap();
    let scratch = scratch.to_str().unwrap();
    let shown = sandbox.run_with(&["demo"], &[("TMPDIR", scratch)], "").ok();

    for expected in [
        "35 hook calls",
        "3 requests for 26 events answered by the built-in rules",
        "# shop: memory, as of",
        "The total was off because each line was rounded before summing",
        " Always use the existing redis client, never open a second one",
        "decision: Counted per IP instead of per account",
        "SQLite instead of Postgres for the order history",
        "-  decision  Counted per IP instead of per account",
        "43 events indexed: 6 observations and 3 summaries",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    let meant = shown.split("$ claude-mem search how do we keep people").nth(1).unwrap();
    assert!(meant.lines().nth(1).unwrap().contains("Login: limit attempts per IP"), "{meant}");
    assert!(!shown.contains("correct-horse"), "{shown}");
    assert_eq!(fs::read_dir(scratch).unwrap().count(), 0);
    assert!(!sandbox.data().exists());
}

#[test]
fn the_demo_writes_only_to_its_directory() {
    let sandbox = Sandbox::new();
    let mut demo = AtTerminal::start(sandbox.command(&["demo", "--keep", "kept"]), 80, 24);
    let mut shown = String::new();
    for _ in 0..4 {
        shown += &demo.read_until("q: stop");
        demo.keys("\r");
    }
    let (pieces, code) = demo.finish();
    shown += &pieces.concat();
    assert!(code == 0 && shown.contains("claude-mem viewer"), "{shown}");
    assert_eq!(too_wide("demo", &shown, 80), Vec::<String>::new());
    let data = sandbox.home().join("kept/data");
    let environment = [("CLAUDE_MEM_DATA_DIR", data.to_str().unwrap())];
    let found = sandbox.run_with(&["search", "redis", "--json"], &environment, "").ok();
    assert!(found.contains("login"), "{found}");

    let again = sandbox.run(&["demo", "--keep", "kept"]).fails(1);
    assert!(again.contains("pass a new folder in an existing one"), "{again}");
}
