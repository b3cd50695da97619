//! A log in format version 1, as on users' disks, and its records.
//!
//! The files in `tests/fixtures/v1` were made once, by the example `make_golden_log`, and never
//! change again. A format that cannot read them is a new version with separate fixtures.

use crate::golden_records::{MOVED, MOVED_FROM, TIME_US, TOMBSTONE, kind, schema};
pub use crate::golden_records::{id, options, payload};
use claude_mem_log::{Id, Item, Log, verify};
use std::{
    fs,
    path::{Path, PathBuf},
};

pub const COUNT: u64 = 83;

pub fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

pub fn number(id: Id) -> u64 {
    (id.time_us() - TIME_US) / 1_000_000
}

#[test]
fn the_golden_log_reads_as_it_was_written() {
    let log = Log::open(&fixture(), options()).unwrap();
    let mut reader = log.read_from_start();
    let mut numbers = Vec::new();
    while let Some(item) = reader.next().unwrap() {
        let Item::Record(entry) = item else { panic!("{item:?}") };
        let number = number(entry.id);
        assert_eq!(entry.id, id(number));
        assert_eq!((entry.kind, entry.schema, entry.codec), (kind(number), schema(number), 9));
        assert_eq!(entry.payload, payload(number));
        assert_eq!(entry.is_tombstone, number == TOMBSTONE);
        assert_eq!(entry.seq.offset() == MOVED_FROM, number == MOVED);
        numbers.push(number);
    }
    assert_eq!(numbers, (0..COUNT).collect::<Vec<_>>());
    let report = verify(&fixture(), &options()).unwrap();
    assert!(!report.is_damaged() && report.gaps().next().is_none(), "{report:#?}");
    let states: Vec<_> = report.segments.iter().map(|segment| segment.info.state).collect();
    assert!(states.len() >= 4, "{states:?}");
}

/// These bytes are on users' disks. If this fails, add a version; do not edit the files.
#[test]
fn the_golden_log_is_the_one_that_was_committed() {
    let mut names: Vec<_> =
        fs::read_dir(fixture()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let sums: Vec<String> = names
        .iter()
        .map(|path| {
            let bytes = fs::read(path).unwrap();
            let name = path.file_name().unwrap().to_string_lossy();
            format!("{name} {} {:08x}", bytes.len(), crc32fast::hash(&bytes))
        })
        .collect();
    assert_eq!(sums, SUMS);
}

const SUMS: &[&str] = &[
    "0000000000000001.g00.seg 1678 e59e033f",
    "0000000000000002.g00.seg 1687 31a0ebfa",
    "0000000000000003.g00.seg 1458 585e110f",
    "active.log 1352 73e8fa1a",
    "log.id 59 d6caddac",
    "synced 20 2144df1c",
];
