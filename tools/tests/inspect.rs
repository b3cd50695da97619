//! `claude-mem-tools inspect`, run on logs that are created here.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs, reason = "a test may fail by panicking")]

use claude_mem_log::{Appender, Id, Options, Record, maintain};
use std::{fs, path::Path, process::Command};

/// A sealed segment of four records, and the active one with a fifth.
fn log(dir: &Path) {
    let options = Options { segment_bytes_max: 250, compress_bytes_min: 100, ..Options::default() };
    let mut appender = Appender::open(dir, options.clone()).unwrap();
    let long = "squeeze me ".repeat(30);
    let payloads = ["first", "second\n\u{7}", &long, "fourth", "fifth"];
    for (number, payload) in (0..).zip(payloads) {
        let id = Id::new(1_763_000_000_000_000 + number, number);
        let kind = if number < 3 { 2 } else { 5 };
        let record = Record { id, kind, schema: 1, codec: 0, payload: payload.as_bytes() };
        appender.append(&record).unwrap();
        if number == 3 {
            maintain(dir, &options).unwrap();
        }
    }
}

fn inspect(words: &[&str], dir: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_claude-mem-tools"));
    let output = command.arg("inspect").args(words).arg(dir).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

fn json(words: &[&str], dir: &Path) -> Vec<serde_json::Value> {
    let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
    let (_, text) = inspect(&words, dir);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn ls_shows_state_counts_and_times_of_each_segment() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let lines = json(&["ls"], dir.path());
    let seen: Vec<_> = lines
        .iter()
        .map(|line| {
            let text = |name: &str| line[name].as_str().unwrap();
            (
                line["segment"].as_u64().unwrap(),
                text("state"),
                line["records"].as_u64().unwrap(),
                text("first"),
            )
        })
        .collect();
    assert_eq!(
        seen,
        [(1, "sealed", 4, "2025-11-13T02:13:20Z"), (2, "active", 1, "2025-11-13T02:13:20.000004Z")]
    );
    let (code, text) = inspect(&["ls"], dir.path());
    assert_eq!(code, Some(0));
    assert_eq!(text.lines().count(), 3, "{text}");
    assert!(text.contains("sealed") && text.ends_with("active.log\n"), "{text}");
}

#[test]
fn dump_shows_every_frame_with_a_printable_preview() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let lines = json(&["dump"], dir.path());
    let what: Vec<_> = lines.iter().map(|line| line["what"].as_str().unwrap()).collect();
    assert_eq!(what, ["record", "record", "record", "record", "seal", "record"]);
    assert_eq!(lines[0]["id"], Id::new(1_763_000_000_000_000, 0).to_string());
    assert_eq!((&lines[0]["offset"], &lines[0]["bytes"]), (&64.into(), &5.into()));
    assert_eq!(lines[1]["preview"], "second··");
    assert_eq!(lines[2]["flags"], serde_json::json!(["zstd"]));
    let preview = lines[2]["preview"].as_str().unwrap();
    assert!(preview.starts_with("squeeze me squeeze me") && preview.ends_with('…'), "{preview}");
    assert_eq!(lines[5]["kind"], 5);
    let (_, second) = inspect(&["dump", "--segment", "2"], dir.path());
    let id = Id::new(1_763_000_000_000_004, 4);
    assert_eq!(
        second,
        format!("2:64             record  {id} kind 5 schema 1        5 B       fifth\n")
    );
}

#[test]
fn stat_adds_up_kinds_and_compression() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let stat = &json(&["stat"], dir.path())[0];
    assert_eq!(stat["segments"], serde_json::json!({"active": 1, "sealed": 1}));
    assert_eq!(stat["total"]["records"], 5);
    assert_eq!(stat["kinds"]["2"]["records"], 3);
    assert_eq!(stat["kinds"]["2"]["payload_bytes"], 5 + 8 + 330);
    assert_eq!(stat["kinds"]["2"]["compressed"], 1);
    assert_eq!(stat["kinds"]["5"]["stored_bytes"], 6 + 5);
    let (code, text) = inspect(&["stat"], dir.path());
    assert_eq!(code, Some(0));
    assert!(text.starts_with("segments: 1 active, 1 sealed\n"), "{text}");
    assert!(text.ends_with("gaps: none\n"), "{text}");
}

#[test]
fn damage_is_shown_in_place_and_sets_the_exit_status() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let path = dir.path().join("0000000000000001.g00.seg");
    let mut bytes = fs::read(&path).unwrap();
    bytes[64 + 40] ^= 1;
    fs::write(&path, bytes).unwrap();
    let lines = json(&["dump"], dir.path());
    assert_eq!(
        (&lines[0]["what"], &lines[0]["preview"]),
        (&"gap".into(), &"one damaged record".into())
    );
    assert_eq!(lines[0]["id"], Id::new(1_763_000_000_000_000, 0).to_string());
    assert_eq!(lines.len(), 6);
    let (code, text) = inspect(&["stat"], dir.path());
    assert_eq!(code, Some(1));
    assert!(text.ends_with("gaps: 1 × one damaged record, 45 bytes\n"), "{text}");
}

#[test]
fn an_append_in_progress_is_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    let path = dir.path().join("active.log");
    let mut bytes = fs::read(&path).unwrap();
    bytes.pop();
    fs::write(&path, bytes).unwrap();
    let (code, text) = inspect(&["stat"], dir.path());
    assert_eq!(code, Some(0));
    assert!(text.ends_with("gaps: none\nunfinished: 44 bytes at the end\n"), "{text}");
}

#[test]
fn a_directory_without_a_log_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let (code, text) = inspect(&["ls"], dir.path());
    assert_eq!((code, text.as_str()), (Some(1), ""));
}

#[test]
fn a_missing_segment_counts_as_damage() {
    let dir = tempfile::tempdir().unwrap();
    log(dir.path());
    fs::remove_file(dir.path().join("0000000000000001.g00.seg")).unwrap();
    let (code, text) = inspect(&["stat"], dir.path());
    assert_eq!(code, Some(1));
    assert!(text.ends_with("gaps: 1 × a missing segment, 0 bytes\n"), "{text}");
}
