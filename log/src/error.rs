//! Errors of the log.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Why a call on the log failed.
#[derive(Debug)]
pub enum Error {
    /// The disk is full, and the reserve is used up. Nothing was recorded.
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The log cannot be written to: a read-only file system, or another user's directory.
    NotWritable {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// A stopped process held the lock for too long, and spilling was off.
    Busy {
        /// The locked file.
        path: PathBuf,
    },
    /// The payload is larger than a record may be.
    TooLarge {
        /// Its length.
        len: usize,
        /// The maximum.
        max: usize,
    },
    /// The kind is reserved for the log.
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
    /// A sync failed, and rewriting the records elsewhere failed, too. They can be read, but a
    /// power loss may lose them.
    SyncFailed {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Any other failed call.
    Io {
        /// The operation: "open", "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

impl Error {
    /// Maps an I/O error to the cases that callers handle differently.
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

    /// Whether a file was missing.
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
                write!(out, "{} is locked by a stopped process", path.display())
            }
            Self::TooLarge { len, max } => {
                write!(out, "a record of {len} bytes is above the limit of {max}")
            }
            Self::ReservedKind { kind } => write!(out, "kind {kind:#06x} is reserved for the log"),
            Self::NewerFormat { path, min_reader } => write!(
                out,
                "{} is in log format {min_reader}, this version reads up to {}",
                path.display(),
                crate::format::FORMAT
            ),
            Self::SyncFailed { path, source } => {
                write!(out, "cannot flush {} to the disk: {source}", path.display())
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
