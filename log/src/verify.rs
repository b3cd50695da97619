//! Verifies the whole log.

use crate::{
    Error, Gap, GapReason, Log, Options, SegmentInfo,
    directory::Directory,
    format::{KIND_CHAIN, Links, SEGMENT_HEADER_LEN, SyncMark},
    read::segment::Segment,
    scan::{ScanResult, Source as _},
    write::{roll, seal::survey, spill},
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// The result of [`verify`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Every segment, in order.
    pub segments: Vec<SegmentReport>,
    /// Numbers of missing segments.
    pub missing: Vec<u64>,
    /// Number of spill files to merge.
    pub spilled: usize,
    /// Files in `quarantine/`.
    pub set_aside: usize,
}

/// The result for one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// The segment.
    pub info: SegmentInfo,
    /// Number of intact records.
    pub records: u64,
    /// Damage.
    pub gaps: Vec<Gap>,
}

impl Report {
    /// Number of intact records.
    pub fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.records).sum()
    }

    /// Bytes in segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.info.bytes).sum()
    }

    /// All damage.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.segments.iter().flat_map(|segment| &segment.gaps)
    }

    /// Whether an acknowledged record may be lost. A torn write was never acknowledged and does not
    /// count.
    pub fn is_damaged(&self) -> bool {
        !self.missing.is_empty() || self.gaps().any(|gap| gap.reason != GapReason::TornWrite)
    }
}

/// Reads every byte of the log and checks every checksum, seal and link. Changes nothing.
pub fn verify(dir: &Path, options: &Options) -> Result<Report, Error> {
    verify_with(dir, options, |_| ())
}

/// As [`verify`]. Calls `progress` with the number of bytes checked, after each segment.
pub fn verify_with(
    dir: &Path,
    options: &Options,
    mut progress: impl FnMut(u64),
) -> Result<Report, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    // Read before any length: lengths only grow.
    let synced = directory.read_marker(&directory.synced());
    let set_aside = options.disk.list(&directory.quarantine()).map_or(0, |names| names.len());
    let mut report =
        Report { set_aside, spilled: spill::count_spill_files(&directory), ..Report::default() };
    let mut chain = Chain { number_next: 1, link: Some([0; 32]) };
    let log = Log { directory };
    // One after another, because compaction may replace them meanwhile.
    while let Some(segment) = log.open_segment(chain.number_next)? {
        report.missing.extend(chain.number_next..segment.number);
        if let (Some(before), true) = (report.segments.last_mut(), report.missing.is_empty()) {
            before.gaps.extend(lost_end(before, &segment));
        }
        let is_last = segment.is_active;
        report.segments.push(verify_segment(segment, &mut chain, synced)?);
        progress(report.bytes());
        if is_last {
            break;
        }
    }
    // Segments that were synced and are missing.
    let last = synced.map_or(0, |synced| synced.segment);
    report.missing.extend(chain.number_next..=last);
    Ok(report)
}

struct Chain {
    number_next: u64,
    /// Link of the previous segment; `None` if it is unknown.
    link: Option<[u8; 32]>,
}

/// The lost end of a segment, according to the header of the next one.
fn lost_end(before: &SegmentReport, next: &Segment) -> Option<Gap> {
    let SegmentInfo { number, generation, bytes, ref seal, .. } = before.info;
    let bytes_before = next.header.map_or(0, |header| header.bytes_before);
    let is_neighbour = number + 1 == next.number && generation == 0;
    if is_neighbour && bytes_before > bytes {
        let cut = next.gap(bytes, bytes_before - bytes, GapReason::Truncated);
        return Some(Gap { segment: number, ..cut });
    }
    // Segments are sealed in order, so it had a seal.
    let is_seal_lost = is_neighbour && seal.is_none() && next.seal.is_some();
    is_seal_lost.then(|| Gap { segment: number, ..next.gap(bytes, 0, GapReason::BrokenSeal) })
}

fn verify_segment(
    mut segment: Segment,
    chain: &mut Chain,
    synced: Option<SyncMark>,
) -> Result<SegmentReport, Error> {
    let survey = survey(&mut segment, u64::MAX)?;
    let mut gaps: Vec<Gap> = segment.header_gap().into_iter().collect();
    for (offset, len, reason, header) in &survey.gaps {
        gaps.push(segment.gap(*offset, *len, *reason).of_record(*header));
    }
    if segment.is_active {
        gaps.extend(segment.lost_end(synced, survey.seal.bytes)?);
    }
    let is_next = segment.number == chain.number_next;
    let merged = chain_in(&mut segment)?;
    chain.link = match &segment.seal {
        Some(seal) => {
            let is_whole = merged.as_ref().is_none_or(|merged| merged.last == seal.link_previous);
            let first = merged.map_or(seal.link_previous, |merged| merged.first);
            let fits = seal.hash == survey.seal.hash
                && seal.records == survey.seal.records
                && is_whole
                && (!is_next || chain.link.is_none_or(|link| link == first));
            if !fits {
                gaps.push(segment.gap(seal.bytes, 0, GapReason::BrokenSeal));
            }
            Some(seal.link())
        }
        None => None,
    };
    chain.number_next = segment.number_last + 1;
    Ok(SegmentReport { records: survey.seal.records, info: segment.info()?, gaps })
}

/// The links of the segments in a merged file; `None` if it is not merged. If they are unreadable,
/// no segment matches them.
pub(crate) fn chain_in(segment: &mut Segment) -> Result<Option<Links>, Error> {
    if segment.number_last == segment.number {
        return Ok(None);
    }
    let offset = SEGMENT_HEADER_LEN as u64;
    let ScanResult::Frame(header) = segment.scan(offset)? else {
        return Ok(Some(Links::default()));
    };
    let payload = segment.payload(offset, &header)?;
    let links = (header.kind == KIND_CHAIN).then(|| Links::decode(payload)).flatten();
    Ok(Some(links.unwrap_or_default()))
}

/// Copies the bytes of a gap to `quarantine/`, where they stay even if the segment changes. Does
/// nothing if they are there already. Returns the path.
pub fn quarantine(dir: &Path, options: &Options, gap: &Gap) -> Result<PathBuf, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let folder = directory.quarantine();
    let path = folder.join(format!("{:016x}-{}", gap.segment, gap.offset));
    if directory.disk.inode(&path).is_ok() {
        return Ok(path);
    }
    roll::create_dir(&directory, &folder)?;
    let bytes = bytes_of(&directory, gap)?;
    let temporary = directory.temporary();
    roll::write_new(&directory, &temporary, &bytes)?;
    directory
        .disk
        .rename(&temporary, &path)
        .map_err(|error| Error::io("rename", &temporary, error))?;
    Ok(path)
}

fn bytes_of(directory: &Directory, gap: &Gap) -> Result<Vec<u8>, Error> {
    let log = Log { directory: directory.clone() };
    let Some(mut segment) = log.open_segment(gap.segment)? else { return Ok(Vec::new()) };
    if segment.number != gap.segment {
        return Ok(Vec::new());
    }
    let len = gap.len as usize;
    let window = segment
        .bytes
        .window(gap.offset, len)
        .map_err(|error| Error::io("read", &segment.path, error))?;
    Ok(window[..window.len().min(len)].to_vec())
}
