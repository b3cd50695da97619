//! Making what was appended survive the loss of power.

use crate::{
    Appender, Error, Options,
    directory::Directory,
    disk::File,
    format::{KIND_SEAL, SEGMENT_HEADER_LEN, Synced},
    recovery::Found,
    roll,
    segment::Segment,
    writer::{Part, Payload, Target},
};
use std::{io, path::Path, sync::Arc, time::Duration};

/// Whether the last sync, by anyone, is longer ago than `age`. Costs one look at a file.
pub fn sync_is_due(dir: &Path, options: &Options, age: Duration) -> bool {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    options.disk.age(&directory.synced()).map_or(true, |since| since >= age)
}

/// Syncs the active segment, and those before it that nobody has synced since they were rolled.
pub(crate) fn sync(appender: &mut Appender) -> Result<(), Error> {
    if let Some(spilled) = &appender.spilled {
        let path = appender.directory.spill();
        let synced = spilled.file.sync().and_then(|()| appender.directory.disk.sync_dir(&path));
        synced.map_err(|source| Error::SyncFailed { path, source })?;
    }
    appender.target = None;
    if appender.directory.disk.inode(&appender.directory.active()).is_err() {
        // Nothing but spilled records, or nothing at all.
        return Ok(());
    }
    let target = appender.open_target()?;
    let synced = read_synced(&appender.directory);
    sync_rolled(appender, synced, target.number)?;
    let len = file_len(appender, &target)?;
    if let Err(source) = target.file.sync() {
        return rescue(appender, &target, synced, source);
    }
    finish(appender, synced, Synced { segment: target.number, bytes: len })
}

/// Segments rolled since the last sync hold records that nobody has synced. Sealing syncs as well.
fn sync_rolled(appender: &mut Appender, synced: Option<Synced>, active: u64) -> Result<(), Error> {
    if synced.is_some_and(|synced| synced.segment == active) {
        return Ok(());
    }
    let first = synced.map_or(0, |synced| synced.segment);
    let files = appender.directory.segments()?;
    for file in files.iter().filter(|file| file.number >= first) {
        let segment = Segment::open(&appender.directory, file)?;
        if segment.seal.is_some() {
            continue;
        }
        if let Err(source) = segment.file.sync() {
            let from = synced
                .filter(|synced| synced.segment == file.number)
                .map_or(0, |synced| synced.bytes);
            copy_to_active(appender, segment, from)
                .map_err(|_| Error::SyncFailed { path: file.path.clone(), source })?;
        }
    }
    Ok(())
}

/// Remembers how far the log is on disk. The first sync of a segment also syncs its name.
fn finish(appender: &Appender, before: Option<Synced>, now: Synced) -> Result<(), Error> {
    let directory = &appender.directory;
    if before.is_none_or(|before| before.segment != now.segment) {
        let path = &directory.path;
        directory
            .disk
            .sync_dir(path)
            .map_err(|source| Error::SyncFailed { path: path.clone(), source })?;
    }
    // If this is lost, the next sync does a little too much.
    let _ = write_synced(directory, now);
    Ok(())
}

fn read_synced(directory: &Directory) -> Option<Synced> {
    let mut bytes = [0; Synced::LEN];
    let len = directory.disk.open_read(&directory.synced()).ok()?.read_at(&mut bytes, 0).ok()?;
    Synced::decode(&bytes[..len])
}

fn write_synced(directory: &Directory, synced: Synced) -> io::Result<()> {
    let path = directory.synced();
    let bytes = synced.encode();
    match directory.disk.open_marker(&path) {
        Ok(file) => file.write_at(&bytes, 0),
        Err(error) => Err(error),
    }
}

/// A sync failed, so the disk may have dropped what it was told to keep, while the kernel believes that
/// it has not: syncing that file again would lie. The records since the last good sync can still be read.
/// They are written again, to a new segment.
fn rescue(
    appender: &mut Appender,
    target: &Target,
    synced: Option<Synced>,
    source: io::Error,
) -> Result<(), Error> {
    let path = appender.directory.active();
    let failed = |source| Error::SyncFailed { path: path.clone(), source };
    let Ok(Some(suspect)) = Segment::open_active(&appender.directory) else {
        return Err(failed(source));
    };
    let from =
        synced.filter(|synced| synced.segment == target.number).map_or(0, |synced| synced.bytes);
    let rolled = roll::roll(&appender.directory, target);
    appender.target = None;
    // Another process may have rolled it in the meantime, which serves as well.
    let is_elsewhere = rolled.is_ok()
        && suspect.file.inode().is_ok_and(|own| {
            appender.directory.disk.inode(&path).is_ok_and(|active| active != own)
        });
    if !is_elsewhere || copy_to_active(appender, suspect, from).is_err() {
        return Err(failed(source));
    }
    let Ok(fresh) = appender.open_target() else { return Err(failed(source)) };
    let len = file_len(appender, &fresh)?;
    fresh.file.sync().map_err(failed)?;
    finish(appender, None, Synced { segment: fresh.number, bytes: len })
}

/// Writes all records of `segment` from offset `from` on once more.
fn copy_to_active(appender: &mut Appender, mut segment: Segment, from: u64) -> Result<(), Error> {
    let mut offset = from.max(SEGMENT_HEADER_LEN as u64);
    loop {
        match segment.scan(offset)? {
            Found::Frame(header) => {
                if header.kind != KIND_SEAL {
                    let payload = Payload::Owned(segment.payload(offset, &header)?.to_vec());
                    appender.append_parts(&[Part { fields: (&header).into(), payload }])?;
                }
                offset += header.frame_len() as u64;
            }
            Found::Gap { range, .. } => offset = range.end,
            Found::Tail { .. } | Found::End => return Ok(()),
        }
    }
}

fn file_len(appender: &Appender, target: &Target) -> Result<u64, Error> {
    let file: &dyn File = target.file.as_ref();
    file.len().map_err(|error| Error::io("stat", &appender.directory.active(), error))
}
