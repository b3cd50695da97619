//! The schema: numbered steps, each applied once, in one transaction with its number.

use crate::error::{Error, Result};
use rusqlite::{Connection, TransactionBehavior};
use std::{fs::File, io::Read, path::Path};

/// Found at build time in `migrations/`.
const MIGRATIONS: &[&str] = &include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Marks a database as ours: "clme".
const APPLICATION_ID: i64 = 0x636c_6d65;

/// What SQLite writes before anything else.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// The newest schema that this version knows.
pub(crate) fn known() -> u32 {
    MIGRATIONS.len() as u32
}

/// Looks at the first bytes of the file, before SQLite does: opening a database may already write.
///
/// An empty file is a new database. The schema may be newer in the write-ahead log than in the file;
/// [`migrate`] looks again.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    let mut header = Vec::new();
    match File::open(path) {
        Ok(file) => {
            let read = file.take(100).read_to_end(&mut header);
            read.map_err(|source| Error::Io { action: "read", path: path.into(), source })?;
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::Io { action: "open", path: path.into(), source }),
    }
    if header.is_empty() {
        return Ok(());
    }
    if header.len() < 100 || !header.starts_with(MAGIC) {
        return Err(Error::Unusable { path: path.into(), why: "it is no database".into() });
    }
    let number = |at: usize| header[at..at + 4].iter().fold(0, |n, byte| n << 8 | u32::from(*byte));
    check(path, number(60), i64::from(number(68)))
}

/// Brings the schema up to date.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<()> {
    let (version, _) = numbers(connection)?;
    if version == known() {
        return check_numbers(connection, path);
    }
    for (index, sql) in MIGRATIONS.iter().enumerate() {
        let step = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        // Another process may have been faster.
        check_numbers(&step, path)?;
        if numbers(&step)?.0 as usize == index {
            step.execute_batch(sql)?;
            step.pragma_update(None, "user_version", index as i64 + 1)?;
            step.pragma_update(None, "application_id", APPLICATION_ID)?;
        }
        step.commit()?;
    }
    Ok(())
}

fn numbers(connection: &Connection) -> rusqlite::Result<(u32, i64)> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("user_version")? as u32, number("application_id")?))
}

pub(crate) fn check_numbers(connection: &Connection, path: &Path) -> Result<()> {
    let (schema, application_id) = numbers(connection)?;
    check(path, schema, application_id)
}

fn check(path: &Path, schema: u32, application_id: i64) -> Result<()> {
    let is_new = schema == 0 && application_id == 0;
    if application_id != APPLICATION_ID && !is_new {
        let why = "it belongs to another program".into();
        return Err(Error::Unusable { path: path.into(), why });
    }
    if schema > known() {
        return Err(Error::Newer { path: path.into(), schema, known: known() });
    }
    Ok(())
}
