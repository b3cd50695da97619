//! Errors of the store.

use std::{fmt, io, path::PathBuf};

use claude_mem_core::failure::Failure;

/// Why a call on the store failed.
#[derive(Debug)]
pub enum Error {
    /// The database was written by a newer version. It was not changed.
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        schema: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// The file is damaged or not one of our databases. It was not changed; everything in it can be
    /// rebuilt from the log.
    Unusable {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process is rebuilding the same database.
    Rebuilding {
        /// The database.
        path: PathBuf,
    },
    /// The log could not be read.
    Log(claude_mem_log::Error),
    /// A file operation failed.
    Io {
        /// The operation: "rename".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// SQLite returned an error.
    Sqlite(rusqlite::Error),
}

/// The result of every call on the store.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the disk is full or the files are not writable, so that reading may still work.
    pub fn is_unwritable(&self) -> bool {
        use rusqlite::ErrorCode::{
            CannotOpen, DiskFull, PermissionDenied, ReadOnly, SystemIoFailure,
        };
        match self {
            Self::Sqlite(error) => matches!(
                error.sqlite_error_code(),
                Some(CannotOpen | DiskFull | PermissionDenied | ReadOnly | SystemIoFailure)
            ),
            Self::Io { source, .. } => matches!(
                source.kind(),
                io::ErrorKind::StorageFull
                    | io::ErrorKind::QuotaExceeded
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
            ),
            _ => false,
        }
    }

    /// Whether the database file is damaged, so that only a rebuild helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Unusable { .. } => true,
            Self::Sqlite(error) => is_damage(error),
            _ => false,
        }
    }
}

/// Whether SQLite reports a damaged file, or a missing table that each of our databases has.
pub(crate) fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    match error.sqlite_error_code() {
        Some(DatabaseCorrupt | NotADatabase) => true,
        Some(Unknown) => error.to_string().contains("no such table"),
        _ => false,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Newer { path, schema, known } => write!(
                out,
                "{} has schema {schema}, this version knows up to {known}",
                path.display()
            ),
            Self::Unusable { path, why } => {
                write!(out, "{} cannot be used: {why}", path.display())
            }
            Self::Rebuilding { path } => {
                write!(out, "{} is being rebuilt by another process", path.display())
            }
            Self::Log(error) => error.fmt(out),
            Self::Io { action, path, source } => {
                write!(out, "cannot {action} {}: {source}", path.display())
            }
            Self::Sqlite(error) => write!(out, "SQLite error: {error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Log(error) => Some(error),
            Self::Io { source, .. } => Some(source),
            Self::Sqlite(error) => Some(error),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<claude_mem_log::Error> for Error {
    fn from(error: claude_mem_log::Error) -> Self {
        Self::Log(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        use Error as E;
        let failure = Self::new(error.to_string());
        match error {
            E::Log(error) => error.into(),
            error if error.is_unwritable() => failure
                .meaning("the disk is full, or the files cannot be written")
                .remedy("see what is wrong with `claude-mem doctor`"),
            E::Newer { .. } => failure
                .meaning("the database was not touched")
                .remedy("use the newer version of claude-mem that wrote it"),
            E::Unusable { .. } => failure
                .meaning("everything in it is also in the log")
                .remedy("rebuild it with `claude-mem replay`"),
            E::Rebuilding { .. } => failure.remedy("wait for that process to end, then try again"),
            E::Io { .. } | E::Sqlite(_) => failure,
        }
    }
}
