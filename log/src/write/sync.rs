//! Syncing: makes appended records survive a power loss.
//!
//! A failed fsync is not retried on the same file: the kernel may have dropped the dirty pages and
//! marked them clean. Records since the last good sync can still be read, so they are rewritten to
//! a new file. Until that has succeeded, the marker `suspect` exists, and the next sync continues
//! the work, even in another process.

use crate::{
    Appender, Error, Options, Seq,
    directory::{Directory, SegmentFile},
    format::{FLAG_AGAIN, FrameFields, FrameHeader, KIND_SEAL, SEGMENT_HEADER_LEN, SyncMark},
    read::{rewritten::RewrittenRecords, segment::Segment},
    scan::ScanResult,
    write::{
        roll, spill,
        writer::{Part, Payload, Target},
    },
};
use std::{io, path::Path, sync::Arc, time::Duration};

/// Whether the last sync by any process is longer ago than `age`. Costs one `stat`.
pub fn sync_is_due(dir: &Path, options: &Options, age: Duration) -> bool {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    options.disk.age(&directory.synced()).map_or(true, |since| since >= age)
}

/// Syncs the active segment, and those before it that were rolled since the last sync.
pub(crate) fn sync(appender: &mut Appender) -> Result<(), Error> {
    sync_spilled(appender)?;
    appender.target = None;
    let active = appender.directory.active();
    if let Err(error) = appender.directory.disk.inode(&active)
        && error.kind() == io::ErrorKind::NotFound
        && appender.directory.segments()?.is_empty()
    {
        // Only spilled records, or nothing at all.
        return Ok(());
    }
    let synced = appender.directory.read_marker(&appender.directory.synced());
    if appender.directory.disk.inode(&appender.directory.suspect()).is_err() {
        let target = appender.open_target()?;
        match sync_from(&appender.directory, synced, &target) {
            Err(Error::SyncFailed { .. }) => mark_suspect(&appender.directory, synced),
            result => return result,
        }
    }
    rescue(appender, synced)
}

fn sync_spilled(appender: &mut Appender) -> Result<(), Error> {
    appender.release_spilled();
    if appender.released.is_empty() {
        return Ok(());
    }
    if let Err(Error::SyncFailed { .. }) = sync_released(appender) {
        // As with segments: what may be lost is rewritten to a new file.
        for spilled in appender.released.clone() {
            spill::write_again(appender, spilled)?;
        }
        appender.released.clear();
        appender.release_spilled();
        sync_released(appender)?;
    }
    appender.released.clear();
    Ok(())
}

fn sync_released(appender: &Appender) -> Result<(), Error> {
    let path = appender.directory.spill();
    let disk = &appender.directory.disk;
    let mut result = appender.released.iter().try_for_each(|spilled| spilled.file.sync());
    for dir in [&path, &appender.directory.path] {
        result = result.and_then(|()| disk.sync_dir(dir));
    }
    result.map_err(|source| Error::SyncFailed { path, source })
}

/// Syncs everything after `synced` up to the end of `target`, and updates the marker.
fn sync_from(
    directory: &Directory,
    synced: Option<SyncMark>,
    target: &Target,
) -> Result<(), Error> {
    let first = synced.map_or(0, |synced| synced.segment);
    let bytes = sync_segments(directory, first, target)?;
    if first != target.number {
        sync_names(directory, synced.is_none())?;
    }
    write_synced(directory, SyncMark { segment: target.number, bytes });
    Ok(())
}

/// Syncs all segments from `first` up to `target`. Returns the length of the last one.
///
/// A sealed segment is synced, too: the sealing process may have died before that.
fn sync_segments(directory: &Directory, first: u64, target: &Target) -> Result<u64, Error> {
    if first != target.number {
        for file in directory.segments()?.iter().filter(|file| file.number_last >= first) {
            sync_file(directory, file)?;
        }
    }
    let active = directory.active();
    let bytes = target.file.len().map_err(|error| Error::io("stat", &active, error))?;
    target.file.sync().map_err(|source| Error::SyncFailed { path: active, source })?;
    Ok(bytes)
}

fn sync_file(directory: &Directory, file: &SegmentFile) -> Result<(), Error> {
    let handle = match directory.disk.open_read(&file.path) {
        Ok(handle) => handle,
        // Compacted meanwhile, and synced by that.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("open", &file.path, error)),
    };
    handle.sync().map_err(|source| Error::SyncFailed { path: file.path.clone(), source })
}

/// The first sync of a segment also syncs its name, and the first of a log the name of its
/// directory.
fn sync_names(directory: &Directory, is_first_of_log: bool) -> Result<(), Error> {
    let sync_dir = |path: &Path| {
        let failed = |source| Error::SyncFailed { path: path.to_path_buf(), source };
        directory.disk.sync_dir(path).map_err(failed)
    };
    sync_dir(&directory.path)?;
    match directory.path.parent() {
        Some(parent) if is_first_of_log && !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => Ok(()),
    }
}

/// If this is lost, the next sync does a little too much.
fn write_synced(directory: &Directory, synced: SyncMark) {
    if let Ok(file) = directory.disk.open_marker(&directory.synced()) {
        let _ = file.write_at(&synced.encode(), 0);
    }
}

/// Marks records after `synced` as possibly lost. An existing marker reaches further back and
/// stays.
pub(crate) fn mark_suspect(directory: &Directory, synced: Option<SyncMark>) {
    let from = synced.unwrap_or(SyncMark { segment: 0, bytes: 0 });
    if let Ok(file) = directory.disk.create(&directory.suspect()) {
        // A marker without a place means everything.
        let _ = roll::write_bytes(file.as_ref(), &from.encode());
    }
}

/// Rewrites everything that may be lost to a new segment, and syncs it.
fn rescue(appender: &mut Appender, synced: Option<SyncMark>) -> Result<(), Error> {
    let mark = appender.directory.suspect();
    let from = match appender.directory.disk.inode(&mark) {
        Ok(_) => appender.directory.read_marker(&mark),
        Err(_) => synced,
    };
    let suspect = appender.open_target()?;
    let rolled = roll::roll(&appender.directory, &suspect, appender.options.lock_wait_max);
    appender.target = None;
    let fresh = appender.open_target()?;
    if fresh.inode == suspect.inode {
        let source = rolled.err().map_or(io::ErrorKind::WouldBlock.into(), io::Error::other);
        return Err(Error::SyncFailed { path: appender.directory.active(), source });
    }
    write_again(appender, from, fresh.number)?;
    appender.target = None;
    let target = appender.open_target()?;
    let bytes = sync_segments(&appender.directory, fresh.number, &target)?;
    sync_names(&appender.directory, true)?;
    write_synced(&appender.directory, SyncMark { segment: target.number, bytes });
    // If the marker stays, the next sync does all of this again.
    let _ = appender.directory.disk.remove(&mark);
    Ok(())
}

/// Rewrites all records after `from` and before segment `end`.
fn write_again(appender: &mut Appender, from: Option<SyncMark>, end: u64) -> Result<(), Error> {
    let from = from.unwrap_or(SyncMark { segment: 0, bytes: 0 });
    let files = appender.directory.segments()?;
    // Compaction syncs its output.
    let is_suspect =
        |file: &&SegmentFile| (from.segment..end).contains(&file.number) && file.generation == 0;
    let mut originals = RewrittenRecords::default();
    for file in files.iter().filter(is_suspect) {
        let bytes = if file.number == from.segment { from.bytes } else { 0 };
        match Segment::open(&appender.directory, file) {
            Ok(segment) => write_segment_again(appender, segment, bytes, &mut originals)?,
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Frames are scanned from the start: the synced length may lie within a frame that was being
/// written.
fn write_segment_again(
    appender: &mut Appender,
    mut segment: Segment,
    bytes: u64,
    originals: &mut RewrittenRecords,
) -> Result<(), Error> {
    let mut offset = SEGMENT_HEADER_LEN as u64;
    loop {
        let found = segment.scan(offset)?;
        let Some(next) = found.end(offset) else { return Ok(()) };
        if let ScanResult::Frame(header) = found
            && header.kind != KIND_SEAL
            && next > bytes
            && let Some(part) =
                again(&appender.directory, &mut segment, offset, &header, originals)?
            && appender.append_to_active(&[part])?.is_none()
        {
            return Err(Error::Busy { path: appender.directory.active() });
        }
        offset = next;
    }
}

/// The frame to write for the one at `offset`; `None` if that is itself a copy.
fn again(
    directory: &Directory,
    segment: &mut Segment,
    offset: u64,
    header: &FrameHeader,
    originals: &mut RewrittenRecords,
) -> Result<Option<Part<'static>>, Error> {
    let here = Seq::new(segment.number, offset);
    let stored = segment.payload(offset, header)?;
    let mut payload = Vec::with_capacity(stored.len() + 8);
    if header.has(FLAG_AGAIN) {
        if originals.is_repetition(directory, header, stored)? {
            return Ok(None);
        }
    } else {
        payload.extend_from_slice(&here.raw().to_le_bytes());
    }
    payload.extend_from_slice(stored);
    let fields = FrameFields { flags: header.flags | FLAG_AGAIN, ..header.into() };
    Ok(Some(Part { fields, payload: Payload::Owned(payload) }))
}
