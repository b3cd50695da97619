//! The schema: numbered migrations, each applied once, in one transaction with its number.
//!
//! Versions up to [`UNRELEASED`] were in no release. A database with one is emptied, and filled from
//! the log again.

use crate::{
    error::{Error, Result},
    store::{Options, insert_checkpoint},
};
use rusqlite::{Connection, TransactionBehavior, config::DbConfig};
use std::{
    collections::{BTreeSet, HashSet},
    path::Path,
};

/// Collected at build time from `migrations/`.
const MIGRATIONS: &[&str] = &include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// The application id of our databases: "clme".
const APPLICATION_ID: i64 = 0x636c_6d65;

/// The last schema version before the migrations of today.
const UNRELEASED: u32 = 30;

/// The newest schema version that this program knows.
pub(crate) fn known() -> u32 {
    UNRELEASED + MIGRATIONS.len() as u32
}

/// Empties a database with a schema that was in no release.
pub(crate) fn empty_if_unreleased(connection: &Connection, schema: u32) -> Result<()> {
    if (1..=UNRELEASED).contains(&schema) {
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, true)?;
        connection.execute_batch("vacuum")?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, false)?;
    }
    Ok(())
}

/// Applies missing migrations. A new database gets its schema and first rows in one transaction.
pub(crate) fn migrate(connection: &mut Connection, path: &Path, options: &Options) -> Result<()> {
    if check_schema(connection, path)? == known() && has_checkpoint(connection)? {
        return Ok(());
    }
    let all = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have been faster.
    let applied = check_schema(&all, path)?;
    for sql in MIGRATIONS.iter().skip(applied.saturating_sub(UNRELEASED) as usize) {
        all.execute_batch(sql)?;
    }
    all.pragma_update(None, "user_version", known())?;
    all.pragma_update(None, "application_id", APPLICATION_ID)?;
    insert_checkpoint(&all, options)?;
    Ok(all.commit()?)
}

fn has_checkpoint(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("select exists (select 1 from checkpoint)", (), |row| row.get(0))
}

/// Rejects a database that lacks a table or an index.
pub(crate) fn check_complete(connection: &Connection, path: &Path) -> Result<()> {
    match missing(connection)?.first() {
        Some(name) => {
            Err(Error::Unusable { path: path.into(), why: format!("`{name}` is missing") })
        }
        None => Ok(()),
    }
}

/// Tables and indexes of the schema that are missing in the database.
pub(crate) fn missing(connection: &Connection) -> rusqlite::Result<Vec<&'static str>> {
    let mut statement = connection.prepare("select name from sqlite_schema")?;
    let found: HashSet<String> =
        statement.query_map((), |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    Ok(names().into_iter().filter(|name| !found.contains(*name)).collect())
}

/// Every table, index, view and trigger that the migrations create and do not drop again.
fn names() -> BTreeSet<&'static str> {
    let mut names = BTreeSet::new();
    for line in MIGRATIONS.iter().flat_map(|sql| sql.lines()) {
        let mut words = line.split([' ', ';']);
        let is_made = match words.next() {
            Some("create") => true,
            Some("drop") => false,
            _ => continue,
        };
        let mut words = words.skip_while(|word| ["unique", "virtual"].contains(word));
        if let (Some(_kind), Some(name)) = (words.next(), words.next()) {
            let _ = if is_made { names.insert(name) } else { names.remove(name) };
        }
    }
    names
}

fn numbers(connection: &Connection) -> rusqlite::Result<(u32, i64)> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("user_version")? as u32, number("application_id")?))
}

/// The schema version, if the database is ours and not of a newer version; 0 for a new one.
pub(crate) fn check_schema(connection: &Connection, path: &Path) -> Result<u32> {
    let (schema, application_id) = numbers(connection)?;
    let is_new = schema == 0 && application_id == 0;
    if application_id != APPLICATION_ID && !is_new {
        let why = "it belongs to another program".into();
        return Err(Error::Unusable { path: path.into(), why });
    }
    if schema > known() {
        return Err(Error::Newer { path: path.into(), schema, known: known() });
    }
    Ok(schema)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[test]
    fn a_database_with_an_unreleased_schema_is_emptied() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.db");
        let old = Connection::open(&path).unwrap();
        let sql = "pragma journal_mode = wal; create table old (x); insert into old values (1)";
        old.execute_batch(sql).unwrap();
        old.pragma_update(None, "user_version", 23).unwrap();
        old.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
        drop(old);
        assert!(Store::open_read_only(&path).unwrap().is_none());
        let store = Store::open(&path, Options::default()).unwrap();
        assert_eq!(numbers(&store.connection).unwrap(), (known(), APPLICATION_ID));
        assert_eq!(store.checkpoint().unwrap().events, 0);
        assert_eq!(store.dump("select name from sqlite_schema where name = 'old'").unwrap(), "");
    }

    #[test]
    fn the_names_read_from_the_migrations_are_those_in_the_database() {
        let store = Store::in_memory().unwrap();
        let sql = "select name from sqlite_schema where name not like 'sqlite\\_%' escape '\\'
                   and name not like '%\\_fts\\__%' escape '\\' or type = 'trigger' order by name";
        let expected = store.dump(sql).unwrap();
        let names: Vec<&str> = names().into_iter().collect();
        assert_eq!(names.join("\n") + "\n", expected);
        assert_eq!(missing(&store.connection).unwrap(), [""; 0]);
        store.connection.execute_batch("drop table imports; drop view visible_prompts").unwrap();
        assert_eq!(
            missing(&store.connection).unwrap(),
            ["imports", "imports_once", "visible_prompts"]
        );
    }
}
