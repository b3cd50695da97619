//! Numbers as they are read from rows: `SQLite` knows signed ones alone.

use claude_mem_events::Seq;
use rusqlite::{Result, Row, RowIndex};

/// A number that is never below zero.
pub(crate) fn number(row: &Row<'_>, column: impl RowIndex) -> Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// A number that is never below zero, if there is one.
pub(crate) fn number_if_any(row: &Row<'_>, column: impl RowIndex) -> Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|number| number as u64))
}

/// A place in the log.
pub(crate) fn seq(row: &Row<'_>, column: impl RowIndex) -> Result<Seq> {
    number(row, column).map(Seq::from_raw)
}
