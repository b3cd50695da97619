//! Creates a log, and rolls its segments.
//!
//! A roll links the full segment under its final name, syncs the directory, and only then renames a
//! new segment over `active.log`. There is always an `active.log`, and no loss of unsynced names
//! loses the full segment. All syncing happens without the exclusive lock, which is held for a few
//! microseconds.

use crate::{
    Error,
    directory::Directory,
    disk::{File, Lock},
    format::{SegmentHeader, encode_log_id},
    write::writer::Target,
};
use std::{io, path::Path, time::Duration};

const LOCK_PAUSE: Duration = Duration::from_micros(200);

/// Creates `active.log`, and the directory and `log.id` if necessary. Another process may be
/// faster.
pub(crate) fn create_log(directory: &Directory, reserve_bytes: u64) -> Result<(), Error> {
    create_dir(directory, &directory.path)?;
    let log_id = ensure_log_id(directory)?;
    let number = directory.number_after_last()?;
    let header = SegmentHeader::new(log_id, number, directory.disk.now_us());
    let temporary = directory.temporary();
    write_new(directory, &temporary, &header.encode())?;
    let published = publish(directory, &temporary, &directory.active());
    let _ = directory.disk.remove(&temporary);
    ensure_reserve(directory, reserve_bytes);
    published.map_err(|error| Error::io("create", &directory.active(), error))
}

/// Creates a directory and its missing parents durably.
pub(crate) fn create_dir(directory: &Directory, path: &Path) -> Result<(), Error> {
    let disk = &directory.disk;
    let missing: Vec<&Path> =
        path.ancestors().take_while(|path| disk.inode(path).is_err()).collect();
    disk.create_dir(path).map_err(|error| Error::io("create", path, error))?;
    for parent in missing.iter().filter_map(|path| path.parent()) {
        // The first sync of a segment syncs the nearest one again and reports a failure.
        let _ = disk.sync_dir(parent);
    }
    Ok(())
}

/// Rolls the active segment unless others keep appending. Returns whether it did.
pub(crate) fn roll(directory: &Directory, target: &Target, wait: Duration) -> Result<bool, Error> {
    let full = Full { file: target.file.as_ref(), inode: target.inode, number: target.number };
    roll_full(directory, &full, wait)
}

/// Rolls an active segment whose header is damaged, so that new records can be read.
pub(crate) fn roll_away_headless(directory: &Directory, wait: Duration) -> Result<bool, Error> {
    let active = directory.active();
    let file = directory.disk.open(&active).map_err(|error| Error::io("open", &active, error))?;
    let inode = file.inode().map_err(|error| Error::io("stat", &active, error))?;
    let number = directory.number_after_last()?;
    roll_full(directory, &Full { file: file.as_ref(), inode, number }, wait)
}

/// The segment to be rolled.
struct Full<'a> {
    file: &'a dyn File,
    inode: u64,
    number: u64,
}

fn roll_full(directory: &Directory, full: &Full<'_>, wait: Duration) -> Result<bool, Error> {
    let log_id = ensure_log_id(directory)?;
    let named = with_lock(directory, full, Lock::Shared, wait, || name_full(directory, full))?;
    let Some(is_named) = named else { return Ok(false) };
    let begin = || begin_next(directory, full, log_id, is_named);
    let Some(next) = with_lock(directory, full, Lock::Exclusive, wait, begin)? else {
        return Ok(false);
    };
    // Nothing depends on the header of the new segment before its first sync.
    let _ = next.sync();
    Ok(true)
}

/// Runs a function while the full segment is locked and still active; `None` if that fails.
fn with_lock<T>(
    directory: &Directory,
    full: &Full<'_>,
    lock: Lock,
    wait: Duration,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let active = directory.active();
    let mut waited = Duration::ZERO;
    while !full.file.try_lock(lock).map_err(|error| Error::io("lock", &active, error))? {
        if waited >= wait {
            return Ok(None);
        }
        directory.disk.pause(LOCK_PAUSE);
        waited += LOCK_PAUSE;
    }
    let is_active = directory.disk.inode(&active).ok() == Some(full.inode);
    let result = if is_active { work().map(Some) } else { Ok(None) };
    let _ = full.file.unlock();
    result
}

/// Links the full segment under its final name while it is still active, durably. Returns false if
/// the file system has no hard links.
///
/// The shared lock prevents other rolls, so `active.log` is the full segment throughout.
fn name_full(directory: &Directory, full: &Full<'_>) -> Result<bool, Error> {
    let disk = &directory.disk;
    let name = directory.segment(full.number, 0);
    match disk.link(&directory.active(), &name) {
        Ok(()) => {}
        // Another process did this, and may have died before it synced.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if disk.inode(&name).ok() != Some(full.inode) {
                return Err(Error::io("name", &name, error));
            }
        }
        Err(error) if is_unsupported(&error) => return Ok(false),
        Err(error) => return Err(Error::io("name", &name, error)),
    }
    disk.sync_dir(&directory.path).map_err(|error| Error::io("sync", &directory.path, error))?;
    Ok(true)
}

/// Renames a new segment over `active.log`. Under the exclusive lock the length of the full one is
/// final.
fn begin_next(
    directory: &Directory,
    full: &Full<'_>,
    log_id: [u8; 16],
    is_named: bool,
) -> Result<std::sync::Arc<dyn File>, Error> {
    let disk = &directory.disk;
    let active = directory.active();
    let bytes_before = full.file.len().map_err(|error| Error::io("stat", &active, error))?;
    let header = SegmentHeader {
        bytes_before,
        ..SegmentHeader::new(log_id, full.number + 1, disk.now_us())
    };
    let temporary = directory.temporary();
    let file = disk.create(&temporary).map_err(|error| Error::io("create", &temporary, error))?;
    let moved = write_bytes(file.as_ref(), &header.encode())
        .and_then(|()| match is_named {
            true => Ok(()),
            false => disk.rename(&active, &directory.segment(full.number, 0)),
        })
        .and_then(|()| disk.rename(&temporary, &active));
    if let Err(error) = moved {
        let _ = disk.remove(&temporary);
        return Err(Error::io("begin", &temporary, error));
    }
    Ok(file)
}

/// Creates a small synced file. Leaves nothing behind if that fails.
pub(crate) fn write_new(directory: &Directory, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = directory.disk.create(path).map_err(|error| Error::io("create", path, error))?;
    let result = write_bytes(file.as_ref(), bytes).and_then(|()| file.sync());
    if result.is_err() {
        let _ = directory.disk.remove(path);
    }
    result.map_err(|error| Error::io("write", path, error))
}

/// Writes to a file without other writers, so that a short write can simply be continued.
pub(crate) fn write_bytes(file: &dyn File, bytes: &[u8]) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.append(rest)?.bytes {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => rest = &rest[taken..],
        }
    }
    Ok(())
}

/// Links a finished file under its name, unless that exists.
fn publish(directory: &Directory, temporary: &Path, name: &Path) -> io::Result<()> {
    match directory.disk.link(temporary, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if is_unsupported(&error) && directory.disk.inode(name).is_err() => {
            directory.disk.rename(temporary, name)
        }
        result => result,
    }
}

/// Some file systems have no hard links. Then the file is renamed, and appenders check twice.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

/// The identity of the log, created if there is none.
pub(crate) fn ensure_log_id(directory: &Directory) -> Result<[u8; 16], Error> {
    if let Some(log_id) = directory.read_log_id() {
        return Ok(log_id);
    }
    let log_id = *crate::Id::random(directory.disk.now_us()).as_bytes();
    let temporary = directory.temporary();
    write_new(directory, &temporary, encode_log_id(log_id).as_bytes())?;
    let path = directory.log_id();
    let published = publish(directory, &temporary, &path);
    let _ = directory.disk.remove(&temporary);
    published.map_err(|error| Error::io("create", &path, error))?;
    // Another process may have been faster. If its file is unreadable, ours is fine: every segment
    // contains the id it was created with.
    Ok(directory.read_log_id().unwrap_or(log_id))
}

/// Allocates the reserve if possible; a failure does not matter.
pub(crate) fn ensure_reserve(directory: &Directory, bytes: u64) {
    let path = directory.reserve();
    if bytes == 0 || directory.disk.inode(&path).is_ok() {
        return;
    }
    let Ok(file) = directory.disk.create(&path) else { return };
    if file.allocate(bytes).is_err() {
        let _ = directory.disk.remove(&path);
    }
}
