//! Detects a remote whose history differs from that of the local log.

use crate::ship::{
    Error, local::LocalSegment, manifest::Segment, remote::Remote, remote_head::Head,
};

/// Checks that unsealed segments are equal on both sides. Sealed ones have their hash in the seal.
pub(super) fn check(
    remote: &Remote,
    head: Option<&Head>,
    here: &[LocalSegment],
) -> Result<(), Error> {
    let Some(head) = head else { return Ok(()) };
    for there in &head.manifest.segments {
        let is_same = |here: &&LocalSegment| {
            here.number == there.number && here.generation == there.generation
        };
        let Some(here) = here.iter().find(is_same).filter(|_| there.seal.is_none()) else {
            continue;
        };
        let is_here =
            here.bytes >= there.hash_bytes && here.hash(there.hash_bytes, 0)?.0 == there.hash;
        if !is_here {
            return Err(diverged(remote, there));
        }
    }
    let last = head.manifest.segments.last();
    // The backup may contain only segments that are older than those it should contain.
    let is_older = |number: u64| here.first().is_some_and(|first| number < first.number);
    if last.is_some_and(|last| is_older(last.number)) {
        return Ok(());
    }
    for increment in &head.increments {
        let here = here.iter().find(|here| Some(here.number) == last.map(|last| last.number));
        let is_here = match here {
            Some(here) if here.generation > 0 => true,
            Some(here) if here.bytes >= increment.to() => {
                here.read(increment.from, increment.to())? == increment.bytes
            }
            _ => false,
        };
        if let (false, Some(last)) = (is_here, last) {
            return Err(diverged(remote, last));
        }
    }
    Ok(())
}

/// The segment differs between remote and local log.
pub(super) fn diverged(remote: &Remote, there: &Segment) -> Error {
    let why = format!("segment {:016x} differs from the remote", there.number);
    Error::Diverged { place: remote.place().into(), why }
}
