//! The records of the golden log. The example that made it includes this file, too.

use claude_mem_log::{Id, Options, Spill, disk::RealDisk};
use std::sync::Arc;

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

pub const TIME_US: u64 = 1_750_000_000_000_000;
/// In the last segment, after those appended in the usual way.
pub const MOVED: u64 = 80;
/// Its first position, in the same segment.
pub const MOVED_FROM: u64 = 99_999;
pub const TOMBSTONE: u64 = 81;

pub fn id(number: u64) -> Id {
    Id::new(TIME_US + number * 1_000_000, number * 0x0123_4567_89AB_CDEF)
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
