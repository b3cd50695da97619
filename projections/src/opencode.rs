//! Reads the database in which OpenCode keeps its sessions. Never writes to it.

use crate::{
    error::{Error, Result},
    upstream::{check_file, connect},
};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;

/// A snapshot of the database, taken when it was opened.
#[derive(Debug)]
pub struct OpenCodeRecords {
    connection: Connection,
}

/// A session of OpenCode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCodeSession {
    /// Its id.
    pub id: String,
    /// The session that started it, if it is a subagent's.
    pub parent: Option<String>,
    /// Its working directory.
    pub directory: String,
    /// Its start, in milliseconds since 1970.
    pub started_at_ms: u64,
}

impl OpenCodeRecords {
    /// Opens the database at `path`. OpenCode may be writing to it.
    pub fn open(path: &Path) -> Result<Self> {
        check_file(path)?;
        let connection = connect(path)?;
        let sql = "select count(*) from sqlite_schema where name in ('session', 'message', 'part')";
        let tables: u32 = connection.query_row(sql, (), |row| row.get(0))?;
        if tables < 3 {
            let why = "it has no tables `session`, `message` and `part`".into();
            return Err(Error::Unusable { path: path.into(), why });
        }
        Ok(Self { connection })
    }

    /// All sessions, the earliest first.
    pub fn sessions(&self) -> Result<Vec<OpenCodeSession>> {
        let sql =
            "select id, parent_id, directory, time_created from session order by time_created, id";
        let mut statement = self.connection.prepare(sql)?;
        let sessions = statement.query_map((), |row| {
            let started_at_ms: i64 = row.get(3)?;
            Ok(OpenCodeSession {
                id: row.get(0)?,
                parent: row.get(1)?,
                directory: row.get(2)?,
                started_at_ms: u64::try_from(started_at_ms).unwrap_or(0),
            })
        })?;
        Ok(sessions.collect::<rusqlite::Result<_>>()?)
    }

    /// Calls `each` with every part of a session's messages in order, as JSON with `timestamp`,
    /// `message` and `part`.
    pub fn parts<E: From<Error>>(
        &self,
        session: &str,
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let refused = |error| E::from(Error::Sqlite(error));
        let sql = "select part.time_created, message.data, part.data from part
                       join message on message.id = part.message_id
                   where part.session_id = ?1 order by part.id";
        let mut statement = self.connection.prepare_cached(sql).map_err(refused)?;
        let mut rows = statement.query([session]).map_err(refused)?;
        while let Some(row) = rows.next().map_err(refused)? {
            let timestamp: i64 = row.get(0).map_err(refused)?;
            let (message, part): (String, String) =
                (row.get(1).map_err(refused)?, row.get(2).map_err(refused)?);
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
            let record = json!({"timestamp": timestamp, "message": value(&message),
                "part": value(&part)});
            each(record.to_string().as_bytes())?;
        }
        Ok(())
    }
}
