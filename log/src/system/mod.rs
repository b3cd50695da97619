//! File system functions that differ between operating systems, under common names.
//!
//! Other crates use them, too. They make no decisions; where a system lacks a function, its
//! substitute is documented there.

mod file_map;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use file_map::FileMap;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// Portable creation options for files and directories.
pub trait CreateOptionsExt {
    /// Only the owner has access.
    fn owner_only(&mut self) -> &mut Self;
}

/// Portable open options.
pub trait OpenOptionsExt {
    /// Do not block if the path is a pipe or a device.
    fn no_wait(&mut self) -> &mut Self;
    /// Like [`no_wait`](Self::no_wait), and if the path itself is a symbolic link, do not open its
    /// target: the file is an error or no regular file.
    fn no_wait_or_follow(&mut self) -> &mut Self;
}

/// Kinds of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Shared with others. Held to append.
    Shared,
    /// Exclusive. Held to roll and to seal.
    Exclusive,
}
