//! Compares the local log with the remote and plans the upload.

use crate::ship::{
    comparison::is_same_file,
    key::{self, Key},
    local::LocalSegment,
    manifest::Segment,
    remote_head::Head,
};

#[derive(Debug)]
pub(super) enum Plan {
    /// Nothing to upload.
    Nothing,
    /// The last segment grew by little: one increment.
    Increment {
        segment: LocalSegment,
        from: u64,
    },
    Manifest(Vec<PlannedSegment>),
}

#[derive(Debug)]
pub(super) enum PlannedSegment {
    /// Unchanged.
    Same(Segment),
    /// New or longer than in the remote.
    New { here: LocalSegment, there: Option<Segment> },
}

/// Larger increments are uploaded as parts.
const INCREMENT_BYTES_MAX: u64 = 1 << 20;
/// The maximum number of increments after a manifest: a reader needs one request for each.
const INCREMENTS_MAX: usize = 256;
const RUN_BYTES_MAX: u64 = 4 << 20;

impl Plan {
    /// Compares both sides, whose histories must be the same.
    pub(super) fn new(
        here: &[LocalSegment],
        head: Option<&Head>,
        key: Option<&Key>,
        is_repair: bool,
        keeps_older: bool,
    ) -> Self {
        let there = head.map(Head::segments).unwrap_or_default();
        let key = key.map(|key| key::show(key.fingerprint()));
        let is_key_new = head.is_some_and(|head| head.manifest.key != key);
        let mut planned: Vec<PlannedSegment> =
            if keeps_older { dropped_here(here, &there) } else { Vec::new() };
        for here in here {
            let same = there.iter().find(|there| is_same_file(here, there));
            planned.push(match same {
                Some(there) if !is_key_new && !is_repair && is_same(here, there) => {
                    PlannedSegment::Same(there.clone())
                }
                there => PlannedSegment::New {
                    here: here.clone(),
                    there: there.filter(|_| !is_key_new).cloned(),
                },
            });
        }
        let is_same = planned.len() == there.len()
            && planned.iter().all(|planned| matches!(planned, PlannedSegment::Same(_)));
        if head.is_some() && is_same || planned.is_empty() {
            return Self::Nothing;
        }
        match head.and_then(|head| increment(&planned, head, there.len())) {
            Some(plan) if !is_repair => plan,
            _ => Self::Manifest(planned),
        }
    }
}

fn is_same(here: &LocalSegment, there: &Segment) -> bool {
    let is_as_long = here.bytes == there.bytes && here.is_active == there.is_active;
    // Keep the seal in the remote if it is damaged here.
    is_as_long && (here.seal == there.seal || here.seal.is_none())
}

/// Segments older than the local log were deleted here to save space. They stay in the remote.
fn dropped_here(here: &[LocalSegment], there: &[Segment]) -> Vec<PlannedSegment> {
    let first = here.first().map_or(0, |here| here.number);
    let older = there.iter().filter(|there| there.number_last < first);
    older.cloned().map(PlannedSegment::Same).collect()
}

fn increment(planned: &[PlannedSegment], head: &Head, there: usize) -> Option<Plan> {
    let (last, others) = planned.split_last()?;
    let PlannedSegment::New { here, there: Some(segment) } = last else { return None };
    let run_bytes: usize = head.increments.iter().map(|increment| increment.bytes.len()).sum();
    let fits = planned.len() == there
        && others.iter().all(|planned| matches!(planned, PlannedSegment::Same(_)))
        && here.is_active
        && segment.is_active
        && here.bytes > segment.bytes
        && here.bytes - segment.bytes <= INCREMENT_BYTES_MAX
        && head.increments.len() < INCREMENTS_MAX
        && (run_bytes as u64) < RUN_BYTES_MAX;
    fits.then(|| Plan::Increment { segment: here.clone(), from: segment.bytes })
}
