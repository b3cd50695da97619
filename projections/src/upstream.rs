//! Reads the database of the TypeScript claude-mem. Never writes to it.
//!
//! Its schema had about fifty versions, and its version numbers are unreliable. So columns are read
//! as they are found, the two renamed ones under their newer names, and a missing table has no
//! rows.

use crate::{
    error::{Error, Result},
    store::sql_values::number,
};
use rusqlite::{Connection, ErrorCode, OpenFlags, Row, types::ValueRef};
use serde_json::{Map, Value};
use std::{
    fs::{self, File},
    io::Read,
    path::Path,
    time::Duration,
};

/// How long to wait for a writer.
const BUSY: Duration = Duration::from_secs(2);

/// The first bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Old and new names of renamed columns.
const RENAMED: [(&str, &str); 2] =
    [("claude_session_id", "content_session_id"), ("sdk_session_id", "memory_session_id")];

/// A table that is imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpstreamTable {
    /// Sessions of the client.
    Sessions,
    /// Prompts of the user.
    Prompts,
    /// Observations.
    Observations,
    /// Summaries, one for each stop.
    Summaries,
    /// Tool uses that were never distilled.
    Pending,
}

impl UpstreamTable {
    /// All of them; later ones refer to earlier ones.
    pub const ALL: [Self; 5] =
        [Self::Sessions, Self::Prompts, Self::Observations, Self::Summaries, Self::Pending];

    /// The name of the table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sdk_sessions",
            Self::Prompts => "user_prompts",
            Self::Observations => "observations",
            Self::Summaries => "session_summaries",
            Self::Pending => "pending_messages",
        }
    }
}

/// A row, without its empty columns.
pub type UpstreamRow = Map<String, Value>;

/// A snapshot of the database, taken when it was opened.
#[derive(Debug)]
pub struct Upstream {
    connection: Connection,
}

impl Upstream {
    /// Opens the database at `path`. Another program may be writing to it.
    pub fn open(path: &Path) -> Result<Self> {
        check_file(path)?;
        let upstream = Self { connection: connect(path)? };
        for table in [UpstreamTable::Sessions, UpstreamTable::Observations] {
            if !upstream.has(table.name())? {
                let why = format!("it has no table `{}`", table.name());
                return Err(Error::Unusable { path: path.into(), why });
            }
        }
        Ok(upstream)
    }

    /// Identifies this database among others of its kind: the time it was created.
    pub fn origin(&self) -> Result<String> {
        let found = [
            ("schema_versions", "select applied_at from schema_versions order by id limit 1"),
            ("sdk_sessions", "select started_at from sdk_sessions order by id limit 1"),
        ];
        for (table, sql) in found {
            if !self.has(table)? {
                continue;
            }
            let mut statement = self.connection.prepare(sql)?;
            if let Some(row) = statement.query(())?.next()?
                && let Some(Value::String(moment)) = value(row.get_ref(0)?)
            {
                return Ok(moment);
            }
        }
        Ok(String::new())
    }

    /// Calls `each` with every row of a table, in insertion order.
    pub fn read<E: From<Error>>(
        &self,
        table: UpstreamTable,
        mut each: impl FnMut(UpstreamRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |error| E::from(Error::Sqlite(error));
        if !self.has(table.name())? {
            return Ok(());
        }
        let sql = format!("select * from {} order by id", table.name());
        let mut statement = self.connection.prepare(&sql).map_err(refused)?;
        let names: Vec<String> = statement.column_names().map(newer_name).collect();
        let mut rows = statement.query(()).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            each(columns(row, &names).map_err(refused)?)?;
        }
        Ok(())
    }

    /// The number of rows of all tables that are imported. A damaged table counts as empty.
    pub fn rows(&self) -> u64 {
        let count = |table: UpstreamTable| {
            let sql = format!("select count(*) from {}", table.name());
            self.connection.query_row(&sql, (), |row| number(row, 0)).unwrap_or(0)
        };
        UpstreamTable::ALL.into_iter().map(count).sum()
    }

    fn has(&self, table: &str) -> Result<bool> {
        let sql = "select 1 from sqlite_schema where type = 'table' and name = ?1";
        Ok(self.connection.prepare_cached(sql)?.exists([table])?)
    }
}

/// Checks the first bytes, because SQLite treats an empty file as a new database.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    let failed = |source| Error::Io { action: "read", path: path.into(), source };
    let unusable = |why: &str| Err(Error::Unusable { path: path.into(), why: why.into() });
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return unusable("it is not a file");
    }
    let mut header = Vec::new();
    File::open(path).and_then(|file| file.take(16).read_to_end(&mut header)).map_err(failed)?;
    match header.as_slice() {
        [] => unusable("it is empty"),
        MAGIC => Ok(()),
        _ => unusable("it is not a database"),
    }
}

pub(crate) fn connect(path: &Path) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = Connection::open_with_flags(path, flags).and_then(begin);
    let is_unwritable = |error: &rusqlite::Error| {
        matches!(error.sqlite_error_code(), Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly))
    };
    match opened {
        // With a write-ahead log, a reader needs write access, too. Without one the file alone is
        // complete.
        Err(error) if is_unwritable(&error) && !has_write_ahead_log(path) => {
            let flags = flags | OpenFlags::SQLITE_OPEN_URI;
            Ok(Connection::open_with_flags(immutable(path), flags).and_then(begin)?)
        }
        opened => Ok(opened?),
    }
}

/// One read transaction for as long as it is open, so that all tables are consistent.
fn begin(connection: Connection) -> rusqlite::Result<Connection> {
    connection.busy_timeout(BUSY)?;
    connection.execute_batch("begin")?;
    connection.query_row("select count(*) from sqlite_schema", (), |_| Ok(()))?;
    Ok(connection)
}

fn has_write_ahead_log(path: &Path) -> bool {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    fs::metadata(name).is_ok_and(|found| found.len() > 0)
}

fn immutable(path: &Path) -> String {
    let path = path.to_string_lossy();
    let path = path.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{path}?immutable=1")
}

fn newer_name(name: &str) -> String {
    let renamed = RENAMED.iter().find(|(older, _)| *older == name);
    renamed.map_or(name, |(_, newer)| newer).to_owned()
}

fn columns(row: &Row<'_>, names: &[String]) -> rusqlite::Result<UpstreamRow> {
    let mut columns = Map::new();
    for (index, name) in names.iter().enumerate() {
        if let Some(value) = value(row.get_ref(index)?) {
            columns.insert(name.clone(), value);
        }
    }
    Ok(columns)
}

fn value(value: ValueRef<'_>) -> Option<Value> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.into()),
        ValueRef::Real(number) if number.fract() == 0.0 => Some((number as i64).into()),
        ValueRef::Real(number) => Some(number.into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned().into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(sql: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("claude-mem.db");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        (dir, path)
    }

    const OLD: &str = "create table sdk_sessions (id integer primary key, claude_session_id text,
            sdk_session_id text, started_at text);
        create table observations (id integer primary key, sdk_session_id text, text text,
        odd blob);
        insert into sdk_sessions values (1, 'c', 'm', '2025-01-01T00:00:00.000Z');
        insert into observations values (7, 'm', null, x'41ff'), (3, 'm', 'first', 1.5);";

    #[test]
    fn renamed_columns_have_their_newer_names_and_absent_tables_no_rows() {
        let (_dir, path) = made(OLD);
        let upstream = Upstream::open(&path).unwrap();
        let mut rows = Vec::new();
        for table in UpstreamTable::ALL {
            let read: Result<()> = upstream.read(table, |row| {
                rows.push(Value::Object(row).to_string());
                Ok(())
            });
            read.unwrap();
        }
        let expected = [
            r#"{"content_session_id":"c","id":1,"memory_session_id":"m","started_at":"2025-01-01T00:00:00.000Z"}"#,
            r#"{"id":3,"memory_session_id":"m","odd":1.5,"text":"first"}"#,
            r#"{"id":7,"memory_session_id":"m","odd":"A�"}"#,
        ];
        let sorted = |text: &String| {
            let row: std::collections::BTreeMap<String, Value> =
                serde_json::from_str(text).unwrap();
            serde_json::to_string(&row).unwrap()
        };
        assert_eq!(rows.iter().map(sorted).collect::<Vec<_>>(), expected);
        assert_eq!(upstream.origin().unwrap(), "2025-01-01T00:00:00.000Z");
    }

    #[test]
    fn a_database_of_another_program_is_rejected_and_unchanged() {
        let (dir, path) = made("create table other (id integer)");
        let error = Upstream::open(&path).unwrap_err().to_string();
        assert!(error.contains("no table `sdk_sessions`"), "{error}");
        for (bytes, why) in
            [(&b""[..], "it is empty"), (b"SQLite format 2", "it is not a database")]
        {
            fs::write(&path, bytes).unwrap();
            let error = Upstream::open(&path).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        assert!(Upstream::open(dir.path()).unwrap_err().to_string().contains("it is not a file"));
        assert!(Upstream::open(&dir.path().join("none")).is_err());
    }
}
