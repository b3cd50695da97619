//! Opens the database. Nothing else in the program opens its files.
//!
//! SQLite's locks are POSIX locks and belong to the process: closing any descriptor of the file
//! drops all of them. The next program that closes the database then considers itself the last one
//! and deletes the write-ahead log under our connections. So information about the file comes from
//! SQLite or `stat`, and only SQLite opens the file.

use crate::{
    error::{Error, Result, is_damage},
    store::{
        Options, Store,
        files::{
            COMPANIONS, LOCK_WAIT_MAX, OpenFile, check_kinds, lock_exclusive, lock_shared,
            remove_companions, set_aside, sibling, uri,
        },
        schema,
        system::SCRATCH_PAGE_BYTES,
    },
};
use rusqlite::{Connection, OpenFlags, config::DbConfig, ffi};
use std::{
    cell::Cell,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
};

/// How long a writer waits for another one. A batch takes milliseconds.
pub(crate) const BUSY: Duration = Duration::from_secs(10);
/// How long opening a snapshot waits while the file is being replaced.
const SNAPSHOT_WAIT_MAX: Duration = Duration::from_secs(1);
/// Every projection has a handful of statements, and each is worth keeping prepared.
const STATEMENTS_MAX: usize = 256;

/// How a database is opened for reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadMode {
    /// Concurrently with writers, for as long as needed.
    Shared,
    /// A snapshot. The shared memory file is not created, only read if it exists.
    Snapshot,
    /// Only the database file: there is no write-ahead log, and none can be written.
    Immutable,
}

impl Store {
    /// Opens the database at `path` for folding, or creates it.
    ///
    /// A database of a newer version and a file that is not one of our databases are errors and
    /// stay as they are.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let _opening = lock_to_open(path)?;
        check_kinds(path)?;
        let unusable = |error| match error {
            Error::Sqlite(error) if is_damage(&error) => {
                Error::Unusable { path: path.into(), why: error.to_string() }
            }
            error => error,
        };
        Self::open_with(path, options).map_err(unusable)
    }

    fn open_with(path: &Path, options: Options) -> Result<Self> {
        disable_memory_statistics();
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // A file that turns out not to be a database of this version is closed without a write.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        let version = schema::check_schema(&connection, path)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        schema::empty_if_unreleased(&connection, version)?;
        prepare(&connection)?;
        schema::migrate(&mut connection, path, &options)?;
        schema::check_complete(&connection, path)?;
        let file = Some(OpenFile::now(path));
        let store = Self { connection, options, file, are_gaps_checked: Cell::default() };
        store.checkpoint()?;
        Ok(store)
    }

    /// Opens the database at `path` for reading; `None` if it does not exist yet, or has an older
    /// schema that a writer must migrate first.
    ///
    /// On a full disk or in a read-only directory, it falls back to modes that need no write
    /// access.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path, LOCK_WAIT_MAX)?;
        if !check_kinds(path)? {
            return Ok(None);
        }
        let Some(store) = Self::open_with_fallback(path)? else { return Ok(None) };
        // A search reads rows from all parts of the file, and the next search reads many of the
        // same pages.
        store.connection.pragma_update(None, "cache_size", -32_768)?;
        Ok(Some(store))
    }

    /// Limits SQLite's page cache.
    pub fn limit_cache(&self, kilobytes: u32) -> Result<()> {
        Ok(self.connection.pragma_update(None, "cache_size", -i64::from(kilobytes))?)
    }

    fn open_with_fallback(path: &Path) -> Result<Option<Self>> {
        let refused = match Self::open_reading(path, ReadMode::Shared) {
            Err(error) if error.is_unwritable() => error,
            opened => return opened,
        };
        // SQLite needs shared memory to read the write-ahead log, and cannot create it here.
        if let Ok(opened) = Self::open_reading(path, ReadMode::Snapshot) {
            return Ok(opened);
        }
        let wal = fs::metadata(sibling(path, COMPANIONS[0]));
        if wal.is_ok_and(|wal| wal.len() > 0) {
            return Err(refused);
        }
        Self::open_reading(path, ReadMode::Immutable).map_err(|_| refused)
    }

    /// Opens a snapshot of the database at `path`; `None` if there is no database yet.
    ///
    /// The first connection to a database creates its shared memory, which takes longer than the
    /// query of a hook. SQLite can do without, as on a read-only disk, if the shared memory file
    /// exists; otherwise the database is opened in the usual way. Nothing else in this process may
    /// open the same database meanwhile: it would be read-only.
    pub fn open_snapshot(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path, SNAPSHOT_WAIT_MAX)?;
        if !check_kinds(path)? {
            return Ok(None);
        }
        match Self::open_reading(path, ReadMode::Snapshot) {
            Err(error) if error.is_unwritable() => Self::open_with_fallback(path),
            opened => opened,
        }
    }

    fn open_reading(path: &Path, reading: ReadMode) -> Result<Option<Self>> {
        disable_memory_statistics();
        let name = match reading {
            ReadMode::Shared => uri(path),
            ReadMode::Snapshot => format!("{}?readonly_shm=1", uri(path)),
            ReadMode::Immutable => format!("{}?immutable=1", uri(path)),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(BUSY)?;
        // Otherwise SQLite prepares statements again for the values of their parameters. That pays
        // with statistics of single values, which are not collected here.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        if reading == ReadMode::Snapshot {
            // A small cache: reusing its pages is faster than page faults on new memory.
            connection.execute_batch("begin; pragma cache_size = 20")?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        if schema::check_schema(&connection, path)? < schema::known() {
            return Ok(None);
        }
        let file = Some(OpenFile::now(path));
        let options = Options::default();
        Ok(Some(Self { connection, options, file, are_gaps_checked: Cell::default() }))
    }

    /// Opens the database at `path`. A damaged one is renamed first, and its new path returned; the
    /// new database is empty and is filled from the log.
    pub fn open_or_set_aside(
        path: &Path,
        options: Options,
        now_us: u64,
    ) -> Result<(Self, Option<PathBuf>)> {
        match Self::open(path, options.clone()) {
            Err(error) if error.is_damage() => {
                let aside = set_aside(path, now_us)?;
                Ok((Self::open(path, options)?, Some(aside)))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// A private in-memory database, dropped with this value.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(Options::default())
    }

    /// As [`in_memory`](Self::in_memory), with these options.
    pub fn in_memory_with(options: Options) -> Result<Self> {
        disable_memory_statistics();
        let mut connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        schema::migrate(&mut connection, Path::new(":memory:"), &options)?;
        Ok(Self { connection, options, file: None, are_gaps_checked: Cell::default() })
    }

    /// Opens a database for a rebuild: it has no other readers, and a power loss only costs the
    /// rebuild.
    pub(crate) fn open_scratch(path: &Path, options: Options) -> Result<Self> {
        disable_memory_statistics();
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "page_size", SCRATCH_PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "off")?;
        connection.pragma_update(None, "locking_mode", "exclusive")?;
        prepare(&connection)?;
        connection.pragma_update(None, "synchronous", "off")?;
        // A rebuild writes the same rows as folding, where every reference is checked.
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        schema::migrate(&mut connection, path, &options)?;
        Ok(Self { connection, options, file: None, are_gaps_checked: Cell::default() })
    }
}

/// Held while a database is opened for writing. A new one is created under the exclusive lock:
/// companion files of a deleted database must be removed first, and a second process must not
/// mistake the new ones for them.
fn lock_to_open(path: &Path) -> Result<Option<File>> {
    if !path.exists()
        && let Ok(creating) = lock_exclusive(path)
        && !path.exists()
    {
        remove_companions(path);
        return Ok(Some(creating));
    }
    lock_shared(path, LOCK_WAIT_MAX)
}

fn prepare(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise SQLite plans a statement again for each value that could allow a partial index.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // Forgotten text must not stay in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(())
}

/// Turns off SQLite's memory statistics: they take a lock at each of several thousand allocations
/// per query, and nothing reads them.
fn disable_memory_statistics() {
    static DISABLED: Once = Once::new();
    #[expect(unsafe_code, reason = "SQLite has no safe binding for it")]
    DISABLED.call_once(|| {
        // SAFETY: this option takes one integer, and SQLite rejects the call once it is
        // initialized.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0) };
    });
}
