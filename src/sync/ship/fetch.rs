//! Fetching the segments of a log: several parts at once, each checked and written where it belongs.

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
use claude_mem_core::os::{FileExt as _, Making as _};

/// Parts on their way at the same time: enough that neither the remote nor the disk nor a processor waits for
/// another, few enough that they take little memory.
const PARTS_MAX: usize = 8;

/// What is written at a time. With more, the system looks for room in pieces as large, which it has seldom at hand.
const PIECE_BYTES: usize = 128 << 10;

/// A segment of which parts arrive in any order.
#[derive(Debug)]
struct Draft {
    file: File,
    path: PathBuf,
    target: PathBuf,
    bytes: u64,
    parts_left: AtomicUsize,
}

/// A part that is there: so many bytes, and in words what could not be had of it.
type Arrived = (u64, Option<String>);

/// Writes every segment that is not in `log` yet, and syncs it. Says what could not be had, if it is to go on
/// without. `progress` is told how many bytes of how many are there.
///
/// Every part is checked against the hash that the manifest names for it, and the parts of a segment make up all
/// of it, so there is nothing that is not checked. Whatever is still being written when something fails is
/// waited for: nobody writes to a file after this returns.
pub(super) async fn fetch_all(
    remote: &Remote,
    head: &Head,
    log: &Path,
    is_salvage: bool,
    progress: impl Fn(u64, u64),
) -> Result<Vec<String>, Error> {
    let segments = head.segments();
    let mut show = Show { done: 0, total: head.bytes(), lost: Vec::new(), progress };
    let buffers = Buffers::default();
    let mut under_way = JoinSet::new();
    let mut result = Ok(());
    'all: for segment in &segments {
        let draft = match begin(segment, log).await {
            Ok(Some(draft)) => draft,
            Ok(None) => {
                show.arrived((segment.bytes, None));
                continue;
            }
            Err(error) => {
                result = Err(error);
                break;
            }
        };
        for part in &segment.parts {
            if under_way.len() == PARTS_MAX {
                result = show.next(&mut under_way).await;
            }
            if result.is_err() {
                break 'all;
            }
            let (remote, draft, buffers) = (remote.clone(), Arc::clone(&draft), buffers.clone());
            let (part, name) = (head.fetched(part), format!("{:016x}", segment.number));
            under_way.spawn(fetch(remote, part, draft, buffers, is_salvage.then_some(name)));
        }
    }
    while !under_way.is_empty() {
        result = result.and(show.next(&mut under_way).await);
    }
    result.map(|()| show.lost)
}

/// What is there so far.
struct Show<P> {
    done: u64,
    total: u64,
    lost: Vec<String>,
    progress: P,
}

impl<P: Fn(u64, u64)> Show<P> {
    async fn next(&mut self, under_way: &mut JoinSet<Result<Arrived, Error>>) -> Result<(), Error> {
        if let Some(part) = under_way.join_next().await {
            self.arrived(part.map_err(|error| remote_head::stopped(&error))??);
        }
        Ok(())
    }

    fn arrived(&mut self, (bytes, lost): Arrived) {
        self.done += bytes;
        self.lost.extend(lost);
        (self.progress)(self.done, self.total);
    }
}

/// A new draft; `None` if the segment is there from a run before.
async fn begin(segment: &Segment, log: &Path) -> Result<Option<Arc<Draft>>, Error> {
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
    let draft = Draft { file, path, target, bytes: len, parts_left };
    if segment.parts.is_empty() {
        draft.finish()?;
    }
    Ok(Some(Arc::new(draft)))
}

/// Fetches one part and writes it. `salvaged` is the segment's name if it may also be lost.
async fn fetch(
    remote: Remote,
    part: Fetched,
    draft: Arc<Draft>,
    buffers: Buffers,
    salvaged: Option<String>,
) -> Result<Arrived, Error> {
    let (from, to) = part.range();
    let into = Arc::clone(&draft);
    let fetched = part.give(&remote, &buffers, move |bytes| into.write(bytes, from)).await;
    let lost = match (fetched, salvaged) {
        (Ok(()), _) => None,
        (
            Err(error @ (Error::Missing { .. } | Error::Damaged { .. } | Error::WrongKey { .. })),
            Some(segment),
        ) => {
            blocking(move || draft.put_down()).await?;
            Some(format!("bytes {from} to {to} of segment {segment}: {error}"))
        }
        (Err(error), _) => return Err(error),
    };
    Ok((to - from, lost))
}

impl Draft {
    fn write(&self, bytes: &[u8], from: u64) -> Result<(), Error> {
        let places = (from..).step_by(PIECE_BYTES);
        for (piece, at) in bytes.chunks(PIECE_BYTES).zip(places) {
            self.file.write_all_at(piece, at).map_err(|error| self.failed(error))?;
        }
        self.put_down()
    }

    /// One part less to wait for. Where one was lost there are zeros: every record keeps its place, and readers
    /// of a log pass over what is none.
    fn put_down(&self) -> Result<(), Error> {
        match self.parts_left.fetch_sub(1, AcqRel) {
            1 => self.finish(),
            _ => Ok(()),
        }
    }

    /// Gives the segment its name, once all of it is on disk.
    fn finish(&self) -> Result<(), Error> {
        self.file.set_len(self.bytes).map_err(|error| self.failed(error))?;
        self.file.sync_data().map_err(|error| self.failed(error))?;
        fs::rename(&self.path, &self.target).map_err(|error| Error::io("rename", &self.path, error))
    }

    fn failed(&self, error: std::io::Error) -> Error {
        Error::io("write", &self.path, error)
    }
}
