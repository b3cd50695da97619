//! The tables as text, so that two databases can be compared byte for byte.

use crate::{
    error::{Error, Result},
    store::{Store, schema},
};
use rusqlite::types::ValueRef;
use std::{fmt::Write as _, io};

/// Where exactly reading goes on depends on when segments are rolled and compacted, so the place of the last
/// event stands for it.
const CHECKPOINT: &str =
    "select one, log, (select coalesce(max(seq), 0) from events where host = 0), events, at_us, kinds
     from checkpoint";

impl Store {
    /// The rows of a query, one per line, columns parted by `|`.
    pub fn dump(&self, sql: &str) -> Result<String> {
        let mut text = String::new();
        self.each_line(sql, |line| {
            text.push_str(line);
            text.push('\n');
            Ok(())
        })?;
        Ok(text)
    }

    /// Every table, in a fixed order. Only the inner tables of the full-text indexes are left out: they
    /// depend on when rows were added, and are checked by [`check_index`](Self::check_index) instead.
    pub fn write_dump(&self, out: &mut impl io::Write) -> Result<()> {
        let failed = |source| Error::Io { action: "write", path: "dump".into(), source };
        for table in self.tables()? {
            writeln!(out, "-- {table}").map_err(failed)?;
            let columns = self.stored_columns(&table)?;
            let order = if columns.len() > 1 { "1, 2" } else { "1" };
            let sql = match table.as_str() {
                "checkpoint" => CHECKPOINT.to_owned(),
                _ => format!("select {} from {table} order by {order}", columns.join(", ")),
            };
            self.each_line(&sql, |line| writeln!(out, "{line}").map_err(failed))?;
        }
        Ok(())
    }

    /// Whether the full-text indexes hold exactly what the tables do.
    pub fn check_index(&self) -> Result<()> {
        for table in ["observations_fts", "summaries_fts", "prompts_fts"] {
            let sql = format!("insert into {table} ({table}, rank) values ('integrity-check', 1)");
            self.connection.execute(&sql, ())?;
        }
        Ok(())
    }

    /// What is missing, and what SQLite finds wrong with the file, in its own words; nothing if it is whole.
    pub fn damage(&self) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare("pragma quick_check(20)")?;
        let lines = statement.query_map((), |row| row.get::<_, String>(0))?;
        let mut lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
        lines.retain(|line| line != "ok");
        let missing = schema::missing(&self.connection)?;
        lines.extend(missing.into_iter().map(|name| format!("`{name}` is missing")));
        Ok(lines)
    }

    fn tables(&self) -> Result<Vec<String>> {
        let sql = "select name from sqlite_schema where type = 'table' and name not like '%\\_fts%' escape '\\'
                   and name not like 'sqlite%' order by name";
        let mut statement = self.connection.prepare(sql)?;
        let names = statement.query_map((), |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    /// The columns of a table, without those that are computed from others.
    fn stored_columns(&self, table: &str) -> Result<Vec<String>> {
        let sql = "select name from pragma_table_info(?1) order by cid";
        let mut statement = self.connection.prepare_cached(sql)?;
        let names = statement.query_map([table], |row| row.get(0))?;
        Ok(names.collect::<rusqlite::Result<_>>()?)
    }

    fn each_line(&self, sql: &str, mut line: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.column_count();
        let mut rows = statement.query(())?;
        let mut text = String::new();
        while let Some(row) = rows.next()? {
            text.clear();
            for column in 0..columns {
                if column > 0 {
                    text.push('|');
                }
                write_value(row.get_ref(column)?, &mut text);
            }
            line(&text)?;
        }
        Ok(())
    }
}

fn write_value(value: ValueRef<'_>, text: &mut String) {
    let written = match value {
        ValueRef::Null => Ok(()),
        ValueRef::Integer(number) => write!(text, "{number}"),
        ValueRef::Real(number) => write!(text, "{number}"),
        ValueRef::Text(bytes) => write!(text, "{}", String::from_utf8_lossy(bytes)),
        ValueRef::Blob(bytes) => bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}")),
    };
    written.expect("a string takes everything");
}
