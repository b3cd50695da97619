//! Opening the database. Nothing else in the program opens its files.
//!
//! SQLite's locks are POSIX locks and belong to the process: closing any descriptor of the file drops all of them,
//! whoever opened it. Then the next program that closes the database believes to be the last one, and
//! deletes the write-ahead log under our connections. So whatever must be known about the file is asked
//! of SQLite or of `stat`, and the file is never opened beside SQLite.

use crate::{
    error::{Error, Result, is_damage},
    store::{
        Options, Store,
        files::{
            COMPANIONS, LOCK_WAIT_MAX, OpenFile, beside, check_kinds, lock_exclusive, lock_shared,
            remove_companions, set_aside, uri,
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
/// How long a look waits while the file is being replaced, which takes a moment.
const LOOK_WAIT_MAX: Duration = Duration::from_secs(1);
/// Every projection has a handful of statements, and each is worth keeping prepared.
const STATEMENTS_MAX: usize = 256;

/// How a database is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Beside others who write, for as long as wanted.
    Shared,
    /// A single look at one moment. The shared memory is not made, only read if somebody else has made it.
    Look,
    /// The file alone: there is no write-ahead log, and none can be written.
    Immutable,
}

impl Store {
    /// Opens the database at `path` to fold into it, or makes a new one.
    ///
    /// A database of a newer version and a file that is no database of ours are errors, and are left as
    /// they are.
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
        count_no_memory();
        let mut connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        // Whatever is found to be no database of this version is closed again without a write.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        schema::check_numbers(&connection, path)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        prepare(&connection)?;
        schema::migrate(&mut connection, path, &options)?;
        schema::check_complete(&connection, path)?;
        let file = Some(OpenFile::now(path));
        let store = Self { connection, options, file, are_gaps_checked: Cell::default() };
        store.checkpoint()?;
        Ok(store)
    }

    /// Opens the database at `path` to read from it; `None` if there is none yet, or only one of an older
    /// version that somebody has to bring up to date first.
    ///
    /// On a full disk or in a directory that cannot be written, it is read in whatever way is left.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path, LOCK_WAIT_MAX)?;
        if !check_kinds(path)? {
            return Ok(None);
        }
        let Some(store) = Self::open_somehow(path)? else { return Ok(None) };
        // A search looks at rows all over the file, and the next one at many of the same pages.
        store.connection.pragma_update(None, "cache_size", -32_768)?;
        Ok(Some(store))
    }

    /// Lets SQLite keep so much of the database in memory, at most.
    pub fn limit_cache(&self, kilobytes: u32) -> Result<()> {
        Ok(self.connection.pragma_update(None, "cache_size", -i64::from(kilobytes))?)
    }

    fn open_somehow(path: &Path) -> Result<Option<Self>> {
        let refused = match Self::open_reading(path, Reading::Shared) {
            Err(error) if error.is_unwritable() => error,
            opened => return opened,
        };
        // SQLite needs shared memory to read the write-ahead log, and cannot make it here.
        if let Ok(opened) = Self::open_reading(path, Reading::Look) {
            return Ok(opened);
        }
        let wal = fs::metadata(beside(path, COMPANIONS[0]));
        if wal.is_ok_and(|wal| wal.len() > 0) {
            return Err(refused);
        }
        Self::open_reading(path, Reading::Immutable).map_err(|_| refused)
    }

    /// Opens the database at `path` for a single look, at one moment; `None` if there is none yet.
    ///
    /// Whoever is the first to open a database makes its shared memory anew, which takes longer than the
    /// look. SQLite can also do without, as it does on a disk that cannot be written. That needs a file
    /// that somebody has made before; where there is none, it is opened in the usual way. Nothing else of
    /// this process may open the same database meanwhile: it would find it read-only.
    pub fn open_snapshot(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path, LOOK_WAIT_MAX)?;
        if !check_kinds(path)? {
            return Ok(None);
        }
        match Self::open_reading(path, Reading::Look) {
            Err(error) if error.is_unwritable() => Self::open_somehow(path),
            opened => opened,
        }
    }

    fn open_reading(path: &Path, reading: Reading) -> Result<Option<Self>> {
        count_no_memory();
        let name = match reading {
            Reading::Shared => uri(path),
            Reading::Look => format!("{}?readonly_shm=1", uri(path)),
            Reading::Immutable => format!("{}?immutable=1", uri(path)),
        };
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(BUSY)?;
        if reading == Reading::Look {
            // Room for few pages: to use it again is quicker than to meet new memory page by page.
            connection.execute_batch("begin; pragma cache_size = 20")?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        if schema::check_numbers(&connection, path)? < schema::known() {
            return Ok(None);
        }
        let file = Some(OpenFile::now(path));
        let options = Options::default();
        Ok(Some(Self { connection, options, file, are_gaps_checked: Cell::default() }))
    }

    /// Opens the database at `path`; one that cannot be used is first moved away, and its new name given.
    /// The new one is empty, and is filled from the log.
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
        count_no_memory();
        let mut connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        schema::migrate(&mut connection, Path::new(":memory:"), &options)?;
        Ok(Self { connection, options, file: None, are_gaps_checked: Cell::default() })
    }

    /// Opens a database that is being rebuilt: it has no other readers, and a power loss only costs the rebuild.
    pub(crate) fn open_scratch(path: &Path, options: Options) -> Result<Self> {
        count_no_memory();
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "page_size", SCRATCH_PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "off")?;
        connection.pragma_update(None, "locking_mode", "exclusive")?;
        prepare(&connection)?;
        connection.pragma_update(None, "synchronous", "off")?;
        // The same rows as when folding on, where each reference is checked.
        connection.pragma_update(None, "foreign_keys", false)?;
        connection.pragma_update(None, "cache_size", -65_536)?;
        schema::migrate(&mut connection, path, &options)?;
        Ok(Self { connection, options, file: None, are_gaps_checked: Cell::default() })
    }
}

/// Held while a database is opened for writing. A new one is made under the exclusive lock: the companions
/// of one that was deleted must be gone first, and no second process may take the new ones for those.
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
    // Otherwise statements are planned anew for each value that might let them use a partial index.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // Forgotten text must not stay in free pages.
    connection.pragma_update(None, "secure_delete", true)?;
    Ok(())
}

/// SQLite counts the memory that it uses, under a lock. Nobody asks for the sum, and a look at a database
/// takes memory a few thousand times.
fn count_no_memory() {
    static TOLD: Once = Once::new();
    #[expect(unsafe_code, reason = "there is no other way to tell it")]
    TOLD.call_once(|| {
        // SAFETY: it takes one number, and refuses whatever comes too late.
        unsafe { ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0) };
    });
}
