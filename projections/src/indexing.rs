//! Full-text indexes made while rows are drawn: one thread writes rows, another one takes their words.
//!
//! Each index moves into a file of its own for that time. A view stands in its place, and hands on what the
//! triggers say to it; so whatever the triggers keep true afterwards is true here, in the same order. In the
//! end the inner tables are copied, as they are.

use crate::{
    error::{Error, Result},
    store::beside,
};
use rusqlite::{Connection, functions::FunctionFlags, params_from_iter, types::Value};
use std::{
    cell::RefCell,
    panic::AssertUnwindSafe,
    path::{Path, PathBuf},
    sync::mpsc::{self, Receiver, SyncSender},
    thread::{self, JoinHandle},
};

/// What is put behind the name of a database for the file that its indexes are made in.
pub(crate) const SUFFIX: &str = "-index";
/// The function by which the views hand on.
const HAND_ON: &str = "index_elsewhere";
/// Rows that are handed on together.
const TOGETHER: usize = 128;
/// How many times as many may wait to be indexed.
const WAITING_MAX: usize = 8;
/// How much of an index is gathered in memory before it is written. Larger pieces mean fewer merges, but
/// looking up a word in more than the processor's cache holds took 40 % more time.
const PIECE_BYTES_MAX: i64 = 8 << 20;
/// What is left in place for folding on: SQLite's own choices.
const CHOICES: [(&str, i64); 2] = [("hashsize", 1 << 20), ("automerge", 4)];
/// Where SQLite keeps an index whose text is elsewhere.
const INNER: [&str; 4] = ["data", "idx", "docsize", "config"];

/// A row for an index, or one to be taken from it: which index, and the values of its columns.
type Words = (usize, Vec<Value>);

/// A full-text table.
#[derive(Debug, Clone)]
struct Index {
    name: String,
    sql: String,
    /// The command, the number of the row, and those with words.
    columns: Vec<String>,
    choices: Vec<(String, Value)>,
}

/// Indexes that are being made elsewhere.
pub(crate) struct Indexing {
    path: PathBuf,
    indexes: Vec<Index>,
    worker: JoinHandle<Result<()>>,
}

impl Indexing {
    /// Takes all indexes of an empty database out of it. They are made beside `path`.
    pub(crate) fn begin(connection: &Connection, path: &Path) -> Result<Self> {
        let indexes = Index::all(connection)?;
        let path = beside(path, SUFFIX);
        let (sender, receiver) = mpsc::sync_channel(WAITING_MAX);
        hand_on(connection, sender)?;
        for (number, index) in indexes.iter().enumerate() {
            connection.execute_batch(&index.stand_in(number))?;
        }
        let worker = thread::spawn({
            let (path, indexes) = (path.clone(), indexes.clone());
            move || make(&path, &indexes, &receiver)
        });
        Ok(Self { path, indexes, worker })
    }

    /// Waits until everything is indexed, and brings the indexes home.
    pub(crate) fn finish(self, connection: &Connection) -> Result<()> {
        connection.remove_function(HAND_ON, -1)?;
        self.worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let name = self.path.to_str().ok_or_else(|| Error::Io {
            action: "name",
            path: self.path.clone(),
            source: std::io::ErrorKind::InvalidFilename.into(),
        })?;
        connection.execute("attach ?1 as indexed", [name])?;
        let home = connection.unchecked_transaction()?;
        for index in &self.indexes {
            home.execute_batch(&index.bring_home())?;
        }
        home.commit()?;
        Ok(connection.execute_batch("detach indexed")?)
    }
}

impl Index {
    fn all(connection: &Connection) -> Result<Vec<Self>> {
        let sql = "select name, sql from sqlite_schema where sql like 'create virtual table%fts5%'
                   order by name";
        let mut statement = connection.prepare(sql)?;
        let found = statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?;
        found.map(|found| Self::of(connection, found?)).collect()
    }

    fn of(connection: &Connection, (name, sql): (String, String)) -> Result<Self> {
        let mut columns = vec![name.clone(), "rowid".to_owned()];
        let statement = connection.prepare(&format!("select * from {name}"))?;
        columns.extend(statement.column_names().map(str::to_owned));
        let choices = connection
            .prepare(&format!("select k, v from {name}_config where k != 'version'"))?
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<rusqlite::Result<_>>()?;
        Ok(Self { name, sql, columns, choices })
    }

    /// Puts a view in the place of the table.
    fn stand_in(&self, number: usize) -> String {
        let Self { name, columns, .. } = self;
        let nothing = vec!["null"; columns.len()].join(", ");
        let given: String = columns.iter().map(|column| format!(", new.{column}")).collect();
        let columns = columns.join(", ");
        format!(
            "drop table {name};
             create view {name} ({columns}) as select {nothing};
             create trigger {name}_elsewhere instead of insert on {name} begin
                 select {HAND_ON}({number}{given});
             end;"
        )
    }

    /// Puts the table in the place of the view, with what was indexed elsewhere.
    fn bring_home(&self) -> String {
        let Self { name, sql, .. } = self;
        let copy = |inner: &str| {
            format!(
                "delete from main.{name}_{inner};
                 insert into main.{name}_{inner} select * from indexed.{name}_{inner};\n"
            )
        };
        format!("drop view {name};\n{sql};\n{}", INNER.map(copy).concat())
    }

    fn choose(&self, connection: &Connection, choice: &str, value: &Value) -> Result<()> {
        let name = &self.name;
        let sql = format!("insert into {name} ({name}, rank) values (?1, ?2)");
        connection.execute(&sql, (choice, value))?;
        Ok(())
    }

    fn insert(&self) -> String {
        let marks = vec!["?"; self.columns.len()].join(", ");
        format!("insert into {} ({}) values ({marks})", self.name, self.columns.join(", "))
    }
}

fn hand_on(connection: &Connection, sender: SyncSender<Vec<Words>>) -> Result<()> {
    let hand = AssertUnwindSafe(Hand { sender, words: RefCell::default() });
    connection.create_scalar_function(HAND_ON, -1, FunctionFlags::SQLITE_UTF8, move |call| {
        let hand = &hand;
        let values = (1..call.len()).map(|column| call.get(column)).collect::<Result<_, _>>()?;
        let mut words = hand.words.borrow_mut();
        words.push((call.get::<i64>(0)? as usize, values));
        // Whoever takes them has gone only if it failed, and says so itself.
        Ok(words.len() < TOGETHER || hand.sender.send(words.split_off(0)).is_ok())
    })?;
    Ok(())
}

/// Rows on their way. They go together, because each wakes the one who waits for them; the last ones go
/// when the function is removed.
struct Hand {
    sender: SyncSender<Vec<Words>>,
    words: RefCell<Vec<Words>>,
}

impl Drop for Hand {
    fn drop(&mut self) {
        let _ = self.sender.send(self.words.take());
    }
}

/// Indexes what comes, until nothing more can.
fn make(path: &Path, indexes: &[Index], words: &Receiver<Vec<Words>>) -> Result<()> {
    let connection = Connection::open(path)?;
    connection.pragma_update(None, "page_size", 8192)?;
    connection.pragma_update(None, "journal_mode", "off")?;
    connection.pragma_update(None, "locking_mode", "exclusive")?;
    connection.pragma_update(None, "synchronous", "off")?;
    let making = connection.unchecked_transaction()?;
    let mut inserts = Vec::new();
    for index in indexes {
        making.execute_batch(&index.sql)?;
        for (choice, value) in &index.choices {
            index.choose(&making, choice, value)?;
        }
        index.choose(&making, "hashsize", &PIECE_BYTES_MAX.into())?;
        index.choose(&making, "automerge", &0.into())?;
        inserts.push(making.prepare(&index.insert())?);
    }
    for (index, values) in words.iter().flatten() {
        inserts[index].execute(params_from_iter(values))?;
    }
    drop(inserts);
    for index in indexes {
        for (choice, value) in CHOICES {
            index.choose(&making, choice, &value.into())?;
        }
    }
    making.commit()?;
    connection.close().map_err(|(_, error)| error.into())
}
