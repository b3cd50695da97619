//! `claude-mem-tools inspect`, run on a log that is created here.
#![cfg(unix)]
#![allow(clippy::unwrap_used, missing_docs, reason = "a test may fail by panicking")]

use claude_mem_log::{Appender, Id, Options, Record, maintain};
use std::{fs, process::Command};

#[test]
fn every_frame_and_every_damaged_place_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options { segment_bytes_max: 250, compress_bytes_min: 100, ..Options::default() };
    let mut appender = Appender::open(dir.path(), options.clone()).unwrap();
    let id = |number: u64| Id::new(1_763_000_000_000_000 + number, number);
    let long = "squeeze me ".repeat(30);
    for (number, payload) in (0..).zip(["first", "second\n\u{7}", &long, "fourth", "fifth"]) {
        let record =
            Record { id: id(number), kind: 2, schema: 1, codec: 0, payload: payload.as_bytes() };
        appender.append(&record).unwrap();
        if number == 3 {
            maintain(dir.path(), &options).unwrap();
        }
    }
    let inspect = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_claude-mem-tools"));
        let output = command.arg("inspect").arg(dir.path()).args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let last = format!("2:64 {} kind 2.1 5 B fifth\n", id(4));
    assert_eq!(inspect(&["--segment", "2"]), last);
    let whole = inspect(&[]);
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 6, "{whole}");
    assert!(lines[1].ends_with(" kind 2.1 8 B second··"), "{whole}");
    assert!(lines[2].contains(" B zstd squeeze me squeeze me"), "{whole}");
    assert!(lines[4].ends_with(" seal"), "{whole}");

    let sealed = dir.path().join("0000000000000001.g00.seg");
    let active = dir.path().join("active.log");
    let mut bytes = fs::read(&sealed).unwrap();
    bytes[64 + 40] ^= 1;
    fs::write(&sealed, bytes).unwrap();
    let mut bytes = fs::read(&active).unwrap();
    bytes.pop();
    fs::write(&active, bytes).unwrap();
    let damaged = inspect(&[]);
    assert!(damaged.starts_with("1:64 one damaged record, 45 B\n"), "{damaged}");
    assert!(damaged.ends_with("2:64 incomplete, or still being written, 44 B\n"), "{damaged}");
}
