//! What can go wrong with the tables, as facts.

use std::{fmt, io, path::PathBuf};

/// Why a call on the store failed.
#[derive(Debug)]
pub enum Error {
    /// The database was written by a newer version. It was not touched.
    Newer {
        /// The database.
        path: PathBuf,
        /// Its schema.
        schema: u32,
        /// The newest schema that this version knows.
        known: u32,
    },
    /// The file is damaged, or is no database of ours. It was not touched; all it held can be drawn from
    /// the log again.
    Unusable {
        /// The database.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process is drawing the same database again right now.
    Rebuilding {
        /// The database.
        path: PathBuf,
    },
    /// The log could not be read.
    Log(claude_mem_log::Error),
    /// A call on a file failed.
    Io {
        /// What was being done: "rename".
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The database refused a statement.
    Sqlite(rusqlite::Error),
}

/// What every call here gives.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Whether the disk is full or the files cannot be written, so that reading may still work.
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

    /// Whether the database file itself is broken, so that only drawing it again helps.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Unusable { .. } => true,
            Self::Sqlite(error) => is_damage(error),
            _ => false,
        }
    }
}

/// Whether SQLite says that the file is broken, or that it lacks a table that every database of ours has.
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
                write!(out, "{} is being drawn again by another process", path.display())
            }
            Self::Log(error) => error.fmt(out),
            Self::Io { action, path, source } => {
                write!(out, "cannot {action} {}: {source}", path.display())
            }
            Self::Sqlite(error) => write!(out, "the database refused: {error}"),
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
