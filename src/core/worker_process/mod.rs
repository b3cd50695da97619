//! The worker as a process: its lock file, its wake socket, and spawning it.

mod lock;
mod spawn;
mod wake;

pub use lock::{WorkerLock, is_worker_running};
pub use spawn::{ATTEMPTS, forget_attempts, start, start_if_due};
pub use wake::{WAKE_SOCKET, Waker, listen_here, wake};
