//! Compares a remote with the local log. `ship`, `verify --remote` and `doctor` share this, so that
//! a check fails whenever the next upload would.

use crate::ship::{
    Error, local::LocalSegment, manifest::Segment, remote::Remote, remote_head::Head,
};

/// How much of the contents is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// None of it: only generations, lengths and seals.
    Lengths,
    /// The contents of unsealed segments. The seals of the others contain their hashes.
    Unsealed,
    /// Every byte.
    All,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Segments of the remote that the local log does not continue.
    pub differences: Vec<String>,
    /// Bytes that the next upload adds.
    pub behind_bytes: u64,
}

/// Compares every segment of the remote with the local log. Segments older than the local log were
/// deleted here on purpose, so they are left out.
pub fn compare(head: &Head, here: &[LocalSegment], depth: Depth) -> Result<Comparison, Error> {
    let mut differences = Vec::new();
    let first = here.first().map_or(0, |here| here.number);
    let segments = head.segments();
    for there in segments.iter().filter(|there| there.number_last >= first) {
        differences.extend(difference(head, there, here, depth)?);
    }
    let bytes_there = |here: &LocalSegment| {
        segments.iter().find(|there| is_same_file(here, there)).map_or(0, |there| there.bytes)
    };
    let behind = here.iter().map(|here| here.bytes.saturating_sub(bytes_there(here)));
    Ok(Comparison { differences, behind_bytes: behind.sum() })
}

/// The local file that contains the records of a segment. A compaction may have merged several
/// segments into it.
pub(super) fn covering<'a>(here: &'a [LocalSegment], there: &Segment) -> Option<&'a LocalSegment> {
    here.iter().find(|here| (here.number..=here.number_last).contains(&there.number))
}

/// Whether both are the same file, which only grows. A later generation is another file.
pub(super) fn is_same_file(here: &LocalSegment, there: &Segment) -> bool {
    here.number == there.number && here.generation == there.generation
}

fn difference(
    head: &Head,
    there: &Segment,
    here: &[LocalSegment],
    depth: Depth,
) -> Result<Option<String>, Error> {
    let number = there.number;
    let Some(here) = covering(here, there) else {
        return Ok(Some(format!("segment {number:016x} is in the remote and not here")));
    };
    if here.generation < there.generation {
        let what = format!("segment {number:016x} was compacted in the remote and not here");
        return Ok(Some(what));
    }
    if !is_same_file(here, there) {
        return Ok(None);
    }
    if here.bytes < there.bytes {
        let (there, here) = (there.bytes, here.bytes);
        let what = format!("segment {number:016x} has {there} bytes in the remote and {here} here");
        return Ok(Some(what));
    }
    if there.seal.is_some() && here.seal.is_some() && there.seal != here.seal {
        return Ok(Some(format!("segment {number:016x} has another seal in the remote than here")));
    }
    let is_read = match depth {
        Depth::Lengths => false,
        Depth::Unsealed => there.seal.is_none(),
        Depth::All => true,
    };
    Ok(match is_read && !is_same_content(head, there, here)? {
        true => Some(differs(there)),
        false => None,
    })
}

fn differs(there: &Segment) -> String {
    format!("segment {:016x} differs from the remote", there.number)
}

/// Whether the bytes in the remote are also at the beginning of the local file.
pub(super) fn is_same_content(
    head: &Head,
    there: &Segment,
    here: &LocalSegment,
) -> Result<bool, Error> {
    if here.bytes < there.bytes || here.hash(there.hash_bytes, 0)?.0 != there.hash {
        return Ok(false);
    }
    for increment in head.increments.iter().filter(|increment| increment.segment == there.number) {
        if here.read(increment.from, increment.to())? != increment.bytes {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The segment differs between remote and local log.
pub(super) fn diverged(remote: &Remote, there: &Segment) -> Error {
    Error::Diverged { place: remote.place().into(), why: differs(there) }
}
