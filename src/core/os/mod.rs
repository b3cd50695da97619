//! What systems do differently, under one name each, so that the rest reads the same everywhere: processes, streams,
//! signals, and who may read a file. Opening, locking and syncing files is in the log's own module of this name.

mod heap;
mod root_certs;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use claude_mem_log::system::*;
pub use heap::share_one_heap;
pub use root_certs::knows_authorities;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;
