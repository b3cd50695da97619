//! What systems do differently with files, under one name each, so that the rest reads the same everywhere.
//!
//! The other crates use it, too. Nothing is decided in here; where a system lacks something, its function says what
//! takes the place of it.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;

/// How files and directories are made, beyond what every system knows of.
pub trait Making {
    /// What is made is for nobody but its owner.
    fn owner_only(&mut self) -> &mut Self;
}

/// How a file is opened that may turn out to be something else.
pub trait Opening {
    /// A pipe or a device in the file's place is not waited for.
    fn no_wait(&mut self) -> &mut Self;
}

/// What a lock excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lock {
    /// Others may share it. Held to append.
    Shared,
    /// Nobody else may have it. Held to roll and to seal.
    Exclusive,
}
