//! What systems do differently with databases that are open.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{SCRATCH_PAGE_BYTES, replace};
#[cfg(windows)]
pub(crate) use windows::{SCRATCH_PAGE_BYTES, replace};
