//! A log in format version 1 as it is on users' disks, and what is in it.
//!
//! The files in `tests/fixtures/v1` were made once, by [`make`], and never change again. A format that
//! cannot read them is a new version with fixtures of its own.

use claude_mem_log::{
    Appender, Id, Item, Log, Options, Record, Spill, disk::RealDisk, format, maintain, verify,
};
use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    sync::Arc,
};

pub fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/v1")
}

pub fn options() -> Options {
    Options {
        segment_bytes_max: 1400,
        compress_bytes_min: 300,
        index_interval_bytes: 500,
        reserve_bytes: 0,
        spill: Spill::Auto,
        disk: Arc::new(RealDisk),
        ..Options::default()
    }
}

const TIME_US: u64 = 1_750_000_000_000_000;
/// In the last segment, after those appended in the usual way.
pub const MOVED: u64 = 80;
/// Its first place, in the same segment.
const MOVED_FROM: u64 = 99_999;
pub const TOMBSTONE: u64 = 81;
pub const AGAIN: u64 = 82;
pub const COUNT: u64 = 83;

pub fn id(number: u64) -> Id {
    Id::new(TIME_US + number * 1_000_000, number * 0x0123_4567_89AB_CDEF)
}

pub fn number(id: Id) -> u64 {
    (id.time_us() - TIME_US) / 1_000_000
}

pub fn kind(number: u64) -> u16 {
    [1, 2, 3, 700, 0xFEFF][number as usize % 5]
}

pub fn schema(number: u64) -> u16 {
    1 + number as u16 % 3
}

/// Empty, short, incompressible, and long enough to be compressed.
pub fn payload(number: u64) -> Vec<u8> {
    match number {
        TOMBSTONE => Vec::new(),
        _ if number % 11 == 3 => Vec::new(),
        _ if number % 7 == 2 => format!("record {number} ").repeat(30).into_bytes(),
        _ => format!("record {number}, ü, \u{1F600}").into_bytes(),
    }
}

/// Made the fixture. Running it again would make other files: ids of seals and of the log are random.
/// `CLAUDE_MEM_MAKE_FIXTURE=DIRECTORY cargo test -p claude-mem-log --test campaigns make_fixture`
#[test]
fn make_fixture_where_asked() {
    let Some(dir) = std::env::var_os("CLAUDE_MEM_MAKE_FIXTURE") else { return };
    make(Path::new(&dir));
}

fn make(dir: &Path) {
    let mut appender = Appender::open(dir, options()).unwrap();
    for number in 0..MOVED {
        let payload = payload(number);
        let (id, kind, schema) = (id(number), kind(number), schema(number));
        appender.append(&Record { id, kind, schema, codec: 9, payload: &payload }).unwrap();
        if number == 55 {
            maintain(dir, &options()).unwrap();
        }
    }
    append_special(dir);
    appender.sync().unwrap();
}

/// Frames that compaction and rescue write.
fn append_special(dir: &Path) {
    let active = fs::read(dir.join("active.log")).unwrap();
    let header = format::SegmentHeader::decode(&active).unwrap();
    let mut bytes = Vec::new();
    let mut frame = |number: u64, flags: u8, parts: &[&[u8]]| {
        let (id, kind, schema) = (id(number), kind(number), schema(number));
        let fields = format::FrameFields { kind, schema, codec: 9, flags, id };
        format::encode_frame(fields, parts, header.salt(), &mut bytes);
    };
    let seq = (header.number << 32 | MOVED_FROM).to_le_bytes();
    frame(MOVED, format::FLAG_MOVED, &[&seq, &payload(MOVED)]);
    frame(TOMBSTONE, format::FLAG_TOMBSTONE, &[]);
    // Where it first was there is now something else, so this is the one to be given.
    frame(AGAIN, format::FLAG_AGAIN, &[&(1_u64 << 32 | 64).to_le_bytes(), &payload(AGAIN)]);
    // And this one is whole where it first was.
    frame(0, format::FLAG_AGAIN, &[&(1_u64 << 32 | 64).to_le_bytes(), &payload(0)]);
    let mut file = fs::OpenOptions::new().append(true).open(dir.join("active.log")).unwrap();
    file.write_all(&bytes).unwrap();
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
