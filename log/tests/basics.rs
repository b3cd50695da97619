//! The basic guarantees of the log, on a real disk.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use claude_mem_log::{
    Appender, Compactor, Id, Item, KeepAll, Log, Options, Packing, Record, Seq, Spill, maintain,
    verify,
};
use std::path::Path;

fn small() -> Options {
    Options {
        segment_bytes_max: 600,
        index_interval_bytes: 200,
        reserve_bytes: 0,
        ..Options::default()
    }
}

fn fill(dir: &Path, options: &Options, numbers: std::ops::Range<u64>) {
    let mut appender = Appender::open(dir, options.clone()).unwrap();
    for number in numbers {
        let payload = format!("record {number}");
        let id = Id::new(number * 1000, number);
        let record = Record { id, kind: 1, schema: 1, codec: 0, payload: payload.as_bytes() };
        appender.append(&record).unwrap();
    }
}

fn payloads(mut next: impl FnMut() -> Option<Vec<u8>>) -> Vec<String> {
    std::iter::from_fn(&mut next).map(|bytes| String::from_utf8(bytes).unwrap()).collect()
}

macro_rules! read_all {
    ($reader:expr) => {{
        let mut reader = $reader;
        payloads(|| match reader.next().unwrap()? {
            Item::Record(entry) => Some(entry.payload.to_vec()),
            Item::Gap(gap) => panic!("{gap}"),
        })
    }};
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<String> {
    numbers.map(|number| format!("record {number}")).collect()
}

#[test]
fn records_come_back_in_order_over_many_segments() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..100);
    let log = Log::open(dir.path(), small()).unwrap();
    assert!(log.segments().unwrap().len() > 5);
    assert_eq!(read_all!(log.read_from_start()), expected(0..100));
    maintain(dir.path(), &small()).unwrap();
    assert_eq!(read_all!(log.read_from_start()), expected(0..100));
    let report = verify(dir.path(), &small()).unwrap();
    assert_eq!((report.records(), report.is_damaged()), (100, false), "{report:#?}");
}

#[test]
fn a_reader_continues_where_another_stopped() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..40);
    maintain(dir.path(), &small()).unwrap();
    let log = Log::open(dir.path(), small()).unwrap();
    for stop in 0..40 {
        let mut first = log.read_from_start();
        for _ in 0..stop {
            first.next().unwrap();
        }
        assert_eq!(read_all!(log.read_from(first.position())), expected(stop..40));
    }
}

#[test]
fn a_reader_after_a_seek_reads_like_a_new_one() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..40);
    maintain(dir.path(), &small()).unwrap();
    let log = Log::open(dir.path(), small()).unwrap();
    let mut places = Vec::new();
    let mut reader = log.read_from_start();
    while let Some(Item::Record(entry)) = reader.next().unwrap() {
        places.push(entry.seq);
    }
    let check = || {
        let mut reader = log.read_from_start();
        // Forwards and backwards, by small and large steps, and past the end.
        for step in [1, 7, 23] {
            for at in (0..=40).map(|count| count * step % 41) {
                reader.seek(*places.get(at).unwrap_or(&Seq::new(1 << 30, 0))).unwrap();
                let found = match reader.next().unwrap() {
                    Some(Item::Record(entry)) => Some(entry.payload.to_vec()),
                    Some(Item::Gap(gap)) => panic!("{gap}"),
                    None => None,
                };
                let wanted = (at < 40).then(|| format!("record {at}").into_bytes());
                assert_eq!(found, wanted, "at {at} with steps of {step}");
            }
        }
    };
    check();
    let compactor = Compactor::begin(dir.path(), &small(), Packing::default()).unwrap().unwrap();
    let sealed: Vec<_> =
        log.segments().unwrap().into_iter().filter(|info| info.seal.is_some()).collect();
    let (one, several) = sealed.split_first().unwrap();
    compactor.rewrite(std::slice::from_ref(one), &mut KeepAll).unwrap().unwrap();
    compactor.rewrite(several, &mut KeepAll).unwrap().unwrap();
    check();
}

#[test]
fn a_reader_at_the_end_continues_when_the_log_grows_and_rolls() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), small()).unwrap();
    let mut reader = log.read_from_start();
    assert!(reader.next().unwrap().is_none());
    let mut count = 0;
    for round in 0..30 {
        fill(dir.path(), &small(), round * 7..round * 7 + 7);
        if round % 5 == 0 {
            maintain(dir.path(), &small()).unwrap();
        }
        while let Some(Item::Record(entry)) = reader.next().unwrap() {
            assert_eq!(entry.payload, format!("record {count}").as_bytes());
            count += 1;
        }
        assert_eq!(count, round * 7 + 7);
    }
}

#[test]
fn reading_since_a_time_returns_exactly_the_later_records() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..100);
    let log = Log::open(dir.path(), small()).unwrap();
    for is_sealed in [false, true] {
        for since in [0, 1, 50, 99, 100] {
            let reader = log.read_since(since * 1000).unwrap();
            assert_eq!(read_all!(reader), expected(since..100), "sealed: {is_sealed}");
        }
        maintain(dir.path(), &small()).unwrap();
    }
}

#[test]
fn a_clock_set_back_affects_only_since() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 50..80);
    fill(dir.path(), &small(), 0..30);
    fill(dir.path(), &small(), 80..90);
    maintain(dir.path(), &small()).unwrap();
    let log = Log::open(dir.path(), small()).unwrap();
    let order = [expected(50..80), expected(0..30), expected(80..90)].concat();
    assert_eq!(read_all!(log.read_from_start()), order);
    let late = [expected(60..80), expected(80..90)].concat();
    assert_eq!(read_all!(log.read_since(60_000).unwrap()), late);
}

#[test]
fn backwards_is_forwards_reversed() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..60);
    maintain(dir.path(), &small()).unwrap();
    fill(dir.path(), &small(), 60..75);
    let log = Log::open(dir.path(), small()).unwrap();
    let reversed: Vec<_> = expected(0..75).into_iter().rev().collect();
    assert_eq!(read_all!(log.read_backwards(None).unwrap()), reversed);

    let mut reader = log.read_from_start();
    let mut seqs = Vec::new();
    while let Some(Item::Record(entry)) = reader.next().unwrap() {
        seqs.push(entry.seq);
    }
    for (count, before) in seqs.iter().enumerate() {
        let reversed: Vec<_> = expected(0..count as u64).into_iter().rev().collect();
        assert_eq!(read_all!(log.read_backwards(Some(*before)).unwrap()), reversed);
    }
    assert!(seqs.is_sorted() && seqs[0] > Seq::START);
}

#[test]
fn spilled_records_are_merged_once() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &Options { spill: Spill::Always, ..small() }, 0..5);
    fill(dir.path(), &small(), 5..10);
    let log = Log::open(dir.path(), small()).unwrap();
    assert_eq!(read_all!(log.read_from_start()), expected(5..10));
    assert_eq!(maintain(dir.path(), &small()).unwrap().merged, 5);
    assert_eq!(maintain(dir.path(), &small()).unwrap().merged, 0);
    let order = [expected(5..10), expected(0..5)].concat();
    assert_eq!(read_all!(log.read_from_start()), order);
}

#[test]
fn the_same_record_written_again_is_read_once() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), &small(), 0..10);
    fill(dir.path(), &small(), 8..12);
    let log = Log::open(dir.path(), small()).unwrap();
    assert_eq!(read_all!(log.read_from_start()), expected(0..12));
}

#[test]
fn a_large_payload_is_compressed_and_round_trips() {
    let dir = tempfile::tempdir().unwrap();
    let payload = "the same again ".repeat(10_000);
    let mut appender = Appender::open(dir.path(), Options::default()).unwrap();
    let id = Id::random(1);
    let record = Record { id, kind: 1, schema: 1, codec: 0, payload: payload.as_bytes() };
    appender.append(&record).unwrap();
    appender.sync().unwrap();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    assert!(log.segments().unwrap()[0].bytes < 10_000);
    assert_eq!(read_all!(log.read_from_start()), [payload]);
}
