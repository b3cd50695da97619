//! The storm, in the size for CI: 500 kills, or the given number.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests")]

use claude_mem_tools::crash::{Storm, storm};

/// `CLAUDE_MEM_CAMPAIGN=full` kills 10,000.
#[test]
fn killed_processes_lose_nothing_that_was_acknowledged() {
    let is_full = std::env::var_os("CLAUDE_MEM_CAMPAIGN").is_some_and(|size| size == "full");
    let dir = tempfile::tempdir().unwrap();
    let outcome = storm(&Storm {
        program: env!("CARGO_BIN_EXE_claude-mem-tools").into(),
        dir: dir.path().to_path_buf(),
        kills: if is_full { 10_000 } else { 500 },
        writers: 8,
        seed: 7,
    })
    .unwrap();
    println!("{outcome:#?}");
    assert!(outcome.is_good(), "{outcome:#?}");
    assert!(outcome.acknowledged > 1000 && outcome.segments > 3, "{outcome:#?}");
}
