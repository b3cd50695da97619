//! Rewriting complete segments: without what nobody needs any more, smaller, and fewer of them.
//!
//! Nothing is changed in place. A new file is written beside the old ones, read again, synced, and given the
//! name of a later generation; that name is synced before the old files lose theirs. Killed or without power at
//! any point, a log is left in which every record is there, once: readers pass over what is superseded, and
//! the next compactor takes it away. Records keep their order, their ids and their places, so whoever knows how
//! far it has read goes on there.

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

/// What becomes of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is.
    Keep,
    /// Its payload is removed for good, and these bytes are left in its place. Id, kind and place stay.
    Erase(Vec<u8>),
    /// It has this payload from now on.
    Replace {
        /// Version of its kind that this is.
        schema: u16,
        /// How it is encoded.
        codec: u8,
        /// What it says.
        payload: Vec<u8>,
    },
}

/// What becomes of bytes that are no record. A write that was cut short is dropped without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// The segment is left as it is: a copy of it may mend it.
    Refuse,
    /// They are copied as they are. Segments with such bytes cannot be merged.
    Keep,
    /// They are dropped. If they were a record whose id is known, it is erased.
    Drop,
}

/// A record without its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Where it was first.
    pub seq: Seq,
    /// Who it is.
    pub id: Id,
    /// What it is, to whoever wrote it.
    pub kind: u16,
    /// Whether its payload was removed for good before.
    pub is_tombstone: bool,
}

/// Decides what becomes of records.
pub trait Judge {
    /// Whether anything but [`Fate::Keep`] comes into question. Payloads are unpacked only if so.
    fn concerns(&mut self, head: &Head) -> bool;

    /// What becomes of a record that it concerns.
    fn judge(&mut self, entry: &Entry<'_>) -> Fate;

    /// What becomes of damage.
    fn damage(&mut self, _gap: &Gap) -> Damage {
        Damage::Refuse
    }
}

/// Keeps everything.
#[derive(Debug, Clone, Copy)]
pub struct KeepAll;

impl Judge for KeepAll {
    fn concerns(&mut self, _head: &Head) -> bool {
        false
    }

    fn judge(&mut self, _entry: &Entry<'_>) -> Fate {
        Fate::Keep
    }
}

/// What a rewriting came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rewritten {
    /// Bytes of the files that are gone.
    pub bytes_before: u64,
    /// Bytes of the file that took their place.
    pub bytes_after: u64,
    /// Records in it.
    pub records: u64,
    /// Those of them whose payload was removed now.
    pub erased: u64,
    /// Those of them that have another payload now.
    pub replaced: u64,
    /// Bytes of writes that were cut short, and of damage that was dropped.
    pub dropped_bytes: u64,
}

/// How small payloads become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// The level of zstd.
    pub level: i32,
    /// Payloads from this size on are compressed if that makes them at least an eighth smaller.
    pub bytes_min: usize,
    /// Whether payloads that are compressed are unpacked and compressed anew.
    pub is_anew: bool,
}

impl Default for Packing {
    /// Below zero zstd leaves what does not repeat as it is. Payloads of text then take three fifths of the time of
    /// level 1, half the time to read, and a third to a half more room; but whoever compresses whole files of them,
    /// as shipping does, gets them a quarter smaller, since letters can still be told from noise.
    fn default() -> Self {
        Self { level: -2, bytes_min: 512, is_anew: false }
    }
}

/// Rewrites segments. There is one at a time in a log; any number of appenders and readers may be beside it.
#[derive(Debug)]
pub struct Compactor {
    directory: Directory,
    options: Options,
    packing: Packing,
    _lock: Arc<dyn File>,
}

impl Compactor {
    /// Takes the place of the one who compacts the log in `dir`, and clears away what a killed one left behind.
    /// `None` if somebody else compacts it now, or if there is no log.
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

    /// Rewrites these segments, which must be complete and follow one another, into one file. Everything in
    /// it is on disk, and the old files are gone, once this returns.
    ///
    /// `None` if they are left as they are: one is damaged, and the judge refuses, or it is to be merged. On an
    /// error nothing is lost; at worst the old files are still there beside the new one, which the next
    /// compactor clears away.
    pub fn rewrite(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn Judge,
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

    /// What [`rewrite`](Self::rewrite) would come to. Writes nothing.
    pub fn measure(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn Judge,
    ) -> Result<Option<Rewritten>, Error> {
        check(segments)?;
        Ok(self.write(segments, judge, None)?.map(|(_, rewritten)| rewritten))
    }

    /// Writes the new file under a name of no meaning, reads it again, and syncs it; or only measures it.
    fn write(
        &self,
        segments: &[SegmentInfo],
        judge: &mut dyn Judge,
        temporary: Option<&Path>,
    ) -> Result<Option<(SegmentFile, Rewritten)>, Error> {
        let mut sources = Vec::new();
        for info in segments {
            sources.push(self.open(info)?);
        }
        // A damaged head tells neither when the segment was made nor what came before.
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
        judge: &mut dyn Judge,
        header: SegmentHeader,
        chain: &Chain,
        temporary: Option<&Path>,
    ) -> Result<Option<Rewritten>, Error> {
        let mut output = match temporary {
            Some(path) => Output::create(&self.directory, path, header, &self.options)?,
            None => Output::nowhere(header, &self.options),
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

    /// Removes what a killed compactor left: files half written, and files whose records are all in a later
    /// generation, once that is known to be whole and to keep its name.
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

/// Begins a new segment, if there are records in the one that is appended to, so that it can be sealed and
/// compacted. Says whether it did; it does not while somebody keeps appending.
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
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not complete segments in a row");
    Err(Error::Io { action: "compact", path, source })
}

/// How the new file is linked to its neighbours.
struct Chain {
    links: Links,
    hash_origin: [u8; 32],
    number_last: u64,
    is_merged: bool,
}

/// `None` if the segments are not linked to each other as they should be.
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
