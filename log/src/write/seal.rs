//! Completes a full segment: counts its records, hashes it, and links it to the previous segment.

use crate::{
    Error, GapReason, Id,
    directory::{Directory, SegmentFile},
    disk::{File, Lock},
    format::{FrameHeader, IndexEntry, KIND_RESERVED, KIND_SEAL, SEGMENT_HEADER_LEN, Seal},
    read::segment::{Segment, following},
    scan::ScanResult,
    write::sync,
};
use sha2::{Digest, Sha256};
use std::{path::Path, sync::Arc};

/// Seals every full segment after the last sealed one, in order. Returns how many.
///
/// If a segment is locked, it and all later ones are left for the next call, because a seal links
/// to the previous segment. A segment without a seal before a sealed one has lost its seal. It
/// stays unchanged, because a new seal would break the chain. Sealed segments are synced.
pub(crate) fn seal_rolled(directory: &Directory, index_interval: u64) -> Result<u64, Error> {
    let (unsealed, mut link) = following(|| unsealed(directory))?;
    let mut count = 0;
    for file in unsealed.iter().rev() {
        let Some(seal) = seal_segment(directory, file, link, index_interval)? else { break };
        link = seal.link();
        count += 1;
    }
    Ok(count)
}

/// The full segments after the last sealed one, in reverse order, and the link of that one.
fn unsealed(directory: &Directory) -> Result<(Vec<SegmentFile>, [u8; 32]), Error> {
    let mut unsealed = Vec::new();
    for file in directory.segments()?.into_iter().rev() {
        if let Some(seal) = Segment::open(directory, &file)?.seal {
            return Ok((unsealed, seal.link()));
        }
        unsealed.push(file);
    }
    Ok((unsealed, [0; 32]))
}

fn seal_segment(
    directory: &Directory,
    file: &SegmentFile,
    link_previous: [u8; 32],
    index_interval: u64,
) -> Result<Option<Seal>, Error> {
    let path = &file.path;
    let writable: Arc<dyn File> =
        directory.disk.open(path).map_err(|error| Error::io("open", path, error))?;
    if !writable.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", path, error))? {
        return Ok(None);
    }
    // Opened under the lock: another process may have sealed it, or died half-way.
    let mut segment = Segment::open(directory, file)?;
    if segment.seal.is_some() {
        return Ok(segment.seal);
    }
    sync_or_suspect(directory, writable.as_ref(), path)?;
    let mut survey = survey(&mut segment, index_interval)?;
    survey.seal.number_last = file.number;
    survey.seal.hash_origin = survey.seal.hash;
    survey.seal.link_previous = link_previous;
    survey.seal.gaps.truncate(SEAL_GAPS_MAX);
    let frame = survey.seal.encode_frame(Id::random(directory.disk.now_us()), segment.salt);
    let written = writable.append(&frame).map_err(|error| Error::io("seal", path, error))?;
    if written.bytes != frame.len() {
        return Err(Error::Full { path: path.clone() });
    }
    sync_or_suspect(directory, writable.as_ref(), path)?;
    directory
        .disk
        .sync_dir(&directory.path)
        .map_err(|source| Error::SyncFailed { path: path.clone(), source })?;
    Ok(Some(survey.seal))
}

/// A seal lists all damage, but must fit into a frame.
const SEAL_GAPS_MAX: usize = 1 << 16;

/// After a failed sync, a later success of the same file proves nothing. So `suspect` is written
/// for the next sync.
fn sync_or_suspect(directory: &Directory, file: &dyn File, path: &Path) -> Result<(), Error> {
    file.sync().map_err(|source| {
        let synced = directory.read_marker(&directory.synced());
        sync::mark_suspect(directory, synced);
        Error::SyncFailed { path: path.to_path_buf(), source }
    })
}

/// The contents of a segment, up to the end or its seal.
pub(crate) struct SegmentContents {
    /// The seal, without its place in the chain.
    pub(crate) seal: Seal,
    /// Damage, with the header of the damaged frame if it is intact.
    pub(crate) gaps: Vec<(u64, u64, GapReason, Option<FrameHeader>)>,
}

/// Reads a whole segment.
pub(crate) fn survey(segment: &mut Segment, index_interval: u64) -> Result<SegmentContents, Error> {
    let mut seal = Seal::empty(segment.number);
    let mut gaps = Vec::new();
    let mut offset = SEGMENT_HEADER_LEN as u64;
    let mut index_next = offset;
    loop {
        match segment.scan(offset)? {
            ScanResult::Frame(header) if header.kind == KIND_SEAL => break,
            ScanResult::Frame(header) if header.kind >= KIND_RESERVED => {
                offset += header.frame_len() as u64;
            }
            ScanResult::Frame(header) => {
                if offset >= index_next {
                    seal.index.push(IndexEntry { offset, time_max_before_us: seal.time_max_us });
                    index_next = offset.saturating_add(index_interval);
                }
                count(&mut seal, header.id);
                offset += header.frame_len() as u64;
            }
            ScanResult::Gap { range, reason, header } => {
                gaps.push((offset, range.end - offset, reason, header));
                offset = range.end;
            }
            // In the active segment, an append may be in progress.
            ScanResult::Tail { .. } | ScanResult::End => break,
        }
    }
    seal.bytes = offset;
    seal.hash = hash(segment, offset)?;
    seal.gaps = gaps.iter().map(|(offset, len, reason, _)| (*offset, *len, *reason)).collect();
    Ok(SegmentContents { seal, gaps })
}

/// Counts a record.
pub(crate) fn count(seal: &mut Seal, id: Id) {
    let time_us = id.time_us();
    if seal.records == 0 {
        seal.id_first = id;
        seal.time_min_us = time_us;
    }
    seal.id_last = id;
    seal.records += 1;
    seal.time_min_us = seal.time_min_us.min(time_us);
    seal.time_max_us = seal.time_max_us.max(time_us);
}

const HASH_BYTES: usize = 256 << 10;

/// SHA-256 of the first `len` bytes.
fn hash(segment: &mut Segment, len: u64) -> Result<[u8; 32], Error> {
    use crate::scan::Source as _;
    let mut hasher = Sha256::new();
    let mut offset = 0;
    while offset < len {
        let window = segment
            .bytes
            .window(offset, HASH_BYTES)
            .map_err(|error| Error::io("read", &segment.path, error))?;
        let take = window.len().min((len - offset) as usize).min(HASH_BYTES);
        if take == 0 {
            break;
        }
        hasher.update(&window[..take]);
        offset += take as u64;
    }
    Ok(hasher.finalize().into())
}
