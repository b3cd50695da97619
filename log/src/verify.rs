//! Reading everything and saying what is whole.

use crate::{
    Error, Gap, GapReason, Options, SegmentInfo, directory::Directory, recovery::Source as _, roll,
    seal::survey, segment::Segment, spill,
};
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

/// What [`verify`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Every segment, in order.
    pub segments: Vec<SegmentReport>,
    /// Segment numbers that must have existed and are not there.
    pub missing: Vec<u64>,
    /// Files that wait to be merged.
    pub spilled: usize,
}

/// What [`verify`] found in one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentReport {
    /// The segment.
    pub info: SegmentInfo,
    /// Records that are whole.
    pub records: u64,
    /// Everything that is not.
    pub gaps: Vec<Gap>,
}

impl Report {
    /// Records that are whole.
    pub fn records(&self) -> u64 {
        self.segments.iter().map(|segment| segment.records).sum()
    }

    /// Bytes in segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.info.bytes).sum()
    }

    /// Everything that is not whole.
    pub fn gaps(&self) -> impl Iterator<Item = &Gap> {
        self.segments.iter().flat_map(|segment| &segment.gaps)
    }

    /// Whether something that was acknowledged may be lost. A write that was cut short was never
    /// acknowledged, so it does not count.
    pub fn is_damaged(&self) -> bool {
        !self.missing.is_empty() || self.gaps().any(|gap| gap.reason != GapReason::TornWrite)
    }

    /// The damage that a copy of the sealed segment, taken before, could mend: what lies in a segment that
    /// has a seal, and segments that are missing.
    pub fn mendable(&self) -> impl Iterator<Item = &Gap> {
        let damaged = self.segments.iter().filter(|segment| segment.info.seal.is_some());
        damaged.flat_map(|segment| &segment.gaps).filter(|gap| gap.reason != GapReason::TornWrite)
    }
}

/// Reads every byte of the log and checks every checksum, seal and link. Changes nothing.
pub fn verify(dir: &Path, options: &Options) -> Result<Report, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let mut report = Report { spilled: spill::waiting(&directory), ..Report::default() };
    let mut chain = Chain { number_next: 1, link: Some([0; 32]) };
    for file in directory.segments()? {
        let segment = Segment::open(&directory, &file)?;
        report.missing.extend(chain.number_next..segment.number);
        report.segments.push(verify_segment(segment, &mut chain)?);
    }
    if let Some(active) = Segment::open_active(&directory)? {
        report.missing.extend(chain.number_next..active.number);
        report.segments.push(verify_segment(active, &mut chain)?);
    }
    Ok(report)
}

struct Chain {
    number_next: u64,
    /// Link of the segment before; `None` if it could not be worked out.
    link: Option<[u8; 32]>,
}

fn verify_segment(mut segment: Segment, chain: &mut Chain) -> Result<SegmentReport, Error> {
    let survey = survey(&mut segment, u64::MAX)?;
    let mut gaps: Vec<Gap> = segment.header_gap().into_iter().collect();
    for (offset, len, reason, header) in &survey.gaps {
        let mut gap = segment.gap(*offset, *len, *reason);
        gap.id = header.map(|header| header.id);
        gap.kind = header.map(|header| header.kind);
        // An append may be under way at the end of the active segment.
        if !(segment.is_active && offset + len == survey.seal.bytes) {
            gaps.push(gap);
        }
    }
    let is_next = segment.number == chain.number_next;
    chain.link = match &segment.seal {
        Some(seal) => {
            let fits = seal.hash == survey.seal.hash
                && seal.records == survey.seal.records
                && (!is_next || chain.link.is_none_or(|link| link == seal.link_previous));
            if !fits {
                gaps.push(segment.gap(seal.bytes, 0, GapReason::BrokenSeal));
            }
            Some(seal.link())
        }
        None => None,
    };
    chain.number_next = segment.number_last() + 1;
    Ok(SegmentReport { records: survey.seal.records, info: segment.info()?, gaps })
}

/// Copies the bytes of a gap to `quarantine/`, where they stay whatever becomes of the segment. Does
/// nothing if they are there already. Says where.
pub fn quarantine(dir: &Path, options: &Options, gap: &Gap) -> Result<PathBuf, Error> {
    let directory = Directory::new(dir, Arc::clone(&options.disk));
    let folder = directory.quarantine();
    let path = folder.join(format!("{:016x}-{}", gap.segment, gap.offset));
    if directory.disk.inode(&path).is_ok() {
        return Ok(path);
    }
    directory.disk.create_dir(&folder).map_err(|error| Error::io("create", &folder, error))?;
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
    let files = directory.segments()?;
    let file = files.iter().find(|file| file.number == gap.segment);
    let mut segment = match file {
        Some(file) => Segment::open(directory, file)?,
        None => match Segment::open_active(directory)? {
            Some(active) if active.number == gap.segment => active,
            _ => return Ok(Vec::new()),
        },
    };
    let len = gap.len as usize;
    let window = segment
        .bytes
        .window(gap.offset, len)
        .map_err(|error| Error::io("read", &segment.path, error))?;
    Ok(window[..window.len().min(len)].to_vec())
}
