//! Size of an index, for ranking. FTS5 stores it, so nothing is counted.

use super::Kind;
use crate::error::Result;
use rusqlite::{Connection, OptionalExtension};

/// The size of an index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Statistics {
    pub(crate) rows: f64,
    /// Words per row in the scored columns.
    pub(crate) average_words: f64,
}

/// The record with the totals.
const AVERAGES: i64 = 1;

impl Statistics {
    pub(crate) fn of(connection: &Connection, kind: Kind) -> Result<Self> {
        let sql = format!("select block from {}_data where id = ?1", kind.index());
        let block: Option<Vec<u8>> =
            connection.prepare_cached(&sql)?.query_row([AVERAGES], |row| row.get(0)).optional()?;
        let mut numbers = Numbers(block.as_deref().unwrap_or_default());
        let rows = numbers.next().unwrap_or(0) as f64;
        let words: u64 = numbers.take(kind.columns().len()).sum();
        Ok(Self { rows, average_words: (words as f64 / rows.max(1.0)).max(1.0) })
    }
}

/// SQLite's varints: one to nine bytes, highest bits first.
struct Numbers<'a>(&'a [u8]);

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut number = 0;
        for at in 0..9 {
            let byte = *self.0.get(at)?;
            let (bits, is_last) = if at == 8 { (8, true) } else { (7, byte < 0x80) };
            number = number << bits | u64::from(byte & (0xFF >> (8 - bits)));
            if is_last {
                self.0 = &self.0[at + 1..];
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::{TestLog, titled};

    #[test]
    fn statistics_are_read_from_the_index() {
        let mut scene = TestLog::new();
        for number in 0..300 {
            let tool = scene.tool("Read", "{}");
            scene.reply(&[tool], &titled(&format!("two words {}", number % 2)));
        }
        let statistics = Statistics::of(&scene.fold().connection, Kind::Observation).unwrap();
        assert_eq!(statistics, Statistics { rows: 300.0, average_words: 3.0 });
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let bytes = [0x05, 0x81, 0x00, 0xFF, 0xFF, 0x7F, 0x81];
        assert_eq!(Numbers(&bytes).collect::<Vec<_>>(), [5, 128, 0x1F_FFFF]);
        assert_eq!(Numbers(&[0xFF; 9]).next(), Some(u64::MAX));
    }
}
