//! The distill lock: one process distills at a time, so that no request is paid for twice.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use claude_mem_core::os::open_lock;

/// Held until dropped, or until the process ends in any way.
#[derive(Debug)]
pub struct DistillLock {
    _file: File,
}

impl DistillLock {
    /// Takes the lock of this data directory. Calls `waiting` once if another process holds it,
    /// then blocks.
    pub fn take(data: &Path, waiting: impl FnOnce()) -> io::Result<Self> {
        let file = open_lock(&data.join("ask.lock"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                waiting();
                file.lock()?;
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        Ok(Self { _file: file })
    }

    /// Takes the lock unless another process holds it.
    pub(crate) fn try_take(data: &Path) -> io::Result<Option<Self>> {
        let file = open_lock(&data.join("ask.lock"))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_second_process_waits_for_the_lock() {
        let data = tempfile::tempdir().unwrap();
        let first = DistillLock::take(data.path(), || panic!("the lock is free")).unwrap();
        assert!(DistillLock::try_take(data.path()).unwrap().is_none());
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let second =
                scope.spawn(|| DistillLock::take(data.path(), || sender.send(()).unwrap()));
            receiver.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
    }
}
