//! Who may ask: one process at a time, so that no question is paid for twice.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
};

use claude_mem_core::os::open_lock;

/// The right to ask. It ends with this value, or with the process, however that ends.
#[derive(Debug)]
pub struct AskLock {
    _file: File,
}

impl AskLock {
    /// Takes the right to ask about what is recorded in this data directory. If another process has it,
    /// `waiting` is told once, and this returns when that one is done.
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

    /// Takes the right to ask, if no other process has it.
    pub fn try_take(data: &Path) -> io::Result<Option<Self>> {
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
    fn the_second_waits_for_the_first() {
        let data = tempfile::tempdir().unwrap();
        let first = AskLock::take(data.path(), || panic!("nobody else is there")).unwrap();
        assert!(AskLock::try_take(data.path()).unwrap().is_none());
        let (waits, told) = mpsc::channel();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| AskLock::take(data.path(), || waits.send(()).unwrap()));
            told.recv().unwrap();
            assert!(!second.is_finished());
            drop(first);
            second.join().unwrap().unwrap();
        });
    }
}
