//! Counts events that could not be recorded.
//!
//! On a full disk a hook can append to neither the log nor the diagnostics. The length of a sparse
//! file can still be changed, because it takes no block. So the length of `dropped-events` is the
//! count, and its modification time is the time of the last loss. If no file can be opened, because
//! too many are open, an empty folder in `dropped-events.d` counts one event.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::{Path, PathBuf},
    thread,
    time::{Duration, SystemTime},
};

use jiff::Timestamp;
use serde::Serialize;

use claude_mem_core::os::{CreateOptionsExt as _, OpenOptionsExt as _};

/// Attempts to take the lock before the count is changed without it.
const LOCK_ATTEMPTS_MAX: u32 = 50;
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// Events that could not be recorded since the last acknowledgement.
#[derive(Debug, Serialize)]
pub struct Dropped {
    pub events: u64,
    /// When the last one was lost, as RFC 3339.
    pub last: String,
}

impl Dropped {
    /// Increments the count, unless even that fails.
    pub fn add(data: &Path) {
        if add(&place(data)).is_err() {
            let name = format!("{}-{}", std::process::id(), Timestamp::now().as_nanosecond());
            let _ = fs::create_dir_all(folders(data).join(name));
        }
    }

    /// The count; `None` if it is zero.
    pub fn look(data: &Path) -> Option<Self> {
        let file = fs::metadata(place(data)).ok().filter(fs::Metadata::is_file);
        let counted = file.as_ref().map_or(0, fs::Metadata::len);
        let entries = fs::read_dir(folders(data)).into_iter().flatten().flatten();
        let folders: Vec<_> = entries.filter_map(|entry| entry.metadata().ok()).collect();
        let times = file.iter().chain(&folders).filter_map(|found| found.modified().ok());
        let last = times.max().and_then(|at| Timestamp::try_from(at).ok());
        let (events, last) = (counted + folders.len() as u64, last.unwrap_or_default());
        (events > 0).then(|| Self { events, last: format!("{last:.0}") })
    }

    /// Resets the count.
    pub fn acknowledge(data: &Path) -> io::Result<()> {
        for removed in [fs::remove_dir_all(folders(data)), fs::remove_file(place(data))] {
            removed.or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        Ok(())
    }
}

fn folders(data: &Path) -> PathBuf {
    data.join("dropped-events.d")
}

fn place(data: &Path) -> PathBuf {
    data.join("dropped-events")
}

fn add(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).owner_only().no_wait();
    let file = options.open(path)?;
    lock(&file);
    file.set_len(file.metadata()?.len() + 1)?;
    file.set_modified(SystemTime::now())
}

fn lock(file: &File) {
    for _ in 0..LOCK_ATTEMPTS_MAX {
        if file.try_lock().is_ok() {
            return;
        }
        thread::sleep(LOCK_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_losses_are_all_counted_until_acknowledged() {
        let data = tempfile::tempdir().unwrap();
        assert!(Dropped::look(data.path()).is_none());
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).for_each(|_| Dropped::add(data.path())));
            }
        });
        assert_eq!(Dropped::look(data.path()).unwrap().events, 80);
        Dropped::acknowledge(data.path()).unwrap();
        // What cannot be opened is counted, too.
        fs::create_dir(place(data.path())).unwrap();
        (0..2).for_each(|_| Dropped::add(data.path()));
        fs::remove_dir(place(data.path())).unwrap();
        assert_eq!(Dropped::look(data.path()).unwrap().events, 2);
        Dropped::acknowledge(data.path()).unwrap();
        assert!(Dropped::look(data.path()).is_none());
    }
}
