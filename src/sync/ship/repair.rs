//! Repairs the local log from a remote.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::Write as _,
    path::Path,
};

use claude_mem_log::{
    Appender, Id, Item, Log, Options, Record, Report,
    format::{SEGMENT_HEADER_LEN, SegmentHeader, encode_log_id, salt},
    scan::{ScanResult, scan},
    verify,
};

use crate::ship::{
    Error,
    comparison::{covering, is_same_content, is_same_file},
    local::{self, LocalSegment},
    manifest::{HostId, Segment},
    remote::Remote,
    remote_head::Head,
};
use claude_mem_core::os::{self, CreateOptionsExt as _, FileExt as _};

/// The repaired and unrepaired segments, as text for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RepairOutcome {
    pub repaired: Vec<String>,
    /// Segments that could not be repaired, with the reason.
    pub unrepaired: Vec<String>,
}

/// Repairs every segment that is damaged or missing here and intact in the remote. Deletes nothing:
/// damaged bytes are already in `quarantine/`.
pub async fn repair(
    remote: &Remote,
    head: &Head,
    dir: &Path,
    report: &Report,
) -> Result<RepairOutcome, Error> {
    let mut outcome = RepairOutcome::default();
    let here = local::segments(dir, head.host, (0, 0))?;
    for there in head.segments() {
        let here = covering(&here, &there);
        let name = format!("segment {:016x}", there.number);
        let result = match here {
            None if report.missing.contains(&there.number)
                || here_begins_before(report, &there) =>
            {
                replace(remote, head, &there, dir).await.map(|()| Some("restored"))
            }
            None => continue,
            Some(here) if !is_same_file(here, &there) => continue,
            Some(here) if is_same_content(head, &there, here)? => continue,
            Some(here) if here.is_active => repair_active(remote, head, &there, here, dir).await,
            Some(_) => replace(remote, head, &there, dir).await.map(|()| Some("replaced")),
        };
        match result {
            Ok(Some(how)) => {
                outcome.repaired.push(format!("{name} was {how} from {}", remote.place()));
            }
            Ok(None) => {}
            Err(error @ (Error::Missing { .. } | Error::Damaged { .. })) => {
                outcome.unrepaired.push(format!("{name} cannot be repaired: {error}"));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(outcome)
}

/// Segments older than the local log were deleted on purpose. They are not restored.
fn here_begins_before(report: &Report, there: &Segment) -> bool {
    report.segments.first().is_some_and(|first| first.info.number < there.number)
}

/// Downloads a segment and renames it into place once it is complete and synced.
async fn replace(remote: &Remote, head: &Head, there: &Segment, dir: &Path) -> Result<(), Error> {
    let mut closed = there.clone();
    // Even if it was active when it was shipped: it is not active here, so nothing appends to it.
    closed.is_active = false;
    let path = dir.join(closed.file_name());
    let draft = dir.join(format!("{}.tmp", closed.file_name()));
    let failed = |error| Error::io("write", &draft, error);
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).owner_only();
    let mut file = options.open(&draft).map_err(failed)?;
    let written =
        head.read(remote, there, 0, |_, bytes| file.write_all(bytes).map_err(failed)).await;
    let finished = written
        .and_then(|()| file.sync_all().map_err(failed))
        .and_then(|()| fs::rename(&draft, &path).map_err(failed));
    if finished.is_err() {
        let _ = fs::remove_file(&draft);
    }
    finished?;
    os::sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}

/// Repairs the active segment, which cannot be replaced: damaged bytes are overwritten with the
/// original ones, and lost records are appended again.
async fn repair_active(
    remote: &Remote,
    head: &Head,
    there: &Segment,
    here: &LocalSegment,
    dir: &Path,
) -> Result<Option<&'static str>, Error> {
    let mut bytes = Vec::new();
    let take = |_, piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok(())
    };
    head.read(remote, there, 0, take).await?;
    let rewrite_frames = rewrite_frames(&here.path, head.host, there, &bytes)?;
    let again = append_lost_records(head.host, there, &bytes, dir)?;
    Ok(match (rewrite_frames, again) {
        (0, 0) => None,
        (_, 0) => Some("repaired"),
        _ => Some("repaired, and lost events were appended again,"),
    })
}

/// Writes every frame of `right` at its offset, unless another valid frame is there. Returns their
/// number.
fn rewrite_frames(path: &Path, host: HostId, there: &Segment, right: &[u8]) -> Result<u64, Error> {
    let failed = |error| Error::io("write", path, error);
    let file = OpenOptions::new().write(true).open(path).map_err(failed)?;
    let here = fs::read(path).map_err(failed)?;
    let salt = salt(host.0, there.number);
    let mut count = 0;
    let mut write = |range: std::ops::Range<usize>| {
        count += 1;
        file.write_all_at(&right[range.clone()], range.start as u64).map_err(failed)
    };
    if SegmentHeader::decode(&here).is_none() && SegmentHeader::decode(right).is_some() {
        write(0..SEGMENT_HEADER_LEN)?;
    }
    let mut offset = SEGMENT_HEADER_LEN as u64;
    while let found = scan(&mut &*right, offset, salt).map_err(failed)?
        && let Some(end) = found.end(offset)
    {
        let range = offset as usize..end as usize;
        let is_lost = here.get(range.clone()).is_some_and(|here| *here != right[range.clone()])
            && !matches!(
                scan(&mut here.as_slice(), offset, salt).map_err(failed)?,
                ScanResult::Frame(_)
            );
        if is_lost && matches!(found, ScanResult::Frame(_)) {
            write(range)?;
        }
        offset = end;
    }
    file.sync_all().map_err(failed)?;
    Ok(count)
}

/// Appends records of these bytes that are nowhere in the local log. Returns their number.
fn append_lost_records(
    host: HostId,
    there: &Segment,
    bytes: &[u8],
    dir: &Path,
) -> Result<u64, Error> {
    let copy = create_temporary_dir(dir)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = copy.join(name);
        fs::write(&path, bytes).map_err(|error| Error::io("write", &path, error))
    };
    write("log.id", encode_log_id(host.0).as_bytes())?;
    write(&there.file_name(), bytes)?;
    let result = append_missing(&copy, dir);
    let _ = fs::remove_dir_all(&copy);
    result
}

fn create_temporary_dir(dir: &Path) -> Result<std::path::PathBuf, Error> {
    let copy = dir.join("mending.tmp");
    let _ = fs::remove_dir_all(&copy);
    claude_mem_core::paths::create_private(&copy)
        .map_err(|error| Error::io("create", &copy, error))?;
    Ok(copy)
}

fn append_missing(copy: &Path, dir: &Path) -> Result<u64, Error> {
    let known = ids(dir)?;
    let mut appender = Appender::open(dir, Options::default())?;
    let mut reader = Log::open(copy, Options::default())?.read_from_start();
    let mut count = 0;
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        if entry.is_tombstone || known.contains(&entry.id) {
            continue;
        }
        let (id, kind, schema, codec) = (entry.id, entry.kind, entry.schema, entry.codec);
        appender.append(&Record { id, kind, schema, codec, payload: entry.payload })?;
        count += 1;
    }
    appender.sync()?;
    Ok(count)
}

fn ids(dir: &Path) -> Result<HashSet<Id>, Error> {
    let mut known = HashSet::new();
    let mut reader = Log::open(dir, Options::default())?.read_from_start();
    while let Some(item) = reader.next()? {
        if let Item::Record(entry) = item {
            known.insert(entry.id);
        }
    }
    Ok(known)
}

/// Whether the local log contains every record of the remote, so that the remote can be replaced
/// without loss.
pub async fn is_remote_contained(remote: &Remote, head: &Head, dir: &Path) -> Result<bool, Error> {
    let known = ids(dir)?;
    let here = local::segments(dir, head.host, (0, 0))?;
    let first = here.first().map_or(0, |here| here.number);
    for there in head.segments().into_iter().filter(|there| there.number_last >= first) {
        if let Some(here) = covering(&here, &there)
            && (here.generation > there.generation || is_same_content(head, &there, here)?)
        {
            continue;
        }
        let mut bytes = Vec::new();
        let take = |_, piece: &[u8]| {
            bytes.extend_from_slice(piece);
            Ok(())
        };
        match head.read(remote, &there, 0, take).await {
            Ok(()) => {}
            // Unreadable records cannot be lost by replacing them.
            Err(Error::Missing { .. } | Error::Damaged { .. }) => continue,
            Err(error) => return Err(error),
        }
        let copy = create_temporary_dir(dir)?;
        let written = fs::write(copy.join("log.id"), encode_log_id(head.host.0))
            .and_then(|()| fs::write(copy.join(there.file_name()), &bytes))
            .map_err(|error| Error::io("write", &copy, error));
        let all = written.and_then(|()| ids(&copy));
        let _ = fs::remove_dir_all(&copy);
        if !all?.is_subset(&known) {
            return Ok(false);
        }
    }
    Ok(true)
}

pub fn report(dir: &Path) -> Result<Report, Error> {
    Ok(verify(dir, &Options::default())?)
}
