//! One worker for each data directory: whoever holds the lock is it.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::Duration,
};

use crate::os::open_lock;

/// A hook that looks whether a worker is there holds the lock for some microseconds. It is asked so often
/// before it counts as a worker.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to be the worker. It ends with this value, or with the process, however that ends.
#[derive(Debug)]
pub struct WorkerLock {
    _file: File,
}

impl WorkerLock {
    /// Takes the right, or says that another process has it.
    pub fn take(data: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(&data.join("worker.lock"))?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(Some(Self { _file: file })),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// Whether a worker is at work here. It holds this lock as long as it lives.
pub fn is_worker_running(data: &Path) -> bool {
    match File::open(data.join("worker.lock")) {
        Ok(lock) => matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_at_a_time_and_hooks_see_it() {
        let data = tempfile::tempdir().unwrap();
        let first = WorkerLock::take(data.path()).unwrap();
        assert!(first.is_some() && is_worker_running(data.path()));
        assert!(WorkerLock::take(data.path()).unwrap().is_none());
        drop(first);
        assert!(!is_worker_running(data.path()));
        assert!(WorkerLock::take(data.path()).unwrap().is_some());
    }

    #[test]
    fn a_worker_is_known_by_the_lock_it_holds() {
        let data = tempfile::tempdir().unwrap();
        assert!(!is_worker_running(data.path()));
        let lock = File::create(data.path().join("worker.lock")).unwrap();
        assert!(!is_worker_running(data.path()));
        lock.lock().unwrap();
        assert!(is_worker_running(data.path()));
    }
}
