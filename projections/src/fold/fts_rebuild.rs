//! Full-text indexing during a rebuild, in its own thread and file.
//!
//! Tokenizing takes as long as writing all rows, and SQLite allows one writer per file. So the
//! indexes are built in another file, and copied page by page when they are complete. The triggers
//! of the schema define what belongs in them; during a rebuild they send their inserts to the
//! indexing thread.

use crate::{
    error::{Error, Result},
    store::system::SCRATCH_PAGE_BYTES,
};
use rusqlite::{
    Connection, functions::FunctionFlags, params_from_iter, types::Value, types::ValueRef,
};
use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc},
    thread::{self, JoinHandle},
};

/// The full-text tables.
pub(crate) const INDEXES: [&str; 3] = ["observations_fts", "summaries_fts", "prompts_fts"];
/// The tables that each of them consists of. The fourth, `config`, stays as the schema created it.
const PARTS: [&str; 3] = ["data", "idx", "docsize"];
/// How much of an index is collected in memory before it is written. More means fewer segments to
/// merge, but more cache misses: with 2 MB indexing takes a tenth less time than with 4 MB, and
/// less than 2 MB is not faster.
const GATHERED_BYTES_MAX: i64 = 2 << 20;
/// Bytes sent at once, and how many such batches may be queued.
const PARCEL_BYTES: usize = 256 << 10;
const PARCELS_MAX: usize = 8;

/// Indexes being built.
pub(crate) struct Indexing {
    outbox: Arc<Mutex<Outbox>>,
    thread: Option<JoinHandle<Result<()>>>,
    path: PathBuf,
}

/// An insert that a trigger would have made.
struct Insertion {
    sql: String,
    values: Vec<Value>,
}

/// Inserts that are not sent yet.
struct Outbox {
    sender: Option<mpsc::SyncSender<Vec<Insertion>>>,
    parcel: Vec<Insertion>,
    bytes: usize,
}

impl Indexing {
    /// Starts building the indexes of `rows` in a new file at `path`. The `triggers` that fill them
    /// must be dropped from the schema before.
    pub(crate) fn begin(rows: &Connection, triggers: &[String], path: PathBuf) -> Result<Self> {
        let (sender, parcels) = mpsc::sync_channel(PARCELS_MAX);
        let outbox = Outbox { sender: Some(sender), parcel: Vec::new(), bytes: 0 };
        let outbox = Arc::new(Mutex::new(outbox));
        hand_over(rows, triggers, &outbox)?;
        let tables = definitions(rows)?;
        let file = path.clone();
        let thread = Some(thread::spawn(move || build_indexes(&file, &tables, &parcels)));
        Ok(Self { outbox, thread, path })
    }

    /// Waits until everything is indexed, and copies the indexes into the database.
    pub(crate) fn finish(mut self, rows: &Connection) -> Result<()> {
        self.join()?;
        let path = self.path.to_str().ok_or_else(|| Error::Io {
            action: "attach",
            path: self.path.clone(),
            source: std::io::ErrorKind::InvalidFilename.into(),
        })?;
        rows.execute("attach ?1 as built", [path])?;
        let copy = rows.unchecked_transaction()?;
        for index in INDEXES {
            for part in PARTS {
                copy.execute_batch(&format!(
                    "delete from main.{index}_{part};
                     insert into main.{index}_{part} select * from built.{index}_{part}"
                ))?;
            }
        }
        copy.commit()?;
        rows.execute_batch("detach built")?;
        stop_handing_over(rows)
    }

    fn join(&mut self) -> Result<()> {
        lock(&self.outbox).close();
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            Some(Ok(built)) => built,
            None => Ok(()),
        }
    }
}

impl Drop for Indexing {
    fn drop(&mut self) {
        // Dropped before `finish` only after another error, which is the one to report.
        let _ = self.join();
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Outbox {
    fn put(&mut self, insertion: Insertion, bytes: usize) {
        self.parcel.push(insertion);
        self.bytes += bytes;
        if self.bytes >= PARCEL_BYTES {
            self.send();
        }
    }

    fn send(&mut self) {
        self.bytes = 0;
        let parcel = std::mem::take(&mut self.parcel);
        if let Some(sender) = &self.sender {
            // The channel is closed only if indexing failed; `join` returns that error.
            let _ = sender.send(parcel);
        }
    }

    fn close(&mut self) {
        self.send();
        self.sender = None;
    }
}

fn lock(outbox: &Mutex<Outbox>) -> MutexGuard<'_, Outbox> {
    outbox.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates the triggers as temporary ones that send their inserts to the indexing thread.
fn hand_over(rows: &Connection, triggers: &[String], outbox: &Arc<Mutex<Outbox>>) -> Result<()> {
    let outbox = Arc::clone(outbox);
    rows.create_scalar_function("hand_over", -1, FunctionFlags::SQLITE_UTF8, move |call| {
        let sql = call.get(0)?;
        let values = (1..call.len()).map(|index| call.get_raw(index));
        let bytes = values.clone().map(weight).sum();
        let values = values.map(Value::try_from).collect::<std::result::Result<_, _>>()?;
        lock(&outbox).put(Insertion { sql, values }, bytes);
        Ok(None::<bool>)
    })?;
    for trigger in triggers {
        rows.execute_batch(&redirected_trigger(trigger))?;
    }
    Ok(())
}

fn stop_handing_over(rows: &Connection) -> Result<()> {
    let mut names = rows.prepare("select name from sqlite_temp_schema where type = 'trigger'")?;
    let names =
        names.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?;
    for name in names {
        rows.execute_batch(&format!("drop trigger temp.{name}"))?;
    }
    Ok(rows.remove_function("hand_over", -1)?)
}

fn weight(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
        _ => 8,
    }
}

/// Turns a trigger of the form `insert into INDEX (COLUMNS) values (…)` into one that calls
/// `hand_over`.
fn redirected_trigger(trigger: &str) -> String {
    let (head, insertion) = trigger.split_once("insert into ").expect("it inserts");
    let (target, values) = insertion.split_once("values (").expect("it inserts values");
    // SQLite normalizes the first words.
    let head = &head["create trigger".len()..];
    let marks = vec!["?"; target.split(',').count()].join(", ");
    format!(
        "create temp trigger{head} select hand_over('insert into {target}values ({marks})', \
         {values}"
    )
}

/// The statements that create the full-text tables.
fn definitions(rows: &Connection) -> Result<Vec<String>> {
    let sql = "select sql from sqlite_schema where name = ?1";
    let read = |index| rows.query_row(sql, [index], |row| row.get(0));
    Ok(INDEXES.into_iter().map(read).collect::<rusqlite::Result<_>>()?)
}

fn build_indexes(
    path: &Path,
    tables: &[String],
    parcels: &mpsc::Receiver<Vec<Insertion>>,
) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", SCRATCH_PAGE_BYTES)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let transaction = connection.unchecked_transaction()?;
    let configure = |index: &str, name: &str, value: i64| {
        let sql = format!("insert into {index} ({index}, rank) values (?1, ?2)");
        transaction.execute(&sql, (name, value))
    };
    for (index, table) in INDEXES.into_iter().zip(tables) {
        transaction.execute_batch(table)?;
        configure(index, "hashsize", GATHERED_BYTES_MAX)?;
        configure(index, "automerge", 0)?;
    }
    let mut with_deletions = BTreeSet::new();
    for insertion in parcels.iter().flatten() {
        let Insertion { sql, values } = insertion;
        transaction.prepare_cached(&sql)?.execute(params_from_iter(&values))?;
        // A command to an index names the index as a column.
        if let Some(index) = INDEXES.iter().find(|index| sql.matches(**index).nth(1).is_some()) {
            with_deletions.insert(index);
        }
    }
    // Deleted entries are only marked so far; a full merge removes them.
    for index in with_deletions {
        transaction.execute(&format!("insert into {index} ({index}) values ('optimize')"), ())?;
    }
    Ok(transaction.commit()?)
}
