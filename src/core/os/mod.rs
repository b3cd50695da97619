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

/// Systems that keep files of other programs in different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum System {
    MacOs,
    Windows,
    /// Linux, and systems like it.
    Other,
}

impl System {
    /// The current system.
    pub const HERE: Self = if cfg!(target_os = "macos") {
        Self::MacOs
    } else if cfg!(windows) {
        Self::Windows
    } else {
        Self::Other
    };
}
