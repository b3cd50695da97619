//! Reads rows into structs whose fields are named like the columns. SQLite has only signed integers
//! and no lists.

use super::{Store, sql_values::items};
use crate::error::Result;
use claude_mem_events::Seq;
use rusqlite::{Params, Row};

/// A value that a column can have.
pub(crate) trait Column: Sized {
    fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self>;
}

macro_rules! columns {
    ($($type:ty),*) => { $(
        impl Column for $type {
            fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self> {
                row.get(name)
            }
        }
    )* };
}

columns!(bool, u32, i64, String, Option<i64>, Option<u32>, Option<String>);

impl Column for u64 {
    fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self> {
        Ok(row.get::<_, i64>(name)? as Self)
    }
}

impl Column for Option<u64> {
    fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self> {
        Ok(row.get::<_, Option<i64>>(name)?.map(|number| number as u64))
    }
}

impl Column for Seq {
    fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self> {
        u64::read(row, name).map(Self::from_raw)
    }
}

/// A list in JSON; null if it is empty.
impl Column for Vec<String> {
    fn read(row: &Row<'_>, name: &str) -> rusqlite::Result<Self> {
        Ok(items(row.get::<_, Option<String>>(name)?.as_deref()))
    }
}

/// `from_row!(row, Cost { day, tokens_in } { label: "x" })`: fields from the columns of the same
/// names, and others.
macro_rules! from_row {
    ($row:expr, $type:ident { $($field:ident),* $(,)? } $({ $($other:tt)* })?) => {
        $type {
            $($field: $crate::store::row::Column::read($row, stringify!($field))?,)*
            $($($other)*)?
        }
    };
}
pub(crate) use from_row;

impl Store {
    /// The rows of a query.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_map(values, read)?.collect::<rusqlite::Result<_>>()?)
    }
}
