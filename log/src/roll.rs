//! Beginning a log, and beginning its next segment.
//!
//! A roll is: make the next segment under a name nobody looks at, give the full one its final name, then
//! move the new one over `active.log`. There is no moment without an `active.log`, and the directory is
//! synced between the two names, so that no order of losing unsynced names loses the full segment.

use crate::{
    Error,
    directory::Directory,
    disk::{File, Lock},
    format::{SegmentHeader, encode_log_id},
    writer::Target,
};
use std::{
    io,
    path::{Path, PathBuf},
};

/// Makes `active.log`, and the directory and its identity if need be. Fine if another process is faster.
pub(crate) fn create_log(directory: &Directory, reserve_bytes: u64) -> Result<(), Error> {
    let path = &directory.path;
    directory.disk.create_dir(path).map_err(|error| Error::io("create", path, error))?;
    let log_id = ensure_log_id(directory)?;
    let number = directory.number_after_last()?;
    let temporary = prepare(directory, log_id, number)?;
    let published = publish(directory, &temporary, &directory.active());
    let _ = directory.disk.remove(&temporary);
    ensure_reserve(directory, reserve_bytes);
    published.map_err(|error| Error::io("create", &directory.active(), error))
}

/// Rolls the active segment if nobody is appending right now. Says whether it did.
pub(crate) fn roll(directory: &Directory, target: &Target) -> Result<bool, Error> {
    let active = directory.active();
    if !target.file.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", &active, error))? {
        return Ok(false);
    }
    let result = roll_locked(directory, target.inode, target.number);
    let _ = target.file.unlock();
    result
}

/// Rolls away an active segment whose header is damaged, so that what is appended next can be read.
pub(crate) fn roll_away_headless(directory: &Directory) -> Result<bool, Error> {
    let active = directory.active();
    let file = directory.disk.open(&active).map_err(|error| Error::io("open", &active, error))?;
    if !file.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", &active, error))? {
        return Ok(false);
    }
    let inode = file.inode().map_err(|error| Error::io("stat", &active, error))?;
    let result = roll_locked(directory, inode, directory.number_after_last()?);
    let _ = file.unlock();
    result
}

/// The caller holds the exclusive lock on the file `inode`, which may be rolled away already.
fn roll_locked(directory: &Directory, inode: u64, number: u64) -> Result<bool, Error> {
    let disk = &directory.disk;
    let active = directory.active();
    if disk.inode(&active).ok() != Some(inode) {
        return Ok(false);
    }
    let log_id = ensure_log_id(directory)?;
    let temporary = prepare(directory, log_id, number + 1)?;
    let result = name_full_segment(directory, inode, number).and_then(|()| {
        disk.rename(&temporary, &active).map_err(|error| Error::io("rename", &temporary, error))
    });
    if result.is_err() {
        let _ = disk.remove(&temporary);
    }
    result.map(|()| true)
}

fn name_full_segment(directory: &Directory, inode: u64, number: u64) -> Result<(), Error> {
    let disk = &directory.disk;
    let full = directory.segment(number, 0);
    match disk.link(&directory.active(), &full) {
        Ok(()) => {}
        // A roller that died at this point has done it for us.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if disk.inode(&full).ok() != Some(inode) {
                return Err(Error::io("name", &full, error));
            }
        }
        Err(error) if is_unsupported(&error) => {
            disk.rename(&directory.active(), &full)
                .map_err(|error| Error::io("rename", &full, error))?;
        }
        Err(error) => return Err(Error::io("name", &full, error)),
    }
    disk.sync_dir(&directory.path).map_err(|error| Error::io("sync", &directory.path, error))
}

/// A new segment with its header on disk, under a temporary name.
fn prepare(directory: &Directory, log_id: [u8; 16], number: u64) -> Result<PathBuf, Error> {
    let path = directory.temporary();
    let header = SegmentHeader::new(log_id, number, directory.disk.now_us());
    write_new(directory, &path, &header.encode())?;
    Ok(path)
}

/// Makes a small file with this content, synced. Leaves nothing behind if that fails.
pub(crate) fn write_new(directory: &Directory, path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let file = directory.disk.create(path).map_err(|error| Error::io("create", path, error))?;
    let result = write_and_sync(file.as_ref(), bytes);
    if result.is_err() {
        let _ = directory.disk.remove(path);
    }
    result.map_err(|error| Error::io("write", path, error))
}

fn write_and_sync(file: &dyn File, bytes: &[u8]) -> io::Result<()> {
    // Nobody else writes to it yet, so the rest of a short write may simply follow.
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.append(rest)?.bytes {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            taken => rest = &rest[taken..],
        }
    }
    file.sync()
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
