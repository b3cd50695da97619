//! The backup of the log on this machine, used while `CLAUDE_MEM_SHIP_TO` is empty.
//!
//! It is a remote in the directory `backups/log`, with the same objects, checks and commands as any
//! other. It protects against damage and mistakes, not against the loss of the disk. It differs
//! from other remotes in three ways: it contains only the newest segments, up to a limit; it is
//! rewritten as soon as events are erased from the log; and if its history diverges from the log,
//! the worker replaces it without asking the user.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::Serialize;

use crate::ship::{Error, Shipper, local::LocalSegment, local_state::State, manifest::HostId};
use claude_mem_core::{
    app::App,
    os,
    paths::{Paths, create_private, expand_tilde},
    settings::{
        Settings,
        table::{BACKUP_MB, SHIP_TO},
    },
    time_arg::rfc3339,
};

const MB: u64 = 1 << 20;
/// Free space that is reserved for the log.
const FREE_BYTES_MIN: u64 = 256 * MB;

pub fn dir(paths: &Paths) -> PathBuf {
    paths.data.join("backups/log")
}

/// The shipper's state file for the backup.
pub fn state_file(paths: &Paths) -> PathBuf {
    paths.data.join("backups/log.json")
}

fn bytes_max(settings: &Settings) -> u64 {
    settings.get(&BACKUP_MB) * MB
}

/// Whether the backup is enabled. It is off while the log is shipped to a remote.
pub fn is_on(settings: &Settings) -> bool {
    settings.get(&SHIP_TO).is_empty() && bytes_max(settings) > 0
}

/// A remote that contains only the newest segments.
#[derive(Debug)]
pub(super) struct BackupLimit {
    pub(super) dir: PathBuf,
    pub(super) bytes_max: u64,
    /// The state file; `ship.json` belongs to the configured remote.
    pub(super) state: PathBuf,
    pub(super) lock: PathBuf,
}

impl BackupLimit {
    /// The limits of the backup; `None` for any other place.
    pub(super) fn of(place: &str, paths: &Paths, settings: &Settings) -> Option<Self> {
        let place = expand_tilde(Path::new(place), paths.home.as_deref());
        let dir = dir(paths);
        let is_backup = std::path::absolute(place).ok()? == std::path::absolute(&dir).ok()?;
        is_backup.then(|| Self {
            dir,
            bytes_max: bytes_max(settings),
            state: state_file(paths),
            lock: paths.data.join("backups/log.lock"),
        })
    }

    /// The newest segments that fit within the limit, at least one.
    pub(super) fn newest(&self, mut segments: Vec<LocalSegment>) -> Vec<LocalSegment> {
        let mut bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        while bytes > self.bytes_max && segments.len() > 1 {
            bytes -= segments.remove(0).bytes;
        }
        segments
    }

    /// Frees space. Deletes temporary files of killed processes, which no listing shows. Deletes
    /// the copies of other logs, oldest first, if they do not fit next to `bytes` of this one.
    /// Until then a log that was lost or replaced can be restored.
    pub(super) fn free_space(&self, host: HostId, bytes: u64) -> Result<(), Error> {
        let failed = |path: &Path, error| Error::io("delete", path, error);
        for path in files(&self.dir) {
            // The object store writes to `NAME#N` before it renames the object.
            if path.file_name().is_some_and(|name| name.to_string_lossy().contains('#')) {
                fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            }
        }
        let mut room = self.bytes_max.saturating_sub(bytes);
        for other in other_logs(&self.dir, host) {
            let files = files(&other);
            let bytes = files.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).sum();
            match room.checked_sub(bytes) {
                Some(left) => room = left,
                None => fs::remove_dir_all(&other).map_err(|error| failed(&other, error))?,
            }
        }
        Ok(())
    }
}

/// The copies of other logs, newest first.
pub fn other_logs(dir: &Path, host: HostId) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("hosts")).into_iter().flatten().flatten();
    let is_other = |path: &PathBuf| path.file_name() != Some(host.to_string().as_ref());
    let mut others: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(is_other).collect();
    let changed = |path: &PathBuf| fs::metadata(path.join("chain")).ok()?.modified().ok();
    others.sort_by_key(|path| std::cmp::Reverse(changed(path)));
    others
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let (dirs, mut found): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    found.extend(dirs.iter().flat_map(|dir| files(dir)));
    found
}

/// A shipper that updates the backup incrementally.
pub fn shipper(app: &App) -> Result<Shipper, Error> {
    let App { paths, settings, environment, clock, .. } = app;
    let (dir, parent) = (dir(paths), paths.data.join("backups"));
    create_private(&parent).map_err(|error| Error::io("create", &parent, error))?;
    if os::free_bytes(&parent).is_some_and(|free| free < FREE_BYTES_MIN) {
        return Err(Error::io("back up the log to", dir, io::ErrorKind::StorageFull.into()));
    }
    Shipper::open(&dir.to_string_lossy(), paths, settings, environment, *clock)
}

/// For `status`. Scripts use these names, so they are stable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Backup {
    pub place: PathBuf,
    pub log_bytes: u64,
    /// When it was last complete.
    pub copied_at: Option<String>,
    pub error: Option<String>,
}

impl Backup {
    /// Reads the status; `None` if the backup is disabled.
    pub fn look(app: &App) -> Option<Self> {
        if !is_on(&app.settings) {
            return None;
        }
        let state = State::read(&state_file(&app.paths)).unwrap_or_default();
        Some(Self {
            place: dir(&app.paths),
            log_bytes: state.log_bytes,
            copied_at: Some(state.shipped_us).filter(|time| *time > 0).map(rfc3339),
            error: state.error,
        })
    }
}
