//! Makes a log like the one in `tests/fixtures/v1`: `cargo run -p claude-mem-log --example
//! make_golden_log -- DIRECTORY`.
//!
//! Each run makes different files, because ids of seals and of the log are random.
#![expect(clippy::unwrap_used, reason = "a panic is read by the developer who runs it")]
#![allow(unreachable_pub, missing_docs, reason = "the records are shared with the tests")]

#[path = "../tests/campaigns/golden_records.rs"]
mod golden_records;

use claude_mem_log::{Appender, Record, format, maintain};
use golden_records::{MOVED, MOVED_FROM, TOMBSTONE, id, kind, options, payload, schema};
use std::{env, fs, io::Write as _, path::Path};

/// A record whose original position contains other bytes.
const AGAIN: u64 = 82;

fn main() {
    let dir = env::args_os().nth(1).expect("usage: make_golden_log DIRECTORY");
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

/// Frames that compaction and a rewrite after a failed sync produce.
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
    // Its original position contains other bytes, so this copy must be returned.
    frame(AGAIN, format::FLAG_AGAIN, &[&(1_u64 << 32 | 64).to_le_bytes(), &payload(AGAIN)]);
    // This one is intact at its original position.
    frame(0, format::FLAG_AGAIN, &[&(1_u64 << 32 | 64).to_le_bytes(), &payload(0)]);
    let mut file = fs::OpenOptions::new().append(true).open(dir.join("active.log")).unwrap();
    file.write_all(&bytes).unwrap();
}
