//! Tests of shipping and restoring with directories and a bucket.

mod backup_limit;
mod corrupt;
mod encrypted;
mod google;
mod interrupted;
mod programs;
mod roundtrip;

use std::{
    collections::BTreeMap,
    fs,
    future::Future,
    path::{Path, PathBuf},
};

use claude_mem_log::{
    Appender, Compactor, Id, Item, KeepAll, Log, Options, Packing, Record, SegmentInfo,
};
use claude_mem_tools::bucket::Bucket;

use super::{
    Error, Shipped, Shipper, comparison, local,
    manifest::HostId,
    remote::{Purpose, Remote},
    remote_head::{self, Head},
    restore::{RestoreEnd, RestoreRequest, Restored, restore},
};
use claude_mem_core::{clock::Clock, environment::Environment, paths::Paths, settings::Settings};

/// A host with a log, and its remote.
pub(super) struct Machine {
    outer: tempfile::TempDir,
    paths: Paths,
    environment: Environment,
    place: String,
    next: u64,
}

/// Small segments, so that there are many.
const SEGMENT_BYTES: u64 = 700;

impl Machine {
    pub(super) fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        let place = outer.path().join("remote").to_string_lossy().into_owned();
        Self::with(outer, place, &[])
    }

    /// Ships to a directory in memory, if the system has such a place: most of the time of many
    /// small uploads is waiting for a disk.
    pub(super) fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        let outer =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let outer = outer.unwrap();
        let place = outer.path().join("remote").to_string_lossy().into_owned();
        Self::with(outer, place, &[])
    }

    pub(super) fn with_bucket(bucket: &Bucket) -> Self {
        let variables = bucket.variables();
        let mut variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        variables.extend([("AWS_READ_TIMEOUT", "1s"), ("GOOGLE_READ_TIMEOUT", "1s")]);
        Self::with(tempfile::tempdir().unwrap(), bucket.place("some/prefix"), &variables)
    }

    fn with(outer: tempfile::TempDir, place: String, variables: &[(&str, &str)]) -> Self {
        let paths = Paths { home: None, data: outer.path().join("data") };
        paths.create_data().unwrap();
        Self { outer, paths, environment: Environment::fixed(variables), place, next: 1 }
    }

    pub(super) fn log(&self) -> PathBuf {
        self.paths.log()
    }

    pub(super) fn place(&self) -> &Path {
        Path::new(&self.place)
    }

    fn options() -> Options {
        Options { segment_bytes_max: SEGMENT_BYTES, reserve_bytes: 0, ..Options::default() }
    }

    /// Records events with different texts.
    pub(super) fn record(&mut self, count: u64) {
        let mut appender = Appender::open(&self.log(), Self::options()).unwrap();
        for _ in 0..count {
            self.append(&mut appender, 1);
        }
    }

    /// Records an event whose text is repeated `times` times.
    fn append(&mut self, appender: &mut Appender, times: usize) {
        let payload = text(self.next).repeat(times);
        let record = Record {
            id: Id::new(self.next * 1_000_000, self.next),
            kind: 7,
            schema: 1,
            codec: 0,
            payload: payload.as_bytes(),
        };
        appender.append(&record).unwrap();
        self.next += 1;
    }

    /// Records events into one segment and ships after each. Returns the uploaded bytes.
    pub(super) fn record_and_ship_each(&mut self, count: u64, times: usize) -> u64 {
        let options = Options { reserve_bytes: 0, ..Options::default() };
        let mut appender = Appender::open(&self.log(), options).unwrap();
        let mut shipper = self.shipper();
        let mut put_bytes = 0;
        wait(async {
            for _ in 0..count {
                self.append(&mut appender, times);
                put_bytes += shipper.ship().await.unwrap().put_bytes;
            }
        });
        put_bytes
    }

    /// Compacts all sealed segments into one, and returns them.
    pub(super) fn compact(&self) -> Vec<SegmentInfo> {
        let log = Log::open(&self.log(), Options::default()).unwrap();
        let mut sealed = log.segments().unwrap();
        sealed.retain(|segment| segment.seal.is_some());
        let compactor = Compactor::begin(&self.log(), &Options::default(), Packing::default());
        compactor.unwrap().unwrap().rewrite(&sealed, &mut KeepAll).unwrap().unwrap();
        sealed
    }

    fn settings(&self) -> Settings {
        Settings::load(&self.paths, &self.environment)
    }

    pub(super) fn shipper(&self) -> Shipper {
        let clock = Clock::new(&self.environment);
        Shipper::open(&self.place, &self.paths, &self.settings(), &self.environment, clock).unwrap()
    }

    /// Ships like a new process.
    pub(super) fn ship(&self) -> Result<Shipped, Error> {
        wait(self.shipper().ship())
    }

    pub(super) fn remote(&self) -> Remote {
        let settings = self.settings();
        Remote::open(&self.place, Purpose::Read, &self.paths, &settings, &self.environment).unwrap()
    }

    pub(super) fn host(&self) -> HostId {
        local::host(&self.log()).unwrap().unwrap()
    }

    pub(super) fn head(&self) -> Head {
        wait(remote_head::newest(&self.remote(), self.host(), 0)).unwrap().unwrap()
    }

    /// Restores into a directory of this name.
    pub(super) fn restore(
        &self,
        name: &str,
        until: Option<RestoreEnd>,
        is_salvage: bool,
    ) -> Result<Restored, Error> {
        let data = self.outer.path().join(name);
        let host = self.host();
        let request = RestoreRequest { data: &data, host, until, is_salvage };
        wait(restore(&self.remote(), request, |_, _| ()))
    }

    pub(super) fn restored(&self, name: &str) -> PathBuf {
        self.outer.path().join(name).join("log")
    }

    /// Restores, checks that all files of the log are equal, and deletes the copy.
    pub(super) fn check(&self) {
        self.restore("again", None, false).unwrap();
        assert_eq!(files(&self.restored("again")), files(&self.log()));
        fs::remove_dir_all(self.outer.path().join("again")).unwrap();
    }

    /// All objects in the directory, by name.
    pub(super) fn objects(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        walk(self.place(), &mut all);
        all
    }
}

fn text(number: u64) -> String {
    format!("event number {number}, {}", "and words to make it longer ".repeat(3))
}

fn walk(dir: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => walk(&path, all),
            path => {
                all.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
}

/// The segments of a log, by name.
pub(super) fn files(log: &Path) -> BTreeMap<String, Vec<u8>> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    let entries = fs::read_dir(log).unwrap().flatten().map(|entry| entry.path());
    let is_segment = |path: &PathBuf| name(path).ends_with(".seg") || name(path) == "active.log";
    entries.filter(is_segment).map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// The numbers of the events in a log, and whether any record is damaged.
pub(super) fn numbers(log: &Path) -> (Vec<u64>, bool) {
    let (mut numbers, mut is_damaged) = (Vec::new(), false);
    let mut reader = Log::open(log, Options::default()).unwrap().read_from_start();
    while let Some(item) = reader.next().unwrap() {
        match item {
            Item::Record(entry) => numbers.push(entry.id.time_us() / 1_000_000),
            Item::Gap(_) => is_damaged = true,
        }
    }
    (numbers, is_damaged)
}

pub(super) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}
