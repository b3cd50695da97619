//! The local copy of another host's log. New data is verified before it is added.
//!
//! The copy is readable at any time. Existing bytes never change: a segment grows at its end, gets
//! its final name when complete, and is deleted when a later generation replaces it.

use std::{
    fs::{self, File},
    io::{self, Read as _, Write as _},
    path::{Path, PathBuf},
};

use claude_mem_log::format::{SEGMENT_HEADER_LEN, SegmentHeader, encode_log_id};
use serde::{Deserialize, Serialize};

use super::hosts::replace;
use crate::ship::{
    Error,
    manifest::{Hash, HostId, Segment},
    remote::Remote,
    remote_head::{self, Head},
};
use claude_mem_core::{
    os::{self, CreateOptionsExt as _},
    progress::Progress,
};

/// Attempts per pull, if the remote is compacted meanwhile.
const ATTEMPTS_MAX: usize = 4;

/// The newest entry of the remote that was pulled.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct PulledEntry {
    number: u64,
    hash: Hash,
}

#[derive(Debug)]
pub(super) struct HostCopy {
    host: HostId,
    dir: PathBuf,
}

impl HostCopy {
    pub(super) fn new(host: HostId, dir: PathBuf) -> Self {
        Self { host, dir }
    }

    /// Pulls new entries. Returns the number of the newest entry and the bytes added.
    pub(super) async fn update(&self, remote: &Remote) -> Result<(u64, u64), Error> {
        let pulled_entry = self.pulled_entry();
        let number_known = pulled_entry.map_or(0, |pulled_entry| pulled_entry.number);
        if number_known > 0 && !exists(remote, &self.host.entry(number_known + 1)).await? {
            return Ok((number_known, 0));
        }
        let mut attempt = 0;
        let (head, bytes) = loop {
            attempt += 1;
            let found = remote_head::newest(remote, self.host, number_known).await?;
            let head = found.ok_or_else(|| Error::NoHosts { place: remote.place().into() })?;
            self.check_history(remote, &head, pulled_entry)?;
            match self.copy_segments(remote, &head).await {
                Ok(bytes) => break (head, bytes),
                // The remote was compacted meanwhile: load its newer manifest.
                Err(Error::Missing { .. }) if attempt < ATTEMPTS_MAX => {}
                Err(error) => return Err(error),
            }
        };
        let pulled_entry = PulledEntry { number: head.number, hash: head.hash };
        let json = serde_json::to_vec(&pulled_entry).expect("two numbers are plain data");
        replace(&self.dir.join("pulled.json"), &json)?;
        Ok((head.number, bytes))
    }

    fn pulled_entry(&self) -> Option<PulledEntry> {
        serde_json::from_slice(&fs::read(self.dir.join("pulled.json")).ok()?).ok()
    }

    /// Checks that the remote continues the history that was pulled before.
    fn check_history(
        &self,
        remote: &Remote,
        head: &Head,
        pulled_entry: Option<PulledEntry>,
    ) -> Result<(), Error> {
        let Some(pulled_entry) = pulled_entry else { return Ok(()) };
        let follower = pulled_entry.number + 1;
        let known_hash = if pulled_entry.number == head.number {
            Some(head.hash)
        } else if follower == head.manifest.number {
            head.manifest.previous
        } else {
            let next = head.increments.iter().find(|increment| increment.number == follower);
            next.map(|increment| increment.previous)
        };
        match known_hash {
            Some(known_hash) if known_hash != pulled_entry.hash => Err(self.diverged(remote)),
            _ => Ok(()),
        }
    }

    fn diverged(&self, remote: &Remote) -> Error {
        let why = format!(
            "its log of machine {} does not continue the one that was pulled before",
            self.host
        );
        Error::Diverged { place: remote.place().into(), why }
    }

    async fn copy_segments(&self, remote: &Remote, head: &Head) -> Result<u64, Error> {
        let id = self.dir.join("log.id");
        if !id.exists() {
            replace(&id, encode_log_id(self.host.0).as_ref())?;
        }
        let segments = head.segments();
        let missing = |segment: &Segment| {
            let name = if segment.is_active { "active.log".into() } else { segment.file_name() };
            segment.bytes.saturating_sub(len(&self.dir.join(name)).unwrap_or(0))
        };
        let progress = Progress::bytes("fetching", segments.iter().map(missing).sum());
        let mut bytes = 0;
        for segment in &segments {
            bytes += match segment.is_active {
                true => self.extend_active(remote, head, segment, &progress).await?,
                false => self.complete_sealed(remote, head, segment, &progress).await?,
            };
        }
        self.remove_superseded(&segments)?;
        sync_dir(&self.dir)?;
        Ok(bytes)
    }

    /// The number of the active segment of this copy, if any.
    fn active_number(&self) -> Option<u64> {
        header(&self.dir.join("active.log")).map(|header| header.number)
    }

    /// Completes a sealed segment. The bytes here, if any, are its beginning.
    async fn complete_sealed(
        &self,
        remote: &Remote,
        head: &Head,
        segment: &Segment,
        progress: &Progress,
    ) -> Result<u64, Error> {
        let path = self.dir.join(segment.file_name());
        if len(&path) == Some(segment.bytes) {
            return Ok(0);
        }
        let active = self.dir.join("active.log");
        let is_growing = self
            .active_number()
            .is_some_and(|at| (segment.number..=segment.number_last).contains(&at));
        let begun = match is_growing && segment.generation == 0 {
            true => active.clone(),
            false => path.clone(),
        };
        let (draft, bytes) = self.draft(remote, head, segment, &begun, progress).await?;
        if is_growing {
            // Concurrent readers find the segment under one of the two names, never under both.
            let number = self.active_number().unwrap_or(segment.number);
            rename(&active, &self.dir.join(format!("{number:016x}.g00.seg")))?;
        }
        rename(&draft, &path)?;
        Ok(bytes)
    }

    async fn extend_active(
        &self,
        remote: &Remote,
        head: &Head,
        segment: &Segment,
        progress: &Progress,
    ) -> Result<u64, Error> {
        let path = self.dir.join("active.log");
        match self.active_number() {
            Some(number) if number == segment.number => {
                return self.append(remote, head, segment, &path, progress).await;
            }
            // It was sealed before the first pull, so it already has its final name.
            Some(number) => rename(&path, &self.dir.join(format!("{number:016x}.g00.seg")))?,
            None => {}
        }
        let (draft, bytes) = self.draft(remote, head, segment, Path::new(""), progress).await?;
        rename(&draft, &path)?;
        Ok(bytes)
    }

    /// Writes a segment under a temporary name that readers ignore, starting with the bytes of
    /// `begun`.
    async fn draft(
        &self,
        remote: &Remote,
        head: &Head,
        segment: &Segment,
        begun: &Path,
        progress: &Progress,
    ) -> Result<(PathBuf, u64), Error> {
        let draft = self.dir.join(format!("{}.part", segment.file_name()));
        let failed = |error| Error::io("write", &draft, error);
        let mut options = fs::OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).owner_only().open(&draft);
        let mut file = file.map_err(failed)?;
        let from = match File::open(begun) {
            Ok(mut begun) => io::copy(&mut begun, &mut file).map_err(failed)?,
            Err(_) => 0,
        };
        if from > segment.bytes {
            return Err(self.diverged(remote));
        }
        let mut bytes = 0;
        let read = head.read(remote, segment, from, |_, more| {
            bytes += more.len() as u64;
            progress.advance(more.len() as u64);
            file.write_all(more).map_err(failed)
        });
        read.await?;
        file.sync_data().map_err(failed)?;
        let checked = self.check(remote, segment, &draft, &[]);
        if checked.is_err() {
            let _ = fs::remove_file(&draft);
        }
        checked.map(|()| (draft, bytes))
    }

    /// Appends to the active segment, after verifying all new bytes.
    async fn append(
        &self,
        remote: &Remote,
        head: &Head,
        segment: &Segment,
        path: &Path,
        progress: &Progress,
    ) -> Result<u64, Error> {
        let from = len(path).unwrap_or(0);
        if from > segment.bytes {
            return Err(self.diverged(remote));
        }
        let mut more = Vec::new();
        let read = head.read(remote, segment, from, |_, bytes| {
            more.extend_from_slice(bytes);
            progress.advance(bytes.len() as u64);
            Ok(())
        });
        read.await?;
        self.check(remote, segment, path, &more)?;
        let failed = |error| Error::io("write", path, error);
        let mut file = fs::OpenOptions::new().append(true).open(path).map_err(failed)?;
        file.write_all(&more).and_then(|()| file.sync_data()).map_err(failed)?;
        Ok(more.len() as u64)
    }

    /// Checks that a file and the bytes that follow it match the manifest and belong to this log.
    fn check(
        &self,
        remote: &Remote,
        segment: &Segment,
        path: &Path,
        more: &[u8],
    ) -> Result<(), Error> {
        let failed = |error| Error::io("read", path, error);
        let mut file = File::open(path).map_err(failed)?.take(segment.hash_bytes);
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; 256 << 10];
        let mut rest = segment.hash_bytes as usize;
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => break,
                read => {
                    hasher.update(&buffer[..read]);
                    rest -= read;
                }
            }
        }
        hasher.update(more.get(..rest).unwrap_or(more));
        let is_of_log = header(path)
            .is_some_and(|header| header.log_id == self.host.0 && header.number == segment.number);
        let is_whole = len(path).unwrap_or(0) + more.len() as u64 == segment.bytes;
        match Hash(hasher.finalize().into()) == segment.hash && is_of_log && is_whole {
            true => Ok(()),
            false => Err(self.diverged(remote)),
        }
    }

    /// Deletes segments that a later generation replaced, so events forgotten on the other host are
    /// erased here, too. Segments that the remote no longer lists are kept.
    fn remove_superseded(&self, segments: &[Segment]) -> Result<(), Error> {
        let failed = |error| Error::io("list", &self.dir, error);
        for entry in fs::read_dir(&self.dir).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let Some((numbers, generation)) = parse(name) else { continue };
            let is_superseded = segments.iter().any(|segment| {
                segment.generation > generation
                    && segment.number <= *numbers.start()
                    && segment.number_last >= *numbers.end()
                    && len(&self.dir.join(segment.file_name())) == Some(segment.bytes)
            });
            if is_superseded {
                fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
            }
        }
        Ok(())
    }
}

/// The segment numbers and the generation in a file name.
fn parse(name: &str) -> Option<(std::ops::RangeInclusive<u64>, u32)> {
    let (numbers, generation) = name.strip_suffix(".seg")?.split_once(".g")?;
    let (first, last) = numbers.split_once('-').unwrap_or((numbers, numbers));
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some((number(first)?..=number(last)?, generation.parse().ok()?))
}

async fn exists(remote: &Remote, name: &str) -> Result<bool, Error> {
    match remote.get_packed(name).await {
        Ok(_) => Ok(true),
        Err(Error::Missing { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn header(path: &Path) -> Option<SegmentHeader> {
    let mut bytes = [0; SEGMENT_HEADER_LEN];
    File::open(path).ok()?.read_exact(&mut bytes).ok()?;
    SegmentHeader::decode(&bytes)
}

fn len(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|file| file.len())
}

fn rename(from: &Path, to: &Path) -> Result<(), Error> {
    fs::rename(from, to).map_err(|error| Error::io("rename", from, error))
}

fn sync_dir(dir: &Path) -> Result<(), Error> {
    os::sync_dir(dir).map_err(|error| Error::io("sync", dir, error))
}
