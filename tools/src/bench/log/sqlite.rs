//! SQLite as a log: WAL, `synchronous = NORMAL`, one table.

use super::sample::Noise;
use crate::bench::BenchResult;
use rusqlite::Connection;
use std::path::Path;

fn open(path: &Path) -> BenchResult<Connection> {
    let database = Connection::open(path)?;
    database.pragma_update(None, "synchronous", "NORMAL")?;
    Ok(database)
}

/// Creates a database with this many records.
pub(super) fn fill_sqlite(path: &Path, records: u64) -> BenchResult<()> {
    let mut database = open(path)?;
    database.pragma_update(None, "journal_mode", "WAL")?;
    database.execute_batch(
        "create table records (seq integer primary key, id blob, kind integer, payload blob)",
    )?;
    let mut noise = Noise::default();
    let transaction = database.transaction()?;
    {
        let mut insert = transaction.prepare(INSERT)?;
        for number in 0..records {
            insert.execute((u128::from(number).to_le_bytes(), 1, noise.payload()))?;
        }
    }
    Ok(transaction.commit()?)
}

const INSERT: &str = "insert into records (id, kind, payload) values (?1, ?2, ?3)";

/// Opens, inserts one record, closes, as a hook would. The WAL mode is stored in the file.
pub(super) fn append_once(path: &Path, id: [u8; 16], payload: &[u8]) -> BenchResult<()> {
    let database = open(path)?;
    database.execute(INSERT, (id, 1, payload))?;
    database.close().map_err(|(_, error)| error.into())
}

/// A used connection, which keeps the write-ahead log open.
pub(super) fn keep_open(path: &Path) -> BenchResult<Connection> {
    let database = open(path)?;
    database.query_row("select count(*) from records", (), |_| Ok(()))?;
    Ok(database)
}

/// Opens and reads every payload. SQLite has no checksums to verify.
pub(super) fn read(path: &Path) -> BenchResult<(u64, u64)> {
    let database = open(path)?;
    // Faster for SQLite than reading pages.
    database.pragma_update(None, "mmap_size", i64::MAX)?;
    let mut select = database.prepare("select id, kind, payload from records order by seq")?;
    let mut rows = select.query(())?;
    let (mut records, mut bytes) = (0, 0);
    while let Some(row) = rows.next()? {
        records += 1;
        bytes += row.get_ref(2)?.as_blob()?.len() as u64;
    }
    Ok((records, bytes))
}
