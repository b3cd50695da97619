//! What systems do differently, under one name each, so that the rest reads the same everywhere: processes, streams,
//! signals, and who may read a file. Opening, locking and syncing files is in the log's own module of this name.

mod heap;
mod names;
mod trust;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use claude_mem_log::system::*;
pub(crate) use heap::share_one_heap;
pub(crate) use names::look_up_names_plainly;
pub(crate) use trust::knows_authorities;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(windows)]
pub(crate) use windows::*;
