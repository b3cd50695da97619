//! Compaction: rewrites complete segments without unneeded content, smaller, and merged.
//!
//! Nothing is changed in place. A new file is written, read again, synced, and renamed to a later
//! generation; that name is synced before the old files are removed. After a kill or a power loss
//! at any point, every record is there once: readers skip superseded files, and the next compaction
//! removes them. Records keep their order, ids and places, so that readers continue where they
//! were.

mod dry_run_output;
mod frames;
mod output;

use crate::{
    Entry, Error, Gap, Id, Options, SegmentInfo, SegmentState, Seq,
    directory::{COMPACTED_TEMPORARY, Directory, SegmentFile, present},
    disk::{File, Lock},
    format::{Links, SegmentHeader},
    read::segment::Segment,
    write::{seal::survey, writer::Appender},
};
use frames::Frames;
use output::Output;
use std::{io, path::Path, sync::Arc};

/// What happens to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordAction {
    /// It stays as it is.
    Keep,
    /// Its payload is erased and replaced by these bytes. Id, kind and place stay.
    Erase(Vec<u8>),
    /// Its payload is replaced.
    Replace {
        /// The schema of the new payload.
        schema: u16,
        /// Its codec.
        codec: u8,
        /// Its bytes.
        payload: Vec<u8>,
    },
}

/// What happens to damaged bytes. A torn write is always dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The segment is left as it is: a copy may repair it.
    Refuse,
    /// They are copied. Segments with such bytes cannot be merged.
    Keep,
    /// They are dropped. If they were a record with a known id, it becomes a tombstone.
    Drop,
}

/// A record without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Its original place.
    pub seq: Seq,
    /// Its id.
    pub id: Id,
    /// Its kind.
    pub kind: u16,
    /// Whether its payload was erased before.
    pub is_tombstone: bool,
}

/// Decides what happens to records.
pub trait CompactionPolicy {
    /// Returns false if the record is certainly kept. Its payload is then not decompressed.
    fn concerns(&mut self, head: &Head) -> bool;

    /// The fate of a record for which `concerns` returned true.
    fn judge(&mut self, entry: &Entry<'_>) -> RecordAction;

    /// What happens to damaged bytes.
    fn damage(&mut self, _gap: &Gap) -> Damage {
        Damage::Refuse
    }
}

/// Keeps everything.
#[derive(Debug, Clone, Copy)]
pub struct KeepAll;

impl CompactionPolicy for KeepAll {
    fn concerns(&mut self, _head: &Head) -> bool {
        false
    }

    fn judge(&mut self, _entry: &Entry<'_>) -> RecordAction {
        RecordAction::Keep
    }
}

/// The result of a rewrite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// Bytes of the old files.
    pub bytes_before: u64,
    /// Bytes of the new file.
    pub bytes_after: u64,
    /// Number of records in it.
    pub records: u64,
    /// Number of records erased now.
    pub erased: u64,
    /// Number of records replaced now.
    pub replaced: u64,
    /// Bytes of torn writes, and of dropped damage.
    pub dropped_bytes: u64,
}

/// Compression settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The zstd level.
    pub level: i32,
    /// Payloads of at least this size are compressed if that makes them at least an eighth smaller.
    pub bytes_min: usize,
    /// Whether compressed payloads are compressed again.
    pub is_anew: bool,
}

impl Default for Packing {
    /// Negative levels of zstd leave literals uncompressed. Text payloads then take three fifths of
    /// the time of level 1, half the time to read, and a third to a half more space; but
    /// compressing whole files of them, as shipping does, makes them a quarter smaller, because
    /// literals are still compressible.
    fn default() -> Self {
        Self { level: -2, bytes_min: 512, is_anew: false }
    }
}

/// Rewrites segments. Only one at a time per log, concurrently with any number of appenders and
/// readers.
#[derive(Debug)]
pub struct Compactor {
    directory: Directory,
    options: Options,
    packing: Packing,
    _lock: Arc<dyn File>,
}

impl Compactor {
    /// Takes the lock of the log in `dir`, and removes what a killed compaction left behind. `None`
    /// if another process has the lock, or if there is no log.
    pub fn begin(dir: &Path, options: &Options, packing: Packing) -> Result<Option<Self>, Error> {
        let directory = Directory::new(dir, Arc::clone(&options.disk));
        let path = directory.compacting();
        let lock = match options.disk.open_marker(&path) {
            Ok(lock) => lock,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("open", &path, error)),
        };
        if !lock.try_lock(Lock::Exclusive).map_err(|error| Error::io("lock", &path, error))? {
            return Ok(None);
        }
        let compactor = Self { directory, options: options.clone(), packing, _lock: lock };
        compactor.clear_away()?;
        Ok(Some(compactor))
    }

    /// Rewrites these segments, which must be complete and consecutive, into one file. Once this
    /// returns, it is on disk and the old files are removed.
    ///
    /// `None` if they are left as they are: one is damaged, and the judge refuses, or it would have
    /// to be merged. An error loses nothing; at worst the old files remain, and the next compaction
    /// removes them.
    pub fn rewrite(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn CompactionPolicy,
    ) -> Result<Option<Rewritten>, Error> {
        check(segments)?;
        let temporary = self.directory.compacted_temporary();
        let written = self.write(segments, judge, Some(&temporary));
        let target = match written {
            Ok(Some((target, rewritten))) => (target, rewritten),
            unfinished => {
                let _ = self.directory.disk.remove(&temporary);
                return unfinished.map(|_| None);
            }
        };
        let (target, rewritten) = target;
        if let Err(error) = self.directory.disk.rename(&temporary, &target.path) {
            let _ = self.directory.disk.remove(&temporary);
            return Err(Error::io("rename", &temporary, error));
        }
        self.sync_names()?;
        for segment in segments {
            self.remove(&segment.path)?;
        }
        self.sync_names()?;
        Ok(Some(rewritten))
    }

    /// The result that [`rewrite`](Self::rewrite) would have. Writes nothing.
    pub fn measure(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn CompactionPolicy,
    ) -> Result<Option<Rewritten>, Error> {
        check(segments)?;
        Ok(self.write(segments, judge, None)?.map(|(_, rewritten)| rewritten))
    }

    /// Writes the new file under a temporary name, reads it again, and syncs it; or only measures
    /// it.
    fn write(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn CompactionPolicy,
        temporary: Option<&Path>,
    ) -> Result<Option<(SegmentFile, Rewritten)>, Error> {
        let mut sources = Vec::new();
        for info in segments {
            sources.push(self.open(info)?);
        }
        // A damaged header contains neither the creation time nor the length of the previous
        // segment.
        let Some(header) = sources.first().and_then(|first| first.header) else { return Ok(None) };
        if sources.iter().any(|source| source.header.is_none()) {
            return Ok(None);
        }
        let (number, number_last) = (segments[0].number, segments[segments.len() - 1].number_last);
        let generation = segments.iter().map(|info| info.generation).max().unwrap_or(0) + 1;
        let path = self.directory.merged(number, number_last, generation);
        let target = SegmentFile { number, number_last, generation, path };
        let Some(chain) = chain(&mut sources)? else { return Ok(None) };
        let Some(rewritten) = self.copy(&mut sources, judge, header, &chain, temporary)? else {
            return Ok(None);
        };
        let bytes_before = segments.iter().map(|info| info.bytes).sum();
        Ok(Some((target, Rewritten { bytes_before, ..rewritten })))
    }

    fn copy(
        &self,
        sources: &mut [Segment],
        judge: &mut dyn CompactionPolicy,
        header: SegmentHeader,
        chain: &Chain,
        temporary: Option<&Path>,
    ) -> Result<Option<Rewritten>, Error> {
        let mut output = match temporary {
            Some(path) => Output::create(&self.directory, path, header, &self.options)?,
            None => Output::dry_run(header, &self.options),
        };
        if chain.is_merged {
            output.put_links(&chain.links)?;
        }
        let is_alone = sources.len() == 1 && !chain.is_merged;
        let mut frames = Frames::new(judge, self.packing, is_alone)?;
        for source in sources.iter_mut() {
            if !frames.copy(source, &mut output)? {
                return Ok(None);
            }
        }
        let mut rewritten = frames.rewritten;
        rewritten.bytes_after = output.seal(chain)?;
        rewritten.records = output.records();
        if temporary.is_some() {
            output.check(&self.directory)?;
        }
        Ok(Some(rewritten))
    }

    fn open(&self, info: &SegmentInfo) -> Result<Segment, Error> {
        let SegmentInfo { number, number_last, generation, ref path, .. } = *info;
        let file = SegmentFile { number, number_last, generation, path: path.clone() };
        Segment::open(&self.directory, &file)
    }

    /// Removes what a killed compaction left: temporary files, and files whose records are all in a
    /// later generation, once that is verified and its name is synced.
    fn clear_away(&self) -> Result<(), Error> {
        let list = |error| Error::io("list", &self.directory.path, error);
        for name in self.directory.disk.list(&self.directory.path).map_err(list)? {
            if name.ends_with(COMPACTED_TEMPORARY) {
                self.remove(&self.directory.path.join(name))?;
            }
        }
        let (kept, superseded) = present(self.directory.segment_files()?);
        if superseded.is_empty() {
            return Ok(());
        }
        self.sync_names()?;
        for old in &superseded {
            let newer = kept.iter().find(|file| file.supersedes(old));
            if let Some(newer) = newer
                && self.is_whole(newer)?
            {
                self.remove(&old.path)?;
            }
        }
        self.sync_names()
    }

    fn is_whole(&self, file: &SegmentFile) -> Result<bool, Error> {
        let mut segment = Segment::open(&self.directory, file)?;
        let Some(seal) = segment.seal.clone() else { return Ok(false) };
        let found = survey(&mut segment, u64::MAX)?.seal;
        Ok(found.hash == seal.hash && found.records == seal.records)
    }

    fn remove(&self, path: &Path) -> Result<(), Error> {
        match self.directory.disk.remove(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", path, error))
            }
            _ => Ok(()),
        }
    }

    fn sync_names(&self) -> Result<(), Error> {
        let path = &self.directory.path;
        self.directory.disk.sync_dir(path).map_err(|error| Error::io("sync", path, error))
    }
}

/// Rolls the active segment if it has records, so that it can be sealed and compacted. Returns
/// whether it did; it does not while others keep appending.
pub fn roll(dir: &Path, options: &Options) -> Result<bool, Error> {
    Appender::open(dir, options.clone())?.roll()
}

fn check(segments: &[SegmentInfo]) -> Result<(), Error> {
    let is_complete = |info: &SegmentInfo| info.state == SegmentState::Sealed;
    let follows = |pair: &[SegmentInfo]| pair[0].number_last + 1 == pair[1].number;
    if !segments.is_empty() && segments.iter().all(is_complete) && segments.windows(2).all(follows)
    {
        return Ok(());
    }
    let path = segments.first().map(|info| info.path.clone()).unwrap_or_default();
    let source = io::Error::new(
        io::ErrorKind::InvalidInput,
        "the segments are not complete and consecutive",
    );
    Err(Error::Io { action: "compact", path, source })
}

/// The links of the new file to its neighbours.
struct Chain {
    links: Links,
    hash_origin: [u8; 32],
    number_last: u64,
    is_merged: bool,
}

/// `None` if the chain between the segments is broken.
fn chain(sources: &mut [Segment]) -> Result<Option<Chain>, Error> {
    let mut links: Option<Links> = None;
    let mut hashes = Vec::new();
    let mut is_merged = sources.len() > 1;
    let (mut hash_origin, mut number_last) = ([0; 32], 0);
    for source in sources.iter_mut() {
        let Some(seal) = source.seal.clone() else { return Ok(None) };
        let merged = crate::verify::chain_in(source)?;
        is_merged |= merged.is_some();
        let own = merged.unwrap_or_else(|| Links::new(seal.link_previous, Vec::new()));
        if own.last != seal.link_previous {
            return Ok(None);
        }
        if let Some(links) = &links {
            let link = Links::new(links.first, hashes.clone()).last;
            if link != own.first {
                return Ok(None);
            }
        }
        hashes.extend(&own.hashes);
        hashes.push(seal.hash_origin);
        links.get_or_insert(own);
        (hash_origin, number_last) = (seal.hash_origin, source.number_last);
    }
    hashes.pop();
    let first = links.unwrap_or_default().first;
    Ok(Some(Chain { links: Links::new(first, hashes), hash_origin, number_last, is_merged }))
}
