//! `claude-mem-tools bench --quick`: every benchmark runs. Nothing is asserted about time.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs, reason = "a test may fail by panicking")]

use std::{fs, process::Command};

#[test]
fn a_quick_run_of_the_log_reports_every_figure_and_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let (scratch, out) = (dir.path().join("scratch"), dir.path().join("out"));
    fs::create_dir(&scratch).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_claude-mem-tools"));
    command.args(["bench", "log", "--quick", "--scratch"]).arg(&scratch).arg("--out").arg(&out);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(out.join("log.json")).unwrap()).unwrap();
    let titles: Vec<_> =
        report["figures"].as_array().unwrap().iter().map(|one| &one["title"]).collect();
    assert_eq!(
        titles,
        [
            "One record by a new appender, against SQLite",
            "The same at any size",
            "Verify and read 1 GB",
            "Speed of a scan",
            "Memory of a reader over 10 GB",
        ]
    );
    let markdown = fs::read_to_string(out.join("log.md")).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), markdown.clone() + "\n");
    assert!(markdown.contains("A quick run"), "{markdown}");
    assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
}

#[test]
fn a_group_or_figure_that_does_not_exist_is_named_with_those_that_do() {
    let fails = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claude-mem-tools"));
        let output = command.arg("bench").args(words).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let error = fails(&["poetry"]);
    let expected = "error: there is no `poetry` to measure; there is all, log, ";
    assert!(error.starts_with(expected), "{error}");
    let expected = "error: `log` has only: append, read, memory\n";
    assert_eq!(fails(&["log", "--only", "rhyme"]), expected);
}
