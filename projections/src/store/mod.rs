//! The database: its options, its checkpoint, and its files.

pub(crate) mod files;
pub(crate) mod open;
pub(crate) mod row;
pub(crate) mod schema;
pub(crate) mod sql_values;
pub(crate) mod system;

use crate::{
    error::Result,
    store::{
        files::OpenFile,
        sql_values::{number, seq},
    },
};
use claude_mem_events::Seq;
use rusqlite::Connection;
use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

/// The observation types of the default mode.
pub const KINDS: &[&str] = &[
    "bugfix",
    "feature",
    "refactor",
    "change",
    "discovery",
    "decision",
    "rule",
    "security_alert",
    "security_note",
    "sensitive",
];

/// Options for folding.
#[derive(Debug, Clone)]
pub struct Options {
    /// Observation types that replies may use. A change rebuilds the database.
    pub kinds: Vec<String>,
    /// Events folded in one transaction.
    pub batch_events: usize,
    /// The directory with the copies of other machines' logs. If empty, rows of other machines stay
    /// unchanged.
    pub foreign: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        let kinds = KINDS.iter().map(ToString::to_string).collect();
        Self { kinds, batch_events: 1000, foreign: PathBuf::new() }
    }
}

/// The database that is folded from a log.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) options: Options,
    /// The files that are open; `None` for a database in memory.
    pub(crate) file: Option<OpenFile>,
    /// Whether the recorded gaps were compared with the log since this was opened.
    pub(crate) are_gaps_checked: Cell<bool>,
}

/// How far the log is folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log that was folded; `None` before the first event.
    pub log: Option<[u8; 16]>,
    /// Where reading continues.
    pub position: Seq,
    /// Number of events folded.
    pub events: u64,
    /// The latest time of an event.
    pub at_us: u64,
}

impl Store {
    /// The path of the database; `None` for one in memory.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// The folder with the logs of other hosts.
    pub fn foreign(&self) -> &Path {
        &self.options.foreign
    }

    /// How far the log is folded.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        let sql = "select log, position, events, at_us from checkpoint";
        let found = self.connection.prepare_cached(sql)?.query_row((), |row| {
            Ok(Checkpoint {
                log: row.get(0)?,
                position: seq(row, 1)?,
                events: number(row, 2)?,
                at_us: number(row, 3)?,
            })
        });
        Ok(found?)
    }

    /// Whether the database file was replaced since it was opened.
    pub fn is_replaced(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_replaced)
    }

    /// Whether the write-ahead log was deleted or replaced under this connection. Later commits are
    /// lost, and earlier ones may be incomplete.
    pub fn is_wal_replaced(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_wal_replaced)
    }
}

/// Adds the checkpoint of a new database.
pub(crate) fn insert_checkpoint(connection: &Connection, options: &Options) -> Result<()> {
    let sql = "insert or ignore into checkpoint (one, position, events, at_us, kinds)
               values (1, 0, 0, 0, ?1)";
    connection.execute(sql, [options.kinds.join(",")])?;
    Ok(())
}
