//! What can go wrong, as facts: which path, which call, which number.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a call on the log failed.
#[derive(Debug)]
pub enum Error {
    /// The disk is full, and the space set aside is used up. Nothing was recorded.
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The log cannot be written to: a read-only file system, or another user's directory.
    NotWritable {
        /// What could not be written.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The lock was held by a stopped process for longer than we wait, and spilling was off.
    Busy {
        /// The locked file.
        path: PathBuf,
    },
    /// The payload is larger than a record may be.
    TooLarge {
        /// Its length.
        len: usize,
        /// The most there may be.
        max: usize,
    },
    /// The kind is one of the log's own.
    ReservedKind {
        /// The kind.
        kind: u16,
    },
    /// The log was written by a newer version, in a format that this one cannot read.
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The least format version that a reader must know.
        min_reader: u16,
    },
    /// The disk did not confirm a sync, and writing the records again elsewhere failed too. They can be
    /// read, but a loss of power may lose them.
    SyncFailed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Any other failing call.
    Io {
        /// What was being done: "open", "write".
        action: &'static str,
        /// To which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Error {
    /// Sorts an I/O error into the cases that callers treat apart.
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_path_buf();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                Self::NotWritable { path, source }
            }
            _ => Self::Io { action, path, source },
        }
    }

    /// Whether a file was not there.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full { path } => write!(out, "no space left to write {}", path.display()),
            Self::NotWritable { path, source } => {
                write!(out, "cannot write {}: {source}", path.display())
            }
            Self::Busy { path } => {
                write!(out, "{} is locked by a process that does not move", path.display())
            }
            Self::TooLarge { len, max } => {
                write!(out, "a record of {len} bytes is above the limit of {max}")
            }
            Self::ReservedKind { kind } => write!(out, "kind {kind:#06x} is the log's own"),
            Self::NewerFormat { path, min_reader } => write!(
                out,
                "{} is in log format {min_reader}, this version reads up to {}",
                path.display(),
                crate::format::FORMAT
            ),
            Self::SyncFailed { path, source } => {
                write!(out, "the disk did not confirm {}: {source}", path.display())
            }
            Self::Io { action, path, source } => {
                write!(out, "cannot {action} {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotWritable { source, .. }
            | Self::SyncFailed { source, .. }
            | Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
