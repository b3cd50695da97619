//! Sample logs and records.

use crate::bench::BenchResult;
use claude_mem_log::{Appender, Id, Options, Record, maintain};
use std::path::Path;

pub(super) const PAYLOAD_BYTES: usize = 1024;
/// Records per call when a log is filled.
const BATCH: u64 = 256;
/// The time of the first record: any will do.
const TIME_US: u64 = 1_763_000_000_000_000;
/// Time between two records: real hooks are far slower, and one process never uses the same
/// microsecond twice.
const INTERVAL_US: u64 = 3;

/// Without compression, so that the figures are about the log itself.
pub(super) fn options() -> Options {
    Options { compress_bytes_min: usize::MAX, ..Options::default() }
}

/// Incompressible bytes (xorshift).
#[derive(Debug, Clone)]
pub(super) struct Noise(u64);

impl Default for Noise {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Noise {
    pub(super) fn word(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn payload(&mut self) -> Vec<u8> {
        (0..PAYLOAD_BYTES / 8).flat_map(|_| self.word().to_le_bytes()).collect()
    }
}

/// The order of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Ascending, as in one process.
    Rising,
    /// Descending: the worst case for a reader, which must not return a record twice.
    Random,
}

/// Creates a log with this many records in `dir`, with every full segment sealed.
pub(super) fn fill_sample(dir: &Path, records: u64, order: Order) -> BenchResult<()> {
    let mut appender = Appender::open(dir, options())?;
    let mut noise = Noise::default();
    let mut number = 0;
    while number < records {
        let numbers = number..records.min(number + BATCH);
        number = numbers.end;
        let batch: Vec<_> =
            numbers.map(|number| (id(number, order, &mut noise), noise.payload())).collect();
        let batch: Vec<_> = batch.iter().map(|(id, payload)| record(*id, payload)).collect();
        appender.append_all(&batch)?;
    }
    maintain(dir, &options())?;
    Ok(())
}

fn id(number: u64, order: Order, noise: &mut Noise) -> Id {
    let number = match order {
        Order::Rising => number,
        Order::Random => noise.word() % (1 << 30),
    };
    Id::new(TIME_US + number * INTERVAL_US, noise.word())
}

pub(super) fn record(id: Id, payload: &[u8]) -> Record<'_> {
    Record { id, kind: 1, schema: 1, codec: 0, payload }
}
