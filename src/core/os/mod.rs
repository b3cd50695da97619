//! Differences between operating systems: processes, streams, signals, file modes. Opening, locking
//! and syncing files is in the log's `system` module.

mod heap;
mod output_within;
mod root_certs;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

pub use claude_mem_log::system::*;
pub use heap::share_one_heap;
pub use output_within::output_within;
pub use root_certs::has_root_certificates;
#[cfg(unix)]
pub use unix::*;
#[cfg(windows)]
pub use windows::*;
