//! The files of a database: names, file types, and the lock under which they are replaced.

use crate::error::{Error, Result};
use claude_mem_log::system;
use std::{
    fmt::Write as _,
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

/// Suffixes of the companion files of a database in WAL mode.
pub(crate) const COMPANIONS: [&str; 2] = ["-wal", "-shm"];
/// The suffixes of the files of a database that a rebuild writes.
pub(crate) const SCRATCH: [&str; 5] = ["", "-fts", "-journal", COMPANIONS[0], COMPANIONS[1]];

/// Pause between two attempts to get a lock.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The files that a connection has open, to detect that they were replaced.
#[derive(Debug)]
pub(crate) struct OpenFile {
    pub(crate) path: PathBuf,
    database: u64,
    /// 0 if there was none yet.
    wal: u64,
}

impl OpenFile {
    /// The files at `path`. SQLite opens them with the first read.
    pub(crate) fn now(path: &Path) -> Self {
        Self { path: path.into(), database: inode(path), wal: inode(&sibling(path, COMPANIONS[0])) }
    }

    /// Whether the database file was replaced or deleted.
    pub(crate) fn is_replaced(&self) -> bool {
        inode(&self.path) != self.database
    }

    /// Whether the write-ahead log was deleted or replaced while the database was not.
    pub(crate) fn is_wal_replaced(&self) -> bool {
        self.wal != 0 && inode(&sibling(&self.path, COMPANIONS[0])) != self.wal
    }
}

/// The inode at `path`; 0 if there is no file.
fn inode(path: &Path) -> u64 {
    system::inode(path).unwrap_or(0)
}

/// The path with `suffix` appended to its file name.
pub(crate) fn sibling(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// A path as a URI, with special characters percent-encoded.
pub(crate) fn uri(path: &Path) -> String {
    let mut text = String::from("file:");
    for byte in system::uri_path(path) {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            text.push(char::from(byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Rejects a directory, FIFO or device in the place of a database file: opening a FIFO for reading
/// blocks until it has a writer. Returns whether the database exists.
pub(crate) fn check_kinds(path: &Path) -> Result<bool> {
    let is_there = check_kind(path)?;
    for suffix in COMPANIONS {
        check_kind(&sibling(path, suffix))?;
    }
    Ok(is_there)
}

fn check_kind(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(found) => {
            let why = if found.is_dir() { "it is a directory" } else { "it is not a regular file" };
            Err(Error::Unusable { path: path.into(), why: why.into() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::Io { action: "open", path: path.into(), source }),
    }
}

/// Opens a lock file without truncating it: the name may be a link.
pub(crate) fn open_lock(lock: &Path) -> io::Result<File> {
    if fs::metadata(lock).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    File::options().write(true).create(true).truncate(false).open(lock)
}

/// Maximum wait for a lock. The process that holds it may be suspended.
pub(crate) const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);

/// Held while a database is opened, so that its file and its write-ahead log belong together: both
/// are replaced under the exclusive lock. Where no lock file can be created, nothing can be
/// replaced either.
pub(crate) fn lock_shared(path: &Path, wait_max: Duration) -> Result<Option<File>> {
    let Ok(file) = open_lock(&sibling(path, ".lock")) else { return Ok(None) };
    match wait_for(|| file.try_lock_shared(), wait_max) {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::Error(_)) => Ok(None),
        Err(TryLockError::WouldBlock) => Err(Error::Rebuilding { path: path.into() }),
    }
}

/// Held while files are replaced, created or removed.
pub(crate) fn lock_exclusive(path: &Path) -> Result<File> {
    let lock = sibling(path, ".lock");
    let failed = |source| Error::Io { action: "lock", path: lock.clone(), source };
    let file = open_lock(&lock).map_err(failed)?;
    match wait_for(|| file.try_lock(), LOCK_WAIT_MAX) {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(source)) => Err(failed(source)),
        Err(TryLockError::WouldBlock) => Err(Error::Rebuilding { path: path.into() }),
    }
}

fn wait_for(
    mut lock: impl FnMut() -> Result<(), TryLockError>,
    wait_max: Duration,
) -> Result<(), TryLockError> {
    let since = Instant::now();
    loop {
        match lock() {
            Err(TryLockError::WouldBlock) if since.elapsed() < wait_max => {
                thread::sleep(LOCK_PAUSE);
            }
            done => return done,
        }
    }
}

/// Renames a database that cannot be used, with its companion files. Nothing is deleted.
pub(crate) fn set_aside(path: &Path, now_us: u64) -> Result<PathBuf> {
    let _replacing = lock_exclusive(path)?;
    let aside = sibling(path, &format!(".broken-{}", now_us / 1_000_000));
    for suffix in COMPANIONS.into_iter().chain([""]) {
        let (from, to) = (sibling(path, suffix), sibling(&aside, suffix));
        if fs::symlink_metadata(&from).is_ok() {
            rename(&from, &to)?;
        }
    }
    Ok(aside)
}

/// Removes the companion files of a deleted database: SQLite would apply them to the next one.
pub(crate) fn remove_companions(path: &Path) {
    for suffix in COMPANIONS {
        let _ = fs::remove_file(sibling(path, suffix));
    }
}

pub(crate) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|source| Error::Io { action: "rename", path: from.into(), source })
}

/// Deletes a database that a rebuild writes, with its companion files.
pub(crate) fn remove_scratch(path: &Path) -> Result<()> {
    for suffix in SCRATCH {
        let file = sibling(path, suffix);
        match fs::remove_file(&file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(Error::Io { action: "remove", path: file, source });
            }
            _ => {}
        }
    }
    Ok(())
}
