//! Beginning a log, and beginning its next segment.
//!
//! A roll gives the full segment its final name beside `active.log`, syncs the directory, and only then
//! moves a new segment over `active.log`. There is no moment without an `active.log`, and no order of
//! losing unsynced names loses the full segment. All syncing is done without the exclusive lock: that
//! is held for the few microseconds in which nobody may append.

use crate::{
    Error,
    directory::Directory,
    disk::{File, Lock},
    format::{SegmentHeader, encode_log_id},
    write::writer::Target,
};
use std::{io, path::Path, time::Duration};

const LOCK_PAUSE: Duration = Duration::from_micros(200);

/// Makes `active.log`, and the directory and its identity if need be. Fine if another process is faster.
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

/// Makes a directory whose name survives the loss of power, like those above it that were missing.
pub(crate) fn create_dir(directory: &Directory, path: &Path) -> Result<(), Error> {
    let disk = &directory.disk;
    let missing: Vec<&Path> =
        path.ancestors().take_while(|path| disk.inode(path).is_err()).collect();
    disk.create_dir(path).map_err(|error| Error::io("create", path, error))?;
    for parent in missing.iter().filter_map(|path| path.parent()) {
        // The first sync of a segment does the nearest of them once more, and says so if it fails.
        let _ = disk.sync_dir(parent);
    }
    Ok(())
}

/// Rolls the active segment unless somebody keeps appending. Says whether it did.
pub(crate) fn roll(directory: &Directory, target: &Target, wait: Duration) -> Result<bool, Error> {
    let full = Full { file: target.file.as_ref(), inode: target.inode, number: target.number };
    roll_full(directory, &full, wait)
}

/// Rolls away an active segment whose header is damaged, so that what is appended next can be read.
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
    // Before the first sync of the new segment nothing depends on its header.
    let _ = next.sync();
    Ok(true)
}

/// Does something while the full segment is locked and still active; `None` if that cannot be.
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

/// Gives the full segment its final name while it is still the active one, and makes that durable. Says
/// whether it could: some file systems have no second names.
///
/// The shared lock keeps others from rolling, so `active.log` is the full segment throughout.
fn name_full(directory: &Directory, full: &Full<'_>) -> Result<bool, Error> {
    let disk = &directory.disk;
    let name = directory.segment(full.number, 0);
    match disk.link(&directory.active(), &name) {
        Ok(()) => {}
        // Another roller was here, and may have died before it synced.
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

/// Moves a new segment over `active.log`. Under the exclusive lock the full one's length is final.
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

/// Makes a small file with this content, synced. Leaves nothing behind if that fails.
pub(crate) fn write_new(directory: &Directory, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = directory.disk.create(path).map_err(|error| Error::io("create", path, error))?;
    let result = write_bytes(file.as_ref(), bytes).and_then(|()| file.sync());
    if result.is_err() {
        let _ = directory.disk.remove(path);
    }
    result.map_err(|error| Error::io("write", path, error))
}

/// Writes to a file that nobody else writes to yet, so that the rest of a short write may simply follow.
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

/// Gives a finished file its name, unless there is one of that name already, which is fine.
fn publish(directory: &Directory, temporary: &Path, name: &Path) -> io::Result<()> {
    match directory.disk.link(temporary, name) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) if is_unsupported(&error) && directory.disk.inode(name).is_err() => {
            directory.disk.rename(temporary, name)
        }
        result => result,
    }
}

/// Some file systems have no second names. Then a name is moved, and appenders look twice.
fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied)
}

/// The identity of the log, made and kept if there is none.
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
    // Another process may have been faster. If what is there cannot be read, ours is as good as any:
    // every segment carries the id it was made with.
    Ok(directory.read_log_id().unwrap_or(log_id))
}

/// Sets space aside, if there is any. It is a comfort, so failing is fine.
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
