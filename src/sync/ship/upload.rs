//! Uploads segments in parts.

use std::collections::VecDeque;

use claude_mem_core::progress::Progress;
use tokio::task::JoinHandle;

use crate::ship::{
    Error, Shipped,
    comparison::diverged,
    local::{LocalSegment, blocking},
    manifest::{Hash, HostId, Part, PartLocation, Segment, part_object},
    remote::{Put, Remote},
    remote_head,
};

const PART_BYTES_MAX: u64 = 4 << 20;
const PUTS_MAX: usize = 4;
/// Increments are merged into one object if the remote then stays below this percentage of the
/// recorded bytes.
const SHARE_MAX: u64 = 55;

#[derive(Debug, Clone, Copy)]
pub(super) struct Uploader<'a> {
    pub(super) remote: &'a Remote,
    pub(super) host: HostId,
    /// The number of the newest manifest, and the packed size of the increments after it, if known.
    pub(super) newest: Option<(u64, Option<u64>)>,
    /// Whether the remote is on this disk: then fewer files matter more than fewer bytes written.
    pub(super) is_local: bool,
    pub(super) progress: &'a Progress,
}

impl Uploader<'_> {
    /// Uploads the missing bytes of a segment. Returns its description.
    pub(super) async fn segment(
        &self,
        here: &LocalSegment,
        there: Option<&Segment>,
        shipped: &mut Shipped,
    ) -> Result<Segment, Error> {
        let mark = there.map_or(0, |there| there.hash_bytes).min(here.bytes);
        let owned = here.clone();
        let (hash, at_mark) = blocking(move || owned.hash(owned.bytes, mark)).await?;
        let mut parts = Vec::new();
        if let Some(there) = there {
            if at_mark != there.hash || mark != there.hash_bytes {
                return Err(diverged(self.remote, there));
            }
            parts.clone_from(&there.parts);
            if let Some(run) = self.run_to_merge(here, there)? {
                parts.retain(|part| part.from < run);
            }
        }
        let from = parts.last().map_or(0, |part| part.to);
        self.parts(here, from, &mut parts, shipped).await?;
        shipped.log_bytes += here.bytes - there.map_or(0, |there| there.bytes);
        Ok(Segment {
            number: here.number,
            generation: here.generation,
            number_last: here.number_last,
            bytes: here.bytes,
            hash,
            hash_bytes: here.bytes,
            seal: here.seal,
            is_active: here.is_active,
            parts,
        })
    }

    async fn parts(
        &self,
        here: &LocalSegment,
        from: u64,
        parts: &mut Vec<Part>,
        shipped: &mut Shipped,
    ) -> Result<(), Error> {
        let mut running: VecDeque<JoinHandle<Result<(Part, u64), Error>>> = VecDeque::new();
        let mut from = from;
        while from < here.bytes || !running.is_empty() {
            if from < here.bytes && running.len() < PUTS_MAX {
                let to = here.bytes.min(from + PART_BYTES_MAX);
                let (remote, here) = (self.remote.clone(), here.clone());
                running.push_back(tokio::spawn(put_part(remote, self.host, here, from, to)));
                from = to;
                continue;
            }
            let task = running.pop_front().expect("the loop ends when there is none");
            let (part, put) = task.await.map_err(|error| remote_head::stopped(&error))??;
            shipped.objects += u64::from(put > 0);
            shipped.put_bytes += put;
            self.progress.advance(part.to - part.from);
            parts.push(part);
        }
        Ok(())
    }

    /// The offset of the increments that should now be merged into one object.
    fn run_to_merge(&self, here: &LocalSegment, there: &Segment) -> Result<Option<u64>, Error> {
        let Some(run) = there
            .parts
            .last()
            .filter(|part| matches!(part.at, PartLocation::Run(first, last) if last > first))
        else {
            return Ok(None);
        };
        let put = match (self.newest, &run.at) {
            (Some((manifest, put)), PartLocation::Run(first, _)) if *first > manifest => put,
            _ => return Ok(None),
        };
        if self.is_local {
            return Ok(Some(run.from));
        }
        if !self.remote.is_compressing() {
            return Ok(None);
        }
        let bytes = here.read(run.from, run.to)?;
        let put = put.unwrap_or(bytes.len() as u64 / 2);
        let together = self.remote.packed_len(&bytes)?;
        let is_worth_it = (put + together) * 100 <= SHARE_MAX * bytes.len() as u64;
        Ok(is_worth_it.then_some(run.from))
    }
}

/// Uploads one part, or finds it. Returns the uploaded bytes.
async fn put_part(
    remote: Remote,
    host: HostId,
    here: LocalSegment,
    from: u64,
    to: u64,
) -> Result<(Part, u64), Error> {
    let owned = here.clone();
    let (bytes, hash) = blocking(move || {
        let bytes = owned.read(from, to)?;
        let hash = Hash::of(&bytes);
        Ok((bytes, hash))
    })
    .await?;
    let object = part_object(here.number, here.generation, from, to, &hash, remote.key());
    let name = host.part(&object);
    let put = match remote.put_new(&name, &bytes).await? {
        Put::Written(put) => put,
        Put::Exists => match remote.get(&name).await {
            Ok(there) if there == bytes => 0,
            // The existing object is damaged: replace it.
            Ok(_) | Err(Error::Damaged { .. } | Error::Missing { .. }) => {
                remote.put_over(&name, &bytes).await?
            }
            Err(error) => return Err(error),
        },
    };
    Ok((Part { from, to, hash, at: PartLocation::Object(object) }, put))
}
