//! Records that could not reach the active segment: a file per process, merged when there is time.

use crate::{
    Appender, Error, Id, Log, Options, Spill,
    directory::Directory,
    directory::SegmentFile,
    disk::Lock,
    format::{SEGMENT_HEADER_LEN, SegmentHeader},
    recovery::Found,
    roll,
    segment::Segment,
    writer::{Part, Payload, Target},
};
use std::{collections::HashSet, path::Path, sync::Arc};

/// While its records are being merged, a spill file is called so: a merge that was cut short is then known
/// to have written some of them already.
const MERGING: &str = ".merging";

/// Adds records to this process's own file.
pub(crate) fn append(appender: &mut Appender, parts: &[Part<'_>]) -> Result<(), Error> {
    let target = match &appender.spilled {
        Some(target) => target.clone(),
        None => appender.spilled.insert(create(&appender.directory)?).clone(),
    };
    appender.encode(parts, target.salt);
    appender.write_whole(target.file.as_ref(), &appender.directory.spill()).map(|_| ())
}

fn create(directory: &Directory) -> Result<Target, Error> {
    let dir = directory.spill();
    directory.disk.create_dir(&dir).map_err(|error| Error::io("create", &dir, error))?;
    let header = SegmentHeader::new(roll::ensure_log_id(directory)?, 0, directory.disk.now_us());
    let path = dir.join(format!("{}.seg", Id::random(directory.disk.now_us())));
    roll::write_new(directory, &path, &header.encode())?;
    let file = directory.disk.open(&path).map_err(|error| Error::io("open", &path, error))?;
    // Held as long as this process lives, so that nobody merges the file under its hands.
    let _ = file.try_lock(Lock::Shared);
    let inode = file.inode().map_err(|error| Error::io("stat", &path, error))?;
    Ok(Target { file, inode, number: 0, salt: header.salt() })
}

/// How many files wait to be merged.
pub(crate) fn waiting(directory: &Directory) -> usize {
    directory.disk.list(&directory.spill()).map_or(0, |names| names.len())
}

/// Merges every spill file whose process is gone. Says how many records were added.
pub(crate) fn merge(dir: &Path, options: &Options) -> Result<u64, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let Ok(mut names) = directory.disk.list(&directory.spill()) else { return Ok(0) };
    names.sort();
    let mut count = 0;
    for name in names {
        let path = directory.spill().join(&name);
        if name.ends_with(".seg") || name.ends_with(MERGING) {
            count += merge_file(&directory, options, &path)?;
        }
    }
    Ok(count)
}

fn merge_file(directory: &Directory, options: &Options, path: &Path) -> Result<u64, Error> {
    let disk = &directory.disk;
    let handle = disk.open(path).map_err(|error| Error::io("open", path, error))?;
    if !handle.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", path, error))? {
        return Ok(0);
    }
    let was_interrupted = path.to_string_lossy().ends_with(MERGING);
    let merging = path.with_extension(MERGING.trim_start_matches('.'));
    if !was_interrupted {
        disk.rename(path, &merging).map_err(|error| Error::io("rename", path, error))?;
        let dir = directory.spill();
        disk.sync_dir(&dir).map_err(|error| Error::io("sync", &dir, error))?;
    }
    let file = SegmentFile { number: 0, generation: 0, path: merging.clone() };
    let mut segment = Segment::open(directory, &file)?;
    let (mut frames, is_damaged) = collect(&mut segment)?;
    if was_interrupted {
        let present = present(directory, options, &frames)?;
        frames.retain(|part| !present.contains(&part.fields.id));
    }
    let mut appender =
        Appender::open(&directory.path, Options { spill: Spill::Never, ..options.clone() })?;
    for part in &frames {
        appender.append_parts(std::slice::from_ref(part))?;
    }
    appender.sync()?;
    if is_damaged {
        keep_damaged(directory, &merging)?;
    } else {
        disk.remove(&merging).map_err(|error| Error::io("remove", &merging, error))?;
    }
    Ok(frames.len() as u64)
}

/// The records of a spill file, and whether there is anything else in it than a torn end.
fn collect(segment: &mut Segment) -> Result<(Vec<Part<'static>>, bool), Error> {
    let mut parts = Vec::new();
    let mut is_damaged = !segment.is_header_whole;
    let mut offset = SEGMENT_HEADER_LEN as u64;
    loop {
        match segment.scan(offset)? {
            Found::Frame(header) => {
                let payload = Payload::Owned(segment.payload(offset, &header)?.to_vec());
                parts.push(Part { fields: (&header).into(), payload });
                offset += header.frame_len() as u64;
            }
            Found::Gap { range, .. } => {
                is_damaged = true;
                offset = range.end;
            }
            Found::Tail { .. } | Found::End => return Ok((parts, is_damaged)),
        }
    }
}

/// Which of these records the log has already.
fn present(
    directory: &Directory,
    options: &Options,
    parts: &[Part<'_>],
) -> Result<HashSet<Id>, Error> {
    let wanted: HashSet<Id> = parts.iter().map(|part| part.fields.id).collect();
    let Some(earliest_us) = wanted.iter().map(Id::time_us).min() else { return Ok(wanted) };
    let mut present = HashSet::new();
    let mut reader = Log::open(&directory.path, options.clone())?.read_since(earliest_us)?;
    while let Some(item) = reader.next()? {
        if let crate::Item::Record(entry) = item
            && wanted.contains(&entry.id)
        {
            present.insert(entry.id);
        }
    }
    Ok(present)
}

fn keep_damaged(directory: &Directory, merging: &Path) -> Result<(), Error> {
    let dir = directory.quarantine();
    directory.disk.create_dir(&dir).map_err(|error| Error::io("create", &dir, error))?;
    let name = merging.file_stem().unwrap_or_default();
    let kept = dir.join(format!("spill-{}", name.to_string_lossy()));
    directory.disk.rename(merging, &kept).map_err(|error| Error::io("rename", merging, error))
}
