//! Sealed segments of several windows, which are mapped.
#![allow(clippy::unwrap_used)]

use claude_mem_log::{Appender, GapReason, Id, Item, Log, Options, Record, maintain};
use std::{fs, path::Path};

const SEGMENT_BYTES: u64 = 5 << 20;
const PAYLOAD_LEN: usize = 10_000;
const RECORDS: u64 = 1_200;

fn fill(dir: &Path) {
    let options = options();
    let mut appender = Appender::open(dir, options.clone()).unwrap();
    for number in 0..RECORDS {
        let payload = payload(number);
        let id = Id::new(1_763_000_000_000_000 + number, number);
        let record = Record { id, kind: 7, schema: 1, codec: 0, payload: &payload };
        appender.append(&record).unwrap();
    }
    assert_eq!(maintain(dir, &options).unwrap().sealed, 2);
}

fn options() -> Options {
    let defaults = Options::default();
    Options { segment_bytes_max: SEGMENT_BYTES, compress_bytes_min: usize::MAX, ..defaults }
}

fn payload(number: u64) -> Vec<u8> {
    number.to_le_bytes().into_iter().cycle().take(PAYLOAD_LEN).collect()
}

/// The numbers of the records that were read, and the gaps between them.
fn read(dir: &Path) -> (Vec<u64>, Vec<(u64, u64, GapReason)>) {
    let mut reader = Log::open(dir, options()).unwrap().read_from_start();
    let (mut numbers, mut gaps) = (Vec::new(), Vec::new());
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Record(entry) => {
                let number = entry.id.time_us() - 1_763_000_000_000_000;
                assert_eq!(entry.payload, payload(number), "record {number}");
                numbers.push(number);
            }
            Item::Gap(gap) => gaps.push((gap.segment, gap.offset, gap.reason)),
        }
    }
    (numbers, gaps)
}

#[test]
fn every_record_is_read_once_and_in_order() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let (numbers, gaps) = read(dir.path());
    assert_eq!(numbers, (0..RECORDS).collect::<Vec<_>>());
    assert_eq!(gaps, []);
}

#[test]
fn damage_anywhere_costs_one_record() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let path = dir.path().join("0000000000000002.g00.seg");
    let whole = fs::read(&path).unwrap();
    let frame_len = PAYLOAD_LEN + 40;
    let frames = (whole.len() - 64) / frame_len;
    let before = (fs::metadata(dir.path().join("0000000000000001.g00.seg")).unwrap().len() - 64)
        as usize
        / frame_len;
    for frame in (0..frames).step_by(17) {
        for (within, reason) in [(100, GapReason::DamagedPayload), (9, GapReason::DamagedFrames)] {
            let mut damaged = whole.clone();
            damaged[64 + frame * frame_len + within] ^= 4;
            fs::write(&path, &damaged).unwrap();
            let (numbers, gaps) = read(dir.path());
            let lost = (before + frame) as u64;
            let expected: Vec<u64> = (0..RECORDS).filter(|number| *number != lost).collect();
            assert_eq!(numbers, expected, "byte {within} of frame {frame}");
            assert_eq!(gaps, [(2, (64 + frame * frame_len) as u64, reason)]);
        }
    }
}

#[test]
fn truncating_a_segment_between_two_windows_crashes_no_reader() {
    let dir = tempfile::tempdir().unwrap();
    for segment in [1, 2] {
        let dir = dir.path().join(segment.to_string());
        fill(&dir);
        let path = dir.join(format!("000000000000000{segment}.g00.seg"));
        let mut reader = Log::open(&dir, options()).unwrap().read_from_start();
        let (mut records, mut gaps, mut is_cut) = (0, Vec::new(), false);
        while let Some(item) = reader.next().unwrap() {
            match item {
                Item::Record(entry) => {
                    records += 1;
                    if !is_cut && entry.seq.segment() == segment {
                        fs::OpenOptions::new()
                            .write(true)
                            .open(&path)
                            .unwrap()
                            .set_len(1 << 20)
                            .unwrap();
                        is_cut = true;
                    }
                }
                Item::Gap(gap) => gaps.push((gap.segment, gap.reason)),
            }
        }
        assert!(gaps.contains(&(segment, GapReason::Truncated)), "{gaps:?}");
        // Everything before the cut and in the other segments is there.
        let whole = RECORDS as usize * (PAYLOAD_LEN + 40);
        let least = (whole - SEGMENT_BYTES as usize + (1 << 20)) / (PAYLOAD_LEN + 40) - 2;
        assert!(records >= least && records < RECORDS as usize, "{records}");
    }
}
