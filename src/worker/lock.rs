//! One worker for each data directory: whoever holds the lock is it.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::Duration,
};

use crate::system::open_lock;

/// A hook that looks whether a worker is there holds the lock for some microseconds. It is asked so often
/// before it counts as a worker.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(5);

/// The right to be the worker. It ends with this value, or with the process, however that ends.
#[derive(Debug)]
pub(crate) struct WorkerLock {
    _file: File,
}

impl WorkerLock {
    /// Takes the right, or says that another process has it.
    pub(crate) fn take(data: &Path) -> io::Result<Option<Self>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hooks::is_worker_running;

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
}
