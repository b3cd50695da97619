//! The database: what is kept of it, and where folding stands in it.

pub(crate) mod files;
pub(crate) mod open;
pub(crate) mod schema;
pub(crate) mod sql_numbers;
pub(crate) mod system;

use crate::{
    error::Result,
    store::{
        files::OpenFile,
        sql_numbers::{number, seq},
    },
};
use claude_mem_events::Seq;
use rusqlite::Connection;
use std::{
    cell::Cell,
    path::{Path, PathBuf},
};

/// The types of observations of the mode that everybody starts with.
pub const KINDS: &[&str] = &[
    "bugfix",
    "feature",
    "refactor",
    "change",
    "discovery",
    "decision",
    "security_alert",
    "security_note",
    "sensitive",
];

/// Choices made by whoever folds.
#[derive(Debug, Clone)]
pub struct Options {
    /// Types of observations that replies may name. With other types everything is drawn again.
    pub kinds: Vec<String>,
    /// Events folded in one transaction.
    pub batch_events: usize,
    /// Where copies of other machines' logs are; empty to leave what is there of them as it is.
    pub foreign: PathBuf,
}

impl Default for Options {
    fn default() -> Self {
        let kinds = KINDS.iter().map(ToString::to_string).collect();
        Self { kinds, batch_events: 1000, foreign: PathBuf::new() }
    }
}

/// The tables drawn from a log.
#[derive(Debug)]
pub struct Store {
    pub(crate) connection: Connection,
    pub(crate) options: Options,
    /// The files that are open; nothing for one in memory.
    pub(crate) file: Option<OpenFile>,
    /// Whether damage noted earlier was compared with the log since this was opened.
    pub(crate) are_gaps_checked: Cell<bool>,
}

/// Where folding stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The log that was folded; `None` before the first event.
    pub log: Option<[u8; 16]>,
    /// Where reading goes on.
    pub position: Seq,
    /// How many events were folded.
    pub events: u64,
    /// The latest time of an event.
    pub at_us: u64,
}

impl Store {
    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// Where folding stands.
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

    /// Whether another file has taken the place of the one that is open.
    pub fn is_replaced(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_replaced)
    }

    /// Whether the write-ahead log was deleted or replaced under this connection. What is
    /// committed from then on is lost, and what was committed before may be incomplete.
    pub fn is_wal_replaced(&self) -> bool {
        self.file.as_ref().is_some_and(OpenFile::is_wal_replaced)
    }
}

/// Adds the checkpoint of a new database: nothing is folded yet.
pub(crate) fn insert_checkpoint(connection: &Connection, options: &Options) -> Result<()> {
    let sql = "insert or ignore into checkpoint (one, position, events, at_us, kinds)
               values (1, 0, 0, 0, ?1)";
    connection.execute(sql, [options.kinds.join(",")])?;
    Ok(())
}
