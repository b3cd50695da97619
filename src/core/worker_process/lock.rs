//! The worker's lock file: one worker per data directory.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::Duration,
};

use crate::os::{self, open_lock};

const FILE: &str = "worker.lock";

/// A hook that checks for a worker holds the lock for microseconds, so taking it is retried this
/// often.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// The worker's lock. Released when dropped, or when the process ends.
#[derive(Debug)]
pub struct WorkerLock {
    _file: File,
    inode: Option<u64>,
}

impl WorkerLock {
    /// Takes the lock. `None` if another process holds it.
    pub fn take(data: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(&data.join(FILE))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file, inode: inode(data) })),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether the locked file is still in the data directory. If the directory was deleted,
    /// another worker may run in a new one, and its files are not ours.
    pub fn is_in_place(&self, data: &Path) -> bool {
        self.inode == inode(data)
    }
}

fn inode(data: &Path) -> Option<u64> {
    Some(os::inode_and_len(&data.join(FILE)).ok()?.0)
}

/// Whether a worker runs here: it holds the lock until it ends.
pub fn is_worker_running(data: &Path) -> bool {
    match File::open(data.join(FILE)) {
        Ok(lock) => matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_process_gets_the_lock_and_hooks_see_it() {
        let data = tempfile::tempdir().unwrap();
        let first = WorkerLock::take(data.path()).unwrap();
        assert!(first.is_some() && is_worker_running(data.path()));
        assert!(WorkerLock::take(data.path()).unwrap().is_none());
        drop(first);
        assert!(!is_worker_running(data.path()));
        assert!(WorkerLock::take(data.path()).unwrap().is_some());
    }

    #[test]
    fn a_worker_is_recognized_by_its_lock() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_worker_running(data.path()));
        let lock = File::create(data.path().join("worker.lock")).unwrap();
        assert!(!is_worker_running(data.path()));
        lock.lock().unwrap();
        assert!(is_worker_running(data.path()));
    }
}
