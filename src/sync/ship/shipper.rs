//! Ships the local log to a remote.

use std::path::PathBuf;

use crate::ship::{
    Error,
    backup::BackupLimit,
    comparison::{Comparison, Depth, compare},
    garbage::{collect_all_garbage, collect_garbage},
    key,
    local::{self, LocalSegment, LogSnapshot, blocking},
    local_state::{Lock, State},
    manifest::{Description, Entry, FORMAT, Hash, HostId, Increment, Manifest},
    plan::{Plan, PlannedSegment},
    remote::{Purpose, Put, Remote},
    remote_head::{self, Head},
    upload::Uploader,
};
use claude_mem_core::{
    clock::Clock,
    environment::Environment,
    os,
    paths::Paths,
    progress::Progress,
    settings::{Settings, table},
};

/// Ships one log to one remote, repeatedly. Cheap if nothing was recorded.
#[derive(Debug)]
pub struct Shipper {
    remote: Remote,
    paths: Paths,
    clock: Clock,
    name: String,
    state: PathBuf,
    lock: PathBuf,
    /// Set for the backup, which contains only the newest segments.
    limit: Option<BackupLimit>,
    /// The state of the remote, once loaded.
    head: Option<Head>,
    is_loaded: bool,
    is_collected: bool,
    /// The files of the log when everything was shipped.
    seen: Option<LogSnapshot>,
    /// The packed size of the increments after the newest manifest, if this process uploaded all of
    /// them.
    run_packed_bytes: Option<u64>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shipped {
    pub objects: u64,
    /// Packed bytes uploaded.
    pub put_bytes: u64,
    /// New bytes of log.
    pub log_bytes: u64,
    pub deleted: u64,
    /// Deletions that failed, with the reason.
    pub undeleted: Option<String>,
    /// The remote held nothing although we had uploaded to it, so the whole log was uploaded again.
    pub is_refilled: bool,
}

/// The message for [`Shipped::is_refilled`].
pub const REFILLED: &str = "\
    the backup location was empty although this machine had uploaded to it; the whole log was \
    uploaded again";

/// Attempts per run, if the log or the remote changes meanwhile.
const ATTEMPTS_MAX: usize = 5;

enum Attempt {
    Done,
    /// The log or the remote changed meanwhile.
    Again,
}

impl Shipper {
    /// Opens the remote. Sends no request.
    pub fn open(
        place: &str,
        paths: &Paths,
        settings: &Settings,
        environment: &Environment,
        clock: Clock,
    ) -> Result<Self, Error> {
        let remote = Remote::open(place, Purpose::Ship, paths, settings, environment)?;
        let name = match settings.get(&table::SHIP_NAME) {
            name if name.is_empty() => os::host_name(),
            name => name,
        };
        let shipper = Self {
            // The remote is compared with the local log before the first upload.
            remote: remote.allowing_plain(),
            paths: paths.clone(),
            clock,
            name,
            state: paths.ship_state(),
            lock: paths.ship_lock(),
            limit: None,
            head: None,
            is_loaded: false,
            is_collected: false,
            seen: None,
            run_packed_bytes: None,
        };
        Ok(match BackupLimit::of(place, paths, settings) {
            Some(limit) => shipper.limited(limit),
            None => shipper,
        })
    }

    pub(super) fn limited(self, limit: BackupLimit) -> Self {
        Self { state: limit.state.clone(), lock: limit.lock.clone(), limit: Some(limit), ..self }
    }

    /// The state of the remote, if it is loaded.
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Ships everything recorded before this call. Can be interrupted and resumed at any point.
    pub async fn ship(&mut self) -> Result<Shipped, Error> {
        self.run(false).await
    }

    /// Uploads everything and verifies existing objects, for a remote that is damaged or has
    /// diverged. Keeps only the segments that were deleted here on purpose.
    pub async fn reship(&mut self) -> Result<Shipped, Error> {
        self.seen = None;
        self.run(true).await
    }

    async fn run(&mut self, is_repair: bool) -> Result<Shipped, Error> {
        let mut shipped = Shipped::default();
        if self.limit.is_some() && self.seen.as_ref() == Some(&LogSnapshot::at(&self.paths.log())) {
            // An idle backup writes nothing and keeps no state in memory.
            self.forget_head();
            return Ok(shipped);
        }
        let result = self.turn(&mut shipped, is_repair).await;
        State::update(
            &self.state,
            self.remote.place(),
            self.now_us(),
            result.as_ref().map(|()| self.head.as_ref()),
        );
        if shipped.objects > 0 {
            tracing::debug!(objects = shipped.objects, bytes = shipped.put_bytes, "uploaded");
        }
        result.map(|()| shipped)
    }

    async fn turn(&mut self, shipped: &mut Shipped, is_repair: bool) -> Result<(), Error> {
        let dir = self.paths.log();
        let snapshot = LogSnapshot::at(&dir);
        if self.seen.as_ref() == Some(&snapshot) {
            return Ok(());
        }
        let Some(host) = local::host(&dir)? else { return Ok(()) };
        let _lock = Lock::take(&self.lock).await?;
        for _ in 0..ATTEMPTS_MAX {
            let attempt = self.attempt(host, shipped, is_repair).await;
            match attempt {
                Ok(Attempt::Done) => {
                    self.seen = Some(snapshot);
                    return Ok(());
                }
                Ok(Attempt::Again) => self.forget_head(),
                // A segment was compacted meanwhile.
                Err(Error::Io { action: "read", source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    self.forget_head();
                    return Err(error);
                }
            }
        }
        Err(Error::Unreachable {
            place: self.remote.place().into(),
            why: "it changes during every attempt; does another machine ship the same log?".into(),
        })
    }

    fn forget_head(&mut self) {
        self.head = None;
        self.is_loaded = false;
        self.run_packed_bytes = None;
    }

    async fn attempt(
        &mut self,
        host: HostId,
        shipped: &mut Shipped,
        is_repair: bool,
    ) -> Result<Attempt, Error> {
        let dir = self.paths.log();
        blocking(move || local::merge_and_flush(&dir)).await?;
        let mut number_free = 1;
        if !self.is_loaded {
            number_free = self.load(host, is_repair, shipped).await?;
            self.describe(host, shipped).await?;
        }
        let here = self.segments_here(host).await?;
        if let Some(limit) = &self.limit {
            limit.free_space(host, here.iter().map(|here| here.bytes).sum())?;
        }
        let depth = if self.is_loaded { Depth::Lengths } else { Depth::Unsealed };
        if !is_repair {
            self.compare(&here, depth)?;
        }
        self.is_loaded = true;
        let keeps_older = self.limit.is_none();
        let plan = Plan::new(&here, self.head.as_ref(), self.remote.key(), is_repair, keeps_older);
        let attempt = match plan {
            Plan::Nothing => Attempt::Done,
            Plan::Increment { segment, from } => self.increment(&segment, from, shipped).await?,
            Plan::Manifest(planned) => {
                self.manifest(host, planned, number_free, is_repair, shipped).await?
            }
        };
        if let (Attempt::Done, false, Some(head)) = (&attempt, self.is_collected, &self.head) {
            self.is_collected = collect_all_garbage(&self.remote, head, shipped).await;
        }
        Ok(attempt)
    }

    /// What the next [`ship`](Self::ship) would upload, or the error that it would return. Writes
    /// nothing.
    pub async fn check(&mut self) -> Result<Comparison, Error> {
        let Some(host) = local::host(&self.paths.log())? else { return Ok(Comparison::default()) };
        self.forget_head();
        self.load(host, false, &mut Shipped::default()).await?;
        let here = self.segments_here(host).await?;
        self.compare(&here, Depth::Unsealed)
    }

    async fn segments_here(&self, host: HostId) -> Result<Vec<LocalSegment>, Error> {
        let known = self.head.as_ref().and_then(|head| head.segments().pop());
        let known = known.map_or((0, 0), |segment| (segment.number, segment.bytes));
        let dir = self.paths.log();
        let here = blocking(move || local::segments(&dir, host, known)).await?;
        Ok(match &self.limit {
            Some(limit) => limit.newest(here),
            None => here,
        })
    }

    /// Fails if the remote is not a copy of the log here.
    fn compare(&self, here: &[LocalSegment], depth: Depth) -> Result<Comparison, Error> {
        let Some(head) = &self.head else {
            let behind_bytes = here.iter().map(|here| here.bytes).sum();
            return Ok(Comparison { behind_bytes, ..Comparison::default() });
        };
        let mut compared = compare(head, here, depth)?;
        match compared.differences.pop() {
            None => Ok(compared),
            Some(why) => Err(Error::Diverged { place: self.remote.place().into(), why }),
        }
    }

    /// Reads the newest entry of the remote. Returns the number of the next one.
    async fn load(
        &mut self,
        host: HostId,
        is_repair: bool,
        shipped: &mut Shipped,
    ) -> Result<u64, Error> {
        let known = State::read(&self.state)
            .filter(|state| state.place == self.remote.place() && state.host == host.to_string());
        let number_known = known.map_or(0, |state| state.number);
        let newest = remote_head::newest(&self.remote, host, 0).await;
        let newest = match newest {
            Ok(Some(head)) if head.number < number_known && !is_repair => {
                self.later(head.number, host, number_known).await.map(Some)
            }
            // Only the entries are missing, so it was not emptied on purpose.
            Ok(None) if number_known > 0 && !is_repair => {
                match remote_head::describe(&self.remote, host).await? {
                    Some(_) => self.later(0, host, number_known).await.map(Some),
                    None => Ok(None),
                }
            }
            newest => newest,
        };
        self.head = match newest {
            // An emptied remote is filled again: the log is complete here, and the user configured
            // a backup.
            Ok(None) => {
                shipped.is_refilled = number_known > 0;
                None
            }
            Ok(Some(head)) => Some(head),
            Err(error) if is_repair && !error.is_transient() => None,
            Err(error) => return Err(error),
        };
        let listed = remote_head::entries(&self.remote, host).await?.last().copied().unwrap_or(0);
        Ok(self.head.as_ref().map_or(0, |head| head.number).max(number_known).max(listed) + 1)
    }

    /// Handles a listing that ends before the last shipped entry. The listing may be outdated; if
    /// the entry itself is missing, it was deleted.
    async fn later(&self, found: u64, host: HostId, shipped: u64) -> Result<Head, Error> {
        match remote_head::load(&self.remote, host, shipped).await {
            Err(Error::Missing { .. }) => {
                Err(Error::RolledBack { place: self.remote.place().into(), found, shipped })
            }
            loaded => loaded,
        }
    }

    /// Uploads the description of this host, if it is missing or outdated.
    async fn describe(&self, host: HostId, shipped: &mut Shipped) -> Result<(), Error> {
        let ours =
            Description { name: self.name.clone(), version: env!("CARGO_PKG_VERSION").into() };
        let is_described = remote_head::describe(&self.remote, host)
            .await
            .is_ok_and(|there| there == Some(ours.clone()));
        let is_key_changed =
            self.head.as_ref().is_some_and(|head| head.manifest.key != self.key_shown());
        if !is_described || is_key_changed {
            let text = serde_json::to_vec(&ours).expect("a description is plain data");
            shipped.put_bytes += self.remote.put_over(&host.description(), &text).await?;
            shipped.objects += 1;
        }
        Ok(())
    }

    fn key_shown(&self) -> Option<String> {
        self.remote.key().map(|key| key::show(key.fingerprint()))
    }

    /// Uploads the bytes appended to the last segment, as the next entry.
    async fn increment(
        &mut self,
        segment: &LocalSegment,
        from: u64,
        shipped: &mut Shipped,
    ) -> Result<Attempt, Error> {
        let head = self.head.as_ref().expect("an increment extends a known head");
        let increment = Increment {
            number: head.number + 1,
            manifest: head.manifest.number,
            previous: head.hash,
            time_us: self.now_us(),
            segment: segment.number,
            from,
            bytes: segment.read(from, segment.bytes)?,
        };
        let entry = Entry::Increment(increment);
        let bytes = entry.encode();
        let host = head.host;
        let Put::Written(put) = self.remote.put_new(&host.entry(head.number + 1), &bytes).await?
        else {
            return Ok(Attempt::Again);
        };
        let (Some(head), Entry::Increment(increment)) = (&mut self.head, entry) else {
            unreachable!("an increment extends a known head");
        };
        shipped.objects += 1;
        shipped.put_bytes += put;
        shipped.log_bytes += increment.bytes.len() as u64;
        self.run_packed_bytes = match (head.increments.len(), self.run_packed_bytes) {
            (0, _) => Some(put),
            (_, before) => before.map(|before| before + put),
        };
        head.number = increment.number;
        head.hash = Hash::of(&bytes);
        head.time_us = increment.time_us;
        head.increments.push(increment);
        Ok(Attempt::Done)
    }

    /// Uploads missing parts, then a manifest that references all parts, then deletes unreferenced
    /// objects.
    async fn manifest(
        &mut self,
        host: HostId,
        planned: Vec<PlannedSegment>,
        number_free: u64,
        is_repair: bool,
        shipped: &mut Shipped,
    ) -> Result<Attempt, Error> {
        let newest = self.head.as_ref().map(|head| (head.manifest.number, self.run_packed_bytes));
        let mut segments = Vec::new();
        let missing = |planned: &PlannedSegment| match planned {
            PlannedSegment::Same(_) => 0,
            PlannedSegment::New { here, there } => {
                let there = there.as_ref().filter(|_| !is_repair);
                here.bytes - there.map_or(0, |there| there.bytes.min(here.bytes))
            }
        };
        let progress = &Progress::bytes("uploading", planned.iter().map(missing).sum());
        for planned in planned {
            segments.push(match planned {
                PlannedSegment::Same(segment) => segment,
                PlannedSegment::New { here, there } => {
                    let there = there.filter(|_| !is_repair);
                    let is_local = self.limit.is_some();
                    let put = Uploader { remote: &self.remote, host, newest, is_local, progress };
                    put.segment(&here, there.as_ref(), shipped).await?
                }
            });
        }
        let (number, previous) = match &self.head {
            Some(head) if !is_repair => (head.number + 1, Some(head.hash)),
            Some(head) => (number_free.max(head.number + 1), Some(head.hash)),
            None => (number_free, None),
        };
        let manifest = Manifest {
            format: FORMAT,
            log: host,
            number,
            previous,
            time_us: self.now_us(),
            key: self.key_shown(),
            segments,
        };
        let bytes = Entry::Manifest(manifest.clone()).encode();
        let Put::Written(put) = self.remote.put_new(&host.entry(number), &bytes).await? else {
            return Ok(Attempt::Again);
        };
        shipped.objects += 1;
        shipped.put_bytes += put;
        let (hash, time_us) = (Hash::of(&bytes), manifest.time_us);
        let head = Head { host, number, hash, time_us, manifest, increments: Vec::new() };
        let before = self.head.replace(head);
        self.run_packed_bytes = None;
        if let Some(head) = &self.head {
            collect_garbage(&self.remote, head, before.as_ref(), shipped).await;
        }
        Ok(Attempt::Done)
    }

    fn now_us(&self) -> u64 {
        self.clock.now().as_microsecond().cast_unsigned()
    }
}
