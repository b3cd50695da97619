//! The segments of the local log, as they are shipped.

use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Path, PathBuf},
    time::SystemTime,
};

use claude_mem_log::{
    Appender, Log, Options, SegmentState,
    format::{self, SEGMENT_HEADER_LEN, SegmentHeader},
    maintain,
    scan::{ScanResult, scan},
};

use crate::ship::{
    Error,
    manifest::{Hash, HostId},
    remote_head,
};
use claude_mem_core::os::{self, FileExt as _};

#[derive(Debug, Clone)]
pub struct LocalSegment {
    pub number: u64,
    pub generation: u32,
    pub number_last: u64,
    pub path: PathBuf,
    /// Bytes to ship: in the active segment, up to the end of the last complete record.
    pub bytes: u64,
    pub seal: Option<Hash>,
    pub is_active: bool,
}

impl LocalSegment {
    pub fn read(&self, from: u64, to: u64) -> Result<Vec<u8>, Error> {
        read_from(&self.open()?, &self.path, from, to)
    }

    /// The hash of the first `len` bytes, and of the first `mark` bytes.
    pub fn hash(&self, len: u64, mark: u64) -> Result<(Hash, Hash), Error> {
        hash_from(self.open()?, &self.path, len, mark)
    }

    fn open(&self) -> Result<File, Error> {
        open(&self.path, self.is_active.then_some(self.number))
    }
}

/// Opens a segment. The name of the active segment belongs to the next one after a roll: if its
/// number is not the expected one, the segment is not found here, and the caller lists the log
/// again.
fn open(path: &Path, active: Option<u64>) -> Result<File, Error> {
    let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
    let mut header = [0; SEGMENT_HEADER_LEN];
    if let Some(number) = active
        && file.read_exact_at(&mut header, 0).is_ok()
        && SegmentHeader::decode(&header).is_some_and(|header| header.number != number)
    {
        let rolled = io::Error::new(io::ErrorKind::NotFound, "the segment was rolled");
        return Err(Error::io("read", path, rolled));
    }
    Ok(file)
}

/// The id of the log in `dir`; `None` if there is no log.
pub fn host(dir: &Path) -> Result<Option<HostId>, Error> {
    Ok(Log::open(dir, Options::default())?.id().map(HostId))
}

/// Merges spilled records, seals full segments and flushes: a remote must not contain what a power
/// loss could remove here.
pub(super) fn merge_and_flush(dir: &Path) -> Result<(), Error> {
    maintain(dir, &Options::default())?;
    Appender::open(dir, Options::default())?.sync()?;
    Ok(())
}

/// All segments. `known` is a segment and an offset where a record is known to end.
pub fn segments(dir: &Path, host: HostId, known: (u64, u64)) -> Result<Vec<LocalSegment>, Error> {
    let mut all = Vec::new();
    for info in Log::open(dir, Options::default())?.segments()? {
        let is_active = info.state == SegmentState::Active;
        let mut bytes = info.bytes;
        if is_active {
            let from = if known.0 == info.number { known.1 } else { 0 };
            bytes = whole_end(&info.path, host, info.number, from, info.bytes)?;
        }
        all.push(LocalSegment {
            number: info.number,
            generation: info.generation,
            number_last: info.number_last,
            path: info.path,
            bytes,
            seal: info.seal.map(|seal| Hash(seal.hash)),
            is_active,
        });
    }
    Ok(all)
}

/// The end of the last complete record. An append may be in progress after it.
fn whole_end(path: &Path, host: HostId, number: u64, from: u64, len: u64) -> Result<u64, Error> {
    let from = from.min(len);
    let file = open(path, Some(number))?;
    let bytes = read_from(&file, path, from, len)?;
    let header_len = SEGMENT_HEADER_LEN as u64;
    if from < header_len && len < header_len {
        return Ok(0);
    }
    let header = read_from(&file, path, 0, header_len)?;
    let salt = SegmentHeader::decode(&header).map(|header| header.salt());
    let salt = salt.unwrap_or_else(|| format::salt(host.0, number));
    let mut at = header_len.saturating_sub(from);
    let mut source = bytes.as_slice();
    loop {
        let found = scan(&mut source, at, salt).map_err(|error| Error::io("read", path, error))?;
        match found {
            ScanResult::Frame(_) | ScanResult::Gap { .. } => {
                at = found.end(at).expect("only the end has no end");
            }
            ScanResult::Tail { .. } | ScanResult::End => return Ok(from + at),
        }
    }
}

fn read_from(file: &File, path: &Path, from: u64, to: u64) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; (to - from) as usize];
    file.read_exact_at(&mut bytes, from).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}

/// The hash of the first `len` bytes of a file.
pub fn hash(path: &Path, len: u64) -> Result<Hash, Error> {
    Ok(hash_from(open(path, None)?, path, len, 0)?.0)
}

fn hash_from(mut file: File, path: &Path, len: u64, mark: u64) -> Result<(Hash, Hash), Error> {
    let failed = |error| Error::io("read", path, error);
    let mut hasher = blake3::Hasher::new();
    feed(&mut hasher, &mut file, mark).map_err(failed)?;
    let at_mark = Hash(hasher.finalize().into());
    feed(&mut hasher, &mut file, len - mark).map_err(failed)?;
    Ok((Hash(hasher.finalize().into()), at_mark))
}

fn feed(hasher: &mut blake3::Hasher, file: &mut File, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; (len as usize).min(1 << 20)];
    let mut left = len;
    while left > 0 {
        let piece = &mut buffer[..(left as usize).min(1 << 20)];
        file.read_exact(piece)?;
        hasher.update(piece);
        left -= piece.len() as u64;
    }
    Ok(())
}

/// Enough of the log directory's state to detect new records.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogSnapshot {
    active: Option<(u64, u64)>,
    folders: [Option<SystemTime>; 2],
}

impl LogSnapshot {
    pub(super) fn at(dir: &Path) -> Self {
        let active = os::inode_and_len(&dir.join("active.log")).ok();
        let changed = |dir: &Path| fs::metadata(dir).ok()?.modified().ok();
        Self { active, folders: [changed(dir), changed(&dir.join("spill"))] }
    }
}

/// Runs blocking file I/O on a separate thread.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work).await.map_err(|error| remote_head::stopped(&error))?
}

#[cfg(test)]
mod tests {
    use claude_mem_log::roll;

    use super::*;
    use crate::ship::tests::Machine;

    #[test]
    fn a_segment_that_was_rolled_is_not_read_as_the_next_one() {
        let mut machine = Machine::new();
        machine.record(1);
        let listed = segments(&machine.log(), machine.host(), (0, 0)).unwrap().pop().unwrap();
        assert!(listed.is_active && listed.read(0, listed.bytes).is_ok());
        roll(&machine.log(), &Options::default()).unwrap();
        machine.record(3);
        let is_rolled = |error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound);
        assert!(is_rolled(listed.read(0, listed.bytes).unwrap_err()));
        assert!(is_rolled(listed.hash(listed.bytes, 0).unwrap_err()));
    }
}
