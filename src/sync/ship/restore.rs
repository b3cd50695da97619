//! Restores a log from a remote.
//!
//! Everything is written to a temporary directory, verified, synced and renamed. An interrupted run
//! leaves that directory, and the next run continues there.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use claude_mem_log::{
    Id, Options,
    format::{KIND_SEAL, SEGMENT_HEADER_LEN, SegmentHeader, encode_log_id, salt},
    maintain,
    scan::{ScanResult, scan},
};

use crate::ship::{
    Error,
    fetch::fetch_all,
    local::blocking,
    manifest::{HostId, Segment},
    remote::Remote,
    remote_head::{self, Head},
};
use claude_mem_core::{os, paths::create_private};

#[derive(Debug, Clone, Copy)]
pub struct RestoreRequest<'a> {
    pub data: &'a Path,
    pub host: HostId,
    /// Where to stop; `None` for the end.
    pub until: Option<RestoreEnd>,
    /// Whether to continue without damaged or missing parts.
    pub is_salvage: bool,
}

/// The end of a restore to a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreEnd {
    /// Before the first event at or after this time, microseconds since 1970.
    Time(u64),
    /// After this event.
    Event(Id),
}

#[derive(Debug, Clone)]
pub struct Restored {
    pub head: Arc<Head>,
    pub bytes: u64,
    /// Parts that could not be read.
    pub lost: Vec<String>,
    /// Whether events after [`RestoreRequest::until`] were cut.
    pub is_cut: bool,
}

/// Attempts per restore, if the remote is compacted meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// Restores the log. `progress` gets the downloaded and the total bytes.
pub async fn restore(
    remote: &Remote,
    request: RestoreRequest<'_>,
    progress: impl Fn(u64, u64),
) -> Result<Restored, Error> {
    let folder = request.data.join("restoring");
    let log = folder.join("log");
    create_private(&log).map_err(|error| Error::io("create", &log, error))?;
    let mut attempt = 0;
    let (head, lost) = loop {
        attempt += 1;
        let (head, mut lost) = find(remote, request).await?;
        check_room(&log, head.bytes())?;
        match fetch_all(remote, &head, &log, request.is_salvage, &progress).await {
            Ok(parts_lost) => {
                lost.extend(parts_lost);
                break (head, lost);
            }
            // The remote was compacted meanwhile: load its newer manifest.
            Err(Error::Missing { .. }) if attempt < ATTEMPTS_MAX => {
                let newest = remote_head::newest(remote, request.host, 0).await?;
                if newest.is_none_or(|newest| newest.number == head.number) {
                    attempt = ATTEMPTS_MAX;
                }
            }
            Err(error) => return Err(error),
        }
    };
    let (data, host, until) = (request.data.to_path_buf(), request.host, request.until);
    let segments = head.segments();
    let is_cut = blocking(move || finish(&data, &log, host, &segments, until)).await?;
    let bytes = head.segments().iter().map(|segment| segment.bytes).sum();
    Ok(Restored { head, bytes, lost, is_cut })
}

/// The newest state. With `salvage`, the newest one that is intact.
async fn find(
    remote: &Remote,
    request: RestoreRequest<'_>,
) -> Result<(Arc<Head>, Vec<String>), Error> {
    let nothing = || Error::NoHosts { place: remote.place().into() };
    let problem = match remote_head::newest(remote, request.host, 0).await {
        Ok(Some(head)) => return Ok((Arc::new(head), Vec::new())),
        Ok(None) => return Err(nothing()),
        Err(error) if request.is_salvage && !error.is_transient() => error,
        Err(error) => return Err(error),
    };
    let mut lost = vec![problem.to_string()];
    for number in remote_head::entries(remote, request.host).await?.into_iter().rev() {
        match remote_head::load(remote, request.host, number).await {
            Ok(head) => {
                lost.dedup();
                return Ok((Arc::new(head), lost));
            }
            Err(error) if error.is_transient() => return Err(error),
            Err(error) => lost.push(error.to_string()),
        }
    }
    Err(problem)
}

fn check_room(log: &Path, bytes: u64) -> Result<(), Error> {
    let full = || Error::io("restore into", log, io::ErrorKind::StorageFull.into());
    match os::free_bytes(log) {
        Some(free) if free < bytes => Err(full()),
        _ => Ok(()),
    }
}

/// Cuts events after `until`, adds the other files of a log, and renames the directory.
fn finish(
    data: &Path,
    log: &Path,
    host: HostId,
    segments: &[Segment],
    until: Option<RestoreEnd>,
) -> Result<bool, Error> {
    let names: Vec<String> = segments.iter().map(Segment::file_name).collect();
    for stray in stale_files(log, &names)? {
        fs::remove_file(&stray).map_err(|error| Error::io("remove", &stray, error))?;
    }
    let id = log.join("log.id");
    fs::write(&id, encode_log_id(host.0)).map_err(|error| Error::io("write", &id, error))?;
    let is_cut = match until {
        None => false,
        Some(until) => cut(log, host, segments, until)?,
    };
    sync_all(log)?;
    let target = data.join("log");
    fs::rename(log, &target).map_err(|error| Error::io("move the log to", &target, error))?;
    sync_dir(data)?;
    let _ = fs::remove_dir_all(data.join("restoring"));
    Ok(is_cut)
}

/// Files of an earlier run that are not part of this log.
fn stale_files(log: &Path, names: &[String]) -> Result<Vec<PathBuf>, Error> {
    let entries = fs::read_dir(log).map_err(|error| Error::io("list", log, error))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let is_ours = |path: &PathBuf| {
        path.file_name().is_some_and(|name| names.iter().any(|known| name == known.as_str()))
    };
    Ok(paths.filter(|path| !is_ours(path)).collect())
}

fn sync_all(log: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(log).map_err(|error| Error::io("list", log, error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        os::sync_file(&path).map_err(|error| Error::io("sync", &path, error))?;
    }
    sync_dir(log)
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    os::sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}

/// Deletes everything after `until`. Returns whether there was anything.
fn cut(log: &Path, host: HostId, segments: &[Segment], until: RestoreEnd) -> Result<bool, Error> {
    let mut found = None;
    for (index, segment) in segments.iter().enumerate() {
        if let Some(offset) = place(&log.join(segment.file_name()), host, segment.number, until)? {
            found = Some((index, offset));
            break;
        }
    }
    let Some((index, offset)) = found else {
        return match until {
            RestoreEnd::Time(_) => Ok(false),
            RestoreEnd::Event(id) => {
                let none =
                    io::Error::new(io::ErrorKind::NotFound, format!("there is no event {id}"));
                Err(Error::io("stop at the event in", log, none))
            }
        };
    };
    let segment = &segments[index];
    let path = log.join(segment.file_name());
    if offset == segment.bytes && index + 1 == segments.len() {
        return Ok(false);
    }
    for later in &segments[index + 1..] {
        let path = log.join(later.file_name());
        fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
    }
    let file = fs::OpenOptions::new().write(true).open(&path);
    file.and_then(|file| file.set_len(offset)).map_err(|error| Error::io("cut", &path, error))?;
    if !segment.is_active {
        // New records go to a segment after all numbers in this file.
        let created_us = until_us(until);
        let header = SegmentHeader::new(host.0, segment.number_last + 1, created_us);
        let active = log.join("active.log");
        fs::write(&active, header.encode()).map_err(|error| Error::io("write", &active, error))?;
        maintain(log, &Options::default())?;
    }
    Ok(true)
}

fn until_us(until: RestoreEnd) -> u64 {
    match until {
        RestoreEnd::Time(time_us) => time_us,
        RestoreEnd::Event(id) => id.time_us(),
    }
}

/// The offset of the cut in a segment; `None` if the cut is in a later segment.
fn place(path: &Path, host: HostId, number: u64, until: RestoreEnd) -> Result<Option<u64>, Error> {
    let bytes = fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let salt =
        SegmentHeader::decode(&bytes).map_or_else(|| salt(host.0, number), |header| header.salt());
    let mut source = bytes.as_slice();
    let mut offset = SEGMENT_HEADER_LEN as u64;
    loop {
        let found =
            scan(&mut source, offset, salt).map_err(|error| Error::io("read", path, error))?;
        let Some(end) = found.end(offset) else { return Ok(None) };
        if let ScanResult::Frame(header) = &found
            && header.kind != KIND_SEAL
        {
            match until {
                RestoreEnd::Time(time_us) if header.id.time_us() >= time_us => {
                    return Ok(Some(offset));
                }
                RestoreEnd::Event(id) if header.id == id => return Ok(Some(end)),
                _ => {}
            }
        }
        offset = end;
    }
}
