//! Conversions between Rust values and SQL columns. SQLite has only signed integers.

use claude_mem_events::Seq;
use rusqlite::{Result, Row, RowIndex};

/// An unsigned number.
pub(crate) fn number(row: &Row<'_>, column: impl RowIndex) -> Result<u64> {
    Ok(row.get::<_, i64>(column)? as u64)
}

/// An unsigned number or null.
pub(crate) fn number_if_any(row: &Row<'_>, column: impl RowIndex) -> Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|number| number as u64))
}

/// A place in the log.
pub(crate) fn seq(row: &Row<'_>, column: impl RowIndex) -> Result<Seq> {
    number(row, column).map(Seq::from_raw)
}

/// The stored form of a list: JSON, or null if it is empty.
pub(crate) fn list(items: &[String]) -> Option<String> {
    (!items.is_empty()).then(|| serde_json::to_string(items).expect("strings can be written"))
}

/// Reads a stored list.
pub(crate) fn items(list: Option<&str>) -> Vec<String> {
    list.and_then(|list| serde_json::from_str(list).ok()).unwrap_or_default()
}

/// The stored form of a text: null if it is empty.
pub(crate) fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
