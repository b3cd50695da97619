//! Replacing a database file that may be open, per operating system.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{SCRATCH_PAGE_BYTES, replace};
#[cfg(windows)]
pub(crate) use windows::{SCRATCH_PAGE_BYTES, replace};
