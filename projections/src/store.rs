//! The database: opening it, and where folding stands in it.

use crate::{
    ALL,
    columns::{number, seq},
    error::{Error, Result, is_damage},
    schema,
    system::SCRATCH_PAGE_BYTES,
};
use claude_mem_events::Seq;
use claude_mem_log::system;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, config::DbConfig, ffi};
use std::{
    fmt::Write as _,
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Once,
    time::Duration,
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

/// How long a writer waits for another one. A batch takes milliseconds.
pub(crate) const BUSY: Duration = Duration::from_secs(10);
/// Every projection has a handful of statements, and each is worth keeping prepared.
const STATEMENTS_MAX: usize = 256;

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
    /// Where the file is, and which file that was when it was opened; nothing for one in memory.
    pub(crate) file: Option<(PathBuf, u64)>,
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
    /// Opens the database at `path` to fold into it, or makes a new one.
    ///
    /// A database of a newer version and a file that is no database of ours are errors, and are left as
    /// they are.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let _opening = lock_shared(path);
        schema::check_file(path)?;
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
        connection.pragma_update(None, "journal_mode", "wal")?;
        prepare(&connection)?;
        schema::migrate(&mut connection, path)?;
        let file = Some((path.to_owned(), inode(path)));
        let store = Self { connection, options, file };
        store.begin_log()?;
        store.checkpoint()?;
        Ok(store)
    }

    /// Opens the database at `path` to read from it; `None` if there is none yet.
    pub fn open_read_only(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path);
        if !path.exists() {
            return Ok(None);
        }
        let store = Self::open_reading(path, path, false)?;
        // A search looks at rows all over the file, and the next one at many of the same pages.
        store.connection.pragma_update(None, "cache_size", -32_768)?;
        Ok(Some(store))
    }

    /// Lets SQLite keep so much of the database in memory, at most.
    pub fn limit_cache(&self, kilobytes: u32) -> Result<()> {
        Ok(self.connection.pragma_update(None, "cache_size", -i64::from(kilobytes))?)
    }

    /// Opens the database at `path` for a single look, at one moment; `None` if there is none yet.
    ///
    /// Whoever is the first to open a database makes its shared memory anew, which takes longer than the
    /// look. SQLite can also do without, as it does on a disk that cannot be written. That needs a file
    /// that somebody has made before; where there is none, it is opened in the usual way. Nothing else of
    /// this process may open the same database meanwhile: it would find it read-only.
    pub fn open_for_a_look(path: &Path) -> Result<Option<Self>> {
        let _opening = lock_shared(path);
        let uri = format!("file:{}?readonly_shm=1", in_uri(path));
        let opened = Self::open_reading(path, uri.as_ref(), true);
        match opened {
            Err(Error::Sqlite(error))
                if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) && path.exists() =>
            {
                Self::open_reading(path, path, false).map(Some)
            }
            Err(Error::Sqlite(_)) if !path.exists() => Ok(None),
            opened => opened.map(Some),
        }
    }

    fn open_reading(path: &Path, name: &Path, is_look: bool) -> Result<Self> {
        count_no_memory();
        schema::check_file(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let flags = if is_look { flags | OpenFlags::SQLITE_OPEN_URI } else { flags };
        let connection = Connection::open_with_flags(name, flags)?;
        connection.busy_timeout(BUSY)?;
        if is_look {
            // Room for few pages: to use it again is quicker than to meet new memory page by page.
            connection.execute_batch("begin; pragma cache_size = 20")?;
        }
        connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
        schema::check_numbers(&connection, path)?;
        let file = Some((path.to_owned(), inode(path)));
        Ok(Self { connection, options: Options::default(), file })
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

    /// A database that nobody else sees and that is gone with this value.
    pub fn in_memory() -> Result<Self> {
        Self::in_memory_with(Options::default())
    }

    pub(crate) fn in_memory_with(options: Options) -> Result<Self> {
        count_no_memory();
        let mut connection = Connection::open_in_memory()?;
        prepare(&connection)?;
        schema::migrate(&mut connection, Path::new(":memory:"))?;
        let store = Self { connection, options, file: None };
        store.begin_log()?;
        Ok(store)
    }

    /// Opens a database that is being drawn: nobody else reads it, and nobody mourns it if power fails.
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
        schema::migrate(&mut connection, path)?;
        let store = Self { connection, options, file: None };
        store.begin_log()?;
        Ok(store)
    }

    /// The file, if it is one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|(path, _)| path.as_path())
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
        self.file.as_ref().is_some_and(|(path, opened)| inode(path) != *opened)
    }

    /// Whether the rows were drawn in another way than today's: everything must be drawn again.
    pub(crate) fn is_outdated(&self) -> Result<bool> {
        let kinds: String =
            self.connection.query_row("select kinds from checkpoint", (), |row| row.get(0))?;
        if kinds != self.options.kinds.join(",") {
            return Ok(true);
        }
        for projection in ALL {
            let sql = "select version from projections where name = ?1";
            let drawn: Option<u32> =
                self.connection.query_row(sql, [projection.name()], |row| row.get(0)).optional()?;
            if drawn != Some(projection.version()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// A new database stands at the beginning, and is drawn as today.
    fn begin_log(&self) -> Result<()> {
        let is_begun: bool =
            self.connection
                .query_row("select exists (select 1 from checkpoint)", (), |row| row.get(0))?;
        if is_begun {
            return Ok(());
        }
        let begin = self.connection.unchecked_transaction()?;
        let sql = "insert or ignore into checkpoint values (1, null, 0, 0, 0, ?1)";
        begin.execute(sql, [self.options.kinds.join(",")])?;
        for projection in ALL {
            let sql = "insert or ignore into projections values (?1, ?2)";
            begin.execute(sql, (projection.name(), projection.version()))?;
        }
        Ok(begin.commit()?)
    }
}

fn prepare(connection: &Connection) -> Result<()> {
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Otherwise statements are planned anew for each value that might let them use a partial index.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "normal")?;
    // What is forgotten shall not linger in free pages.
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

/// Which file is at `path`; 0 for none.
pub(crate) fn inode(path: &Path) -> u64 {
    system::inode(path).unwrap_or(0)
}

/// A path as a URI has it: every byte that could mean something else there is written as a number.
fn in_uri(path: &Path) -> String {
    let mut text = String::new();
    for byte in system::uri_path(path) {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// `memory.db` with `suffix` behind its name.
pub(crate) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Held while a database is opened, so that its file and its write-ahead log are of one piece: a rebuild
/// replaces both under the exclusive form. Where no lock can be had, nothing is replaced either.
fn lock_shared(path: &Path) -> Option<File> {
    // Not emptied, which would write to the disk whenever somebody reads.
    let lock = File::options().write(true).create(true).truncate(false).open(beside(path, ".lock"));
    let lock = lock.ok()?;
    lock.lock_shared().ok()?;
    Some(lock)
}

/// Held while files are replaced.
pub(crate) fn lock_exclusive(path: &Path) -> Result<File> {
    let lock = beside(path, ".lock");
    let failed = |source| Error::Io { action: "lock", path: lock.clone(), source };
    let file = File::create(&lock).map_err(failed)?;
    file.lock().map_err(failed)?;
    Ok(file)
}

/// The companions of a database in WAL mode.
pub(crate) const COMPANIONS: [&str; 2] = ["-wal", "-shm"];

/// Moves a database that cannot be used out of the way, with its companions. Nothing is deleted.
fn set_aside(path: &Path, now_us: u64) -> Result<PathBuf> {
    let _replacing = lock_exclusive(path)?;
    let aside = beside(path, &format!(".broken-{}", now_us / 1_000_000));
    for suffix in COMPANIONS {
        let (from, to) = (beside(path, suffix), beside(&aside, suffix));
        if from.exists() {
            rename(&from, &to)?;
        }
    }
    rename(path, &aside)?;
    Ok(aside)
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| Error::Io { action: "rename", path: from.into(), source })
}
