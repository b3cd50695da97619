//! Spill files: records that could not be appended to the active segment. One file per process,
//! merged later.

use crate::{
    Appender, Error, Id, Item, Log, Options, Spill,
    directory::{Directory, SegmentFile},
    disk::Lock,
    format::{SEGMENT_HEADER_LEN, SegmentHeader},
    read::segment::Segment,
    scan::ScanResult,
    write::{
        roll,
        writer::{Part, Payload, Target},
    },
};
use std::{collections::HashSet, io, path::Path, sync::Arc};

/// Appends records to this process's spill file.
pub(crate) fn append(appender: &mut Appender, parts: &[Part<'_>]) -> Result<(), Error> {
    let target = match &appender.spilled {
        Some(target) => target.clone(),
        None => appender.spilled.insert(create(&appender.directory)?).clone(),
    };
    appender.encode(parts, target.salt);
    appender.write_whole(target.file.as_ref(), &appender.directory.spill()).map(|_| ())
}

/// The file is locked before it gets its final name, and while it is open, so that no other process
/// merges and removes it while its owner writes.
fn create(directory: &Directory) -> Result<Target, Error> {
    let dir = directory.spill();
    roll::create_dir(directory, &dir)?;
    let disk = &directory.disk;
    let header = SegmentHeader::new(roll::ensure_log_id(directory)?, 0, disk.now_us());
    let path = dir.join(format!("{}.seg", Id::random(disk.now_us())));
    let temporary = path.with_extension("tmp");
    let file = disk.create(&temporary).map_err(|error| Error::io("create", &temporary, error))?;
    let named = roll::write_bytes(file.as_ref(), &header.encode())
        .and_then(|()| file.try_lock(Lock::Shared))
        .and_then(|is_ours| if is_ours { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) })
        .and_then(|()| disk.rename(&temporary, &path))
        .and_then(|()| file.inode());
    match named {
        Ok(inode) => {
            let salt = header.salt();
            Ok(Target { file, inode, number: 0, salt, is_shared_over_network: false })
        }
        Err(error) => {
            let _ = disk.remove(&temporary);
            Err(Error::io("create", &path, error))
        }
    }
}

/// Copies the records of one spill file to another. They are merged once.
pub(crate) fn write_again(appender: &mut Appender, spilled: Target) -> Result<(), Error> {
    let file = SegmentFile::written(0, appender.directory.spill());
    let mut segment = Segment::with_header(&appender.directory, &file, spilled.file)?;
    each_frame(&mut segment, |found, segment, offset| {
        let ScanResult::Frame(header) = found else { return Ok(()) };
        let payload = Payload::Owned(segment.payload(offset, header)?.to_vec());
        append(appender, &[Part { fields: header.into(), payload }])
    })
}

/// Number of files to merge.
pub(crate) fn count_spill_files(directory: &Directory) -> usize {
    spill_files(directory).len()
}

fn spill_files(directory: &Directory) -> Vec<String> {
    let mut names = directory.disk.list(&directory.spill()).unwrap_or_default();
    names.retain(|name| name.ends_with(".seg"));
    names.sort();
    names
}

/// Merges every spill file whose process is gone. Returns the number of records added.
pub(crate) fn merge(dir: &Path, options: &Options) -> Result<u64, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let mut count = 0;
    for name in spill_files(&directory) {
        count += merge_file(&directory, options, &directory.spill().join(&name))?;
    }
    Ok(count)
}

fn merge_file(directory: &Directory, options: &Options, path: &Path) -> Result<u64, Error> {
    let disk = &directory.disk;
    let handle = match disk.open(path) {
        Ok(handle) => handle,
        // Another process has just merged it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(Error::io("open", path, error)),
    };
    if !handle.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", path, error))? {
        return Ok(0);
    }
    let own = handle.inode().map_err(|error| Error::io("stat", path, error))?;
    if disk.inode(path).ok() != Some(own) {
        return Ok(0);
    }
    let file = SegmentFile::written(0, path.to_path_buf());
    let mut segment = Segment::open(directory, &file)?;
    let (count, is_damaged) = copy(directory, options, &mut segment)?;
    if is_damaged {
        keep_damaged(directory, path)?;
    } else {
        disk.remove(path).map_err(|error| Error::io("remove", path, error))?;
    }
    Ok(count)
}

/// Appends the records that the log does not have yet, and syncs. Returns how many, and whether the
/// file contains anything else.
///
/// The log may have some of them: from an interrupted merge, or from an append that failed half-way
/// and was then spilled. So existing ones are always looked up.
fn copy(
    directory: &Directory,
    options: &Options,
    segment: &mut Segment,
) -> Result<(u64, bool), Error> {
    let mut ids = HashSet::new();
    let mut is_damaged = segment.header.is_none();
    each_frame(segment, |found, _, _| {
        match found {
            ScanResult::Frame(header) => _ = ids.insert(header.id),
            _ => is_damaged = true,
        }
        Ok(())
    })?;
    let present = present(directory, options, &ids)?;
    let mut appender =
        Appender::open(&directory.path, Options { spill: Spill::Never, ..options.clone() })?;
    let mut count = 0;
    each_frame(segment, |found, segment, offset| {
        let ScanResult::Frame(header) = found else { return Ok(()) };
        if !present.contains(&header.id) {
            let payload = Payload::Owned(segment.payload(offset, header)?.to_vec());
            let part = Part { fields: header.into(), payload };
            if appender.append_to_active(&[part])?.is_none() {
                return Err(Error::Busy { path: directory.active() });
            }
            count += 1;
        }
        Ok(())
    })?;
    appender.sync()?;
    Ok((count, is_damaged))
}

fn each_frame(
    segment: &mut Segment,
    mut work: impl FnMut(&ScanResult, &mut Segment, u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut offset = SEGMENT_HEADER_LEN as u64;
    loop {
        let found = segment.scan(offset)?;
        let Some(next) = found.end(offset) else { return Ok(()) };
        work(&found, segment, offset)?;
        offset = next;
    }
}

/// Which of these records the log has already.
fn present(
    directory: &Directory,
    options: &Options,
    wanted: &HashSet<Id>,
) -> Result<HashSet<Id>, Error> {
    let mut present = HashSet::new();
    let Some(earliest_us) = wanted.iter().map(Id::time_us).min() else { return Ok(present) };
    let mut reader = Log::open(&directory.path, options.clone())?.read_since(earliest_us)?;
    while let Some(item) = reader.next()? {
        if let Item::Record(entry) = item
            && wanted.contains(&entry.id)
        {
            present.insert(entry.id);
        }
    }
    Ok(present)
}

fn keep_damaged(directory: &Directory, path: &Path) -> Result<(), Error> {
    let dir = directory.quarantine();
    roll::create_dir(directory, &dir)?;
    let name = path.file_stem().unwrap_or_default();
    let kept = dir.join(format!("spill-{}", name.to_string_lossy()));
    directory.disk.rename(path, &kept).map_err(|error| Error::io("rename", path, error))
}
