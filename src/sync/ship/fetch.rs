//! Downloads the segments of a log: several parts in parallel, each verified and written in place.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::AcqRel},
    },
};

use tokio::task::JoinSet;

use crate::ship::{
    Error,
    local::{self, blocking},
    manifest::Segment,
    remote::{Buffers, Remote},
    remote_head::{self, Fetched, Head},
};
use claude_mem_core::os::{CreateOptionsExt as _, FileExt as _};

/// Parallel downloads: enough to keep network, disk and processor busy, few enough to limit memory.
const PARTS_MAX: usize = 8;

/// Bytes per write. Larger writes are slower: the system then caches them in larger pages, which
/// are scarce on virtual machines.
const PIECE_BYTES: usize = 128 << 10;

/// A segment whose parts arrive in any order.
#[derive(Debug)]
struct SegmentDownload {
    file: File,
    path: PathBuf,
    target: PathBuf,
    bytes: u64,
    parts_left: AtomicUsize,
}

/// The bytes of a downloaded part, and an error text if it was skipped.
type DownloadedPart = (u64, Option<String>);

/// Downloads every segment that is not in `log` yet, and syncs it. With `salvage`, returns what
/// could not be downloaded. `progress` gets the downloaded and the total bytes.
///
/// Every part is verified by its hash in the manifest, and parts cover the whole segment. On an
/// error, running writes are awaited: no task writes to a file after this returns.
pub(super) async fn fetch_all(
    remote: &Remote,
    head: &Head,
    log: &Path,
    is_salvage: bool,
    progress: impl Fn(u64, u64),
) -> Result<Vec<String>, Error> {
    let segments = head.segments();
    let mut arrivals =
        DownloadProgress { done: 0, total: head.bytes(), lost: Vec::new(), progress };
    let buffers = Buffers::default();
    let mut running = JoinSet::new();
    let mut result = Ok(());
    'all: for segment in &segments {
        let draft = match begin(segment, log).await {
            Ok(Some(draft)) => draft,
            Ok(None) => {
                arrivals.arrived((segment.bytes, None));
                continue;
            }
            Err(error) => {
                result = Err(error);
                break;
            }
        };
        for part in &segment.parts {
            if running.len() == PARTS_MAX {
                result = arrivals.next(&mut running).await;
            }
            if result.is_err() {
                break 'all;
            }
            let (remote, draft, buffers) = (remote.clone(), Arc::clone(&draft), buffers.clone());
            let (part, name) = (head.fetched(part), format!("{:016x}", segment.number));
            running.spawn(fetch(remote, part, draft, buffers, is_salvage.then_some(name)));
        }
    }
    while !running.is_empty() {
        result = result.and(arrivals.next(&mut running).await);
    }
    result.map(|()| arrivals.lost)
}

struct DownloadProgress<P> {
    done: u64,
    total: u64,
    lost: Vec<String>,
    progress: P,
}

impl<P: Fn(u64, u64)> DownloadProgress<P> {
    async fn next(
        &mut self,
        running: &mut JoinSet<Result<DownloadedPart, Error>>,
    ) -> Result<(), Error> {
        if let Some(part) = running.join_next().await {
            self.arrived(part.map_err(|error| remote_head::stopped(&error))??);
        }
        Ok(())
    }

    fn arrived(&mut self, (bytes, lost): DownloadedPart) {
        self.done += bytes;
        self.lost.extend(lost);
        (self.progress)(self.done, self.total);
    }
}

/// A new draft; `None` if an earlier run completed the segment.
async fn begin(segment: &Segment, log: &Path) -> Result<Option<Arc<SegmentDownload>>, Error> {
    let target = log.join(segment.file_name());
    let (there, hash, len) = (target.clone(), segment.hash, segment.bytes);
    let is_whole = segment.hash_bytes == segment.bytes
        && blocking(move || {
            let is_as_long = fs::metadata(&there).is_ok_and(|file| file.len() == len);
            Ok(is_as_long && local::hash(&there, len)? == hash)
        })
        .await?;
    if is_whole {
        return Ok(None);
    }
    let path = target.with_extension("part");
    let mut options = fs::OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).owner_only().open(&path);
    let file = file.map_err(|error| Error::io("write", &path, error))?;
    let parts_left = AtomicUsize::new(segment.parts.len());
    let draft = SegmentDownload { file, path, target, bytes: len, parts_left };
    if segment.parts.is_empty() {
        draft.finish()?;
    }
    Ok(Some(Arc::new(draft)))
}

/// Downloads one part and writes it. `salvaged` is the name of the segment if the part may be
/// skipped.
async fn fetch(
    remote: Remote,
    part: Fetched,
    draft: Arc<SegmentDownload>,
    buffers: Buffers,
    salvaged: Option<String>,
) -> Result<DownloadedPart, Error> {
    let (from, to) = part.range();
    let into = Arc::clone(&draft);
    let fetched = part.give(&remote, &buffers, move |bytes| into.write(bytes, from)).await;
    let lost = match (fetched, salvaged) {
        (Ok(()), _) => None,
        (
            Err(error @ (Error::Missing { .. } | Error::Damaged { .. } | Error::WrongKey { .. })),
            Some(segment),
        ) => {
            blocking(move || draft.part_done()).await?;
            Some(format!("bytes {from} to {to} of segment {segment}: {error}"))
        }
        (Err(error), _) => return Err(error),
    };
    Ok((to - from, lost))
}

impl SegmentDownload {
    fn write(&self, bytes: &[u8], from: u64) -> Result<(), Error> {
        let places = (from..).step_by(PIECE_BYTES);
        for (piece, at) in bytes.chunks(PIECE_BYTES).zip(places) {
            self.file.write_all_at(piece, at).map_err(|error| self.failed(error))?;
        }
        self.part_done()
    }

    /// Marks one part as done. A skipped part is left as zeros: records keep their offsets, and
    /// readers skip invalid bytes.
    fn part_done(&self) -> Result<(), Error> {
        match self.parts_left.fetch_sub(1, AcqRel) {
            1 => self.finish(),
            _ => Ok(()),
        }
    }

    /// Syncs the segment and gives it its final name.
    fn finish(&self) -> Result<(), Error> {
        self.file.set_len(self.bytes).map_err(|error| self.failed(error))?;
        self.file.sync_data().map_err(|error| self.failed(error))?;
        fs::rename(&self.path, &self.target).map_err(|error| Error::io("rename", &self.path, error))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io("write", &self.path, error)
    }
}
