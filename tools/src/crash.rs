//! The storm: processes that append, roll, seal, compact and tail a log are killed repeatedly at
//! random moments. At the end every acknowledged record must be there exactly once, undamaged.

use claude_mem_log::{
    Appender, Compactor, Id, Item, KeepAll, Log, Options, Packing, Record, SegmentState, Seq,
    disk::Disk as _, disk::RealDisk, maintain,
};
use std::{
    collections::{BTreeMap, HashSet},
    error::Error,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::random::Random;

/// Options of a storm.
#[derive(Debug, Clone)]
pub struct Storm {
    /// The program that runs the processes: this one. It is called with the arguments of each role.
    pub program: PathBuf,
    /// An empty directory.
    pub dir: PathBuf,
    /// Number of processes to kill.
    pub kills: u64,
    /// Number of processes that append at the same time.
    pub writers: usize,
    /// Seed of the random times.
    pub seed: u64,
}

/// The role of a process, until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Role {
    /// Appends, and notes the acknowledged records.
    Write,
    /// Seals, merges and syncs.
    Maintain,
    /// Compacts complete segments, singly and in pairs.
    Compact,
    /// Reads from the beginning and follows, and notes the records it receives.
    Tail,
}

/// The result.
#[derive(Debug, Default)]
pub struct CrashOutcome {
    /// Processes killed.
    pub kills: u64,
    /// Acknowledged records.
    pub acknowledged: usize,
    /// Records in the log.
    pub records: usize,
    /// Bytes in the log.
    pub bytes: u64,
    /// Segments of the log.
    pub segments: usize,
    /// Acknowledged records that are missing.
    pub lost: usize,
    /// Duplicate records.
    pub repeated: usize,
    /// Records with wrong content.
    pub wrong: usize,
    /// Records in the log that the last tail did not receive, or received twice.
    pub untailed: usize,
    /// Number of places without a record, by reason.
    pub gaps: BTreeMap<&'static str, u64>,
}

impl CrashOutcome {
    /// Whether the log kept its guarantees.
    pub fn is_good(&self) -> bool {
        self.lost + self.repeated + self.wrong + self.untailed == 0
    }
}

/// Small segments, so that they are rolled all the time.
fn options() -> Options {
    Options { segment_bytes_max: 512 << 10, reserve_bytes: 0, ..Options::default() }
}

/// Runs the storm.
pub fn storm(storm: &Storm) -> Result<CrashOutcome, Box<dyn Error>> {
    let mut random = Random::new(storm.seed);
    let roles: Vec<Role> = std::iter::repeat_n(Role::Write, storm.writers)
        .chain([Role::Maintain, Role::Compact, Role::Tail])
        .collect();
    fs::create_dir_all(storm.dir.join("notes"))?;
    let mut started = 0;
    let mut children = Vec::new();
    for role in &roles {
        children.push(Process(start(storm, *role, started)?));
        started += 1;
    }
    for _ in 0..storm.kills {
        thread::sleep(Duration::from_micros(random.bits() % 12_000));
        let index = (random.bits() >> 8) as usize % children.len();
        children[index].end()?;
        children[index] = Process(start(storm, roles[index], started)?);
        started += 1;
    }
    for (child, role) in children.iter_mut().zip(&roles) {
        if *role != Role::Tail {
            child.end()?;
        }
    }
    let log = storm.dir.join("log");
    maintain(&log, &options())?;
    // With this flag, the last tail stops at the end of the log.
    fs::write(storm.dir.join("stop"), [])?;
    children.last_mut().ok_or("no processes")?.0.wait()?;
    examine(storm, &log, started)
}

/// Killed when dropped, so that no process outlives a failed storm.
struct Process(Child);

impl Process {
    fn end(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(|_| ())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

fn start(storm: &Storm, role: Role, number: u64) -> std::io::Result<Child> {
    let role = match role {
        Role::Write => "write",
        Role::Maintain => "maintain",
        Role::Compact => "compact",
        Role::Tail => "tail",
    };
    Command::new(&storm.program)
        .args(["crash", "--role", role, "--number", &number.to_string(), "--dir"])
        .arg(&storm.dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
}

/// Runs the role of one process. Returns only for the last tail; the others are killed.
pub fn play(role: Role, dir: &Path, number: u64) -> Result<(), Box<dyn Error>> {
    let notes = dir.join("notes").join(format!("{number}.{role:?}"));
    let mut notes = fs::OpenOptions::new().append(true).create_new(true).open(notes)?;
    let log = dir.join("log");
    match role {
        Role::Write => write(&log, number, &mut notes),
        Role::Tail => tail(dir, &log, &mut notes),
        Role::Maintain => loop {
            maintain(&log, &options())?;
            Appender::open(&log, options())?.sync()?;
            thread::sleep(Duration::from_millis(2));
        },
        Role::Compact => loop {
            compact(&log)?;
            thread::sleep(Duration::from_millis(2));
        },
    }
}

/// Rewrites each complete segment a few times, so that compacted ones are compacted again.
fn compact(log: &Path) -> Result<(), Box<dyn Error>> {
    const GENERATIONS_MAX: u32 = 3;
    let Some(compactor) = Compactor::begin(log, &options(), Packing::default())? else {
        return Ok(());
    };
    let mut segments = Log::open(log, options())?.segments()?;
    segments.retain(|info| info.state == SegmentState::Sealed && info.generation < GENERATIONS_MAX);
    for pair in segments.chunks(2) {
        let follows = pair.windows(2).all(|pair| pair[0].number_last + 1 == pair[1].number);
        let is_merged = follows && pair[0].number.is_multiple_of(2);
        let groups: Vec<_> = if is_merged { vec![pair] } else { pair.chunks(1).collect() };
        for group in groups {
            compactor.rewrite(group, &mut KeepAll)?;
        }
    }
    Ok(())
}

fn write(log: &Path, number: u64, notes: &mut fs::File) -> Result<(), Box<dyn Error>> {
    let mut appender = Appender::open(log, options())?;
    let mut random = Random::new(number << 1);
    loop {
        // The id also determines the content. An id does not hold its lowest bits.
        let seed = random.bits() << 2;
        let id = Id::new(RealDisk.now_us(), seed);
        let payload = payload(id);
        appender.append(&Record { id, kind: 1, schema: 1, codec: 0, payload: &payload })?;
        // From here on it must never be lost. A note is one small write, so it is complete or
        // missing.
        notes.write_all(id.as_bytes())?;
        if random.bits() >> 58 == 0 {
            appender.sync()?;
        }
        thread::sleep(Duration::from_micros(500));
    }
}

fn tail(dir: &Path, log: &Path, notes: &mut fs::File) -> Result<(), Box<dyn Error>> {
    let mut tail = Log::open(log, options())?.tail(Seq::START);
    loop {
        let is_last = dir.join("stop").exists();
        let mut ids = Vec::new();
        while let Some(item) = tail.next()? {
            if let Item::Record(entry) = item {
                ids.extend_from_slice(entry.id.as_bytes());
            }
        }
        notes.write_all(&ids)?;
        if is_last {
            return Ok(());
        }
        tail.wait(Duration::from_millis(1));
    }
}

/// Mostly small, up to 64 KB, occasionally 2 MB: long enough to be killed while writing.
fn payload(id: Id) -> Vec<u8> {
    let (_, rear) = id.as_bytes().split_last_chunk::<8>().expect("an id has sixteen bytes");
    let mut random = Random::new(u64::from_le_bytes(*rear));
    let len = match random.bits() % 2000 {
        0 => 2 << 20,
        1..100 => random.bits() % (64 << 10),
        100..500 => random.bits() % 4096,
        _ => random.bits() % 400,
    };
    let mut bytes = Vec::with_capacity(len as usize + 8);
    while bytes.len() < len as usize {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(len as usize);
    bytes
}

fn examine(storm: &Storm, log: &Path, started: u64) -> Result<CrashOutcome, Box<dyn Error>> {
    let mut outcome = CrashOutcome { kills: storm.kills, ..CrashOutcome::default() };
    let mut records = HashSet::new();
    let log = Log::open(log, options())?;
    let mut reader = log.read_from_start();
    while let Some(item) = reader.next()? {
        match item {
            Item::Record(entry) => {
                outcome.repeated += usize::from(!records.insert(entry.id));
                outcome.wrong += usize::from(entry.payload != payload(entry.id));
            }
            Item::Gap(gap) => *outcome.gaps.entry(gap.reason.describe()).or_default() += 1,
        }
    }
    let segments = log.segments()?;
    outcome.segments = segments.len();
    outcome.bytes = segments.iter().map(|segment| segment.bytes).sum();
    outcome.records = records.len();
    let mut tailed = Vec::new();
    for number in 0..started {
        let note = |role: Role| storm.dir.join("notes").join(format!("{number}.{role:?}"));
        if let Ok(bytes) = fs::read(note(Role::Write)) {
            let ids = ids(&bytes);
            outcome.acknowledged += ids.len();
            outcome.lost += ids.iter().filter(|id| !records.contains(id)).count();
        }
        if let Ok(bytes) = fs::read(note(Role::Tail)) {
            tailed = ids(&bytes);
        }
    }
    let distinct: HashSet<Id> = tailed.iter().copied().collect();
    outcome.untailed = tailed.len() - distinct.len() + records.difference(&distinct).count();
    Ok(outcome)
}

fn ids(bytes: &[u8]) -> Vec<Id> {
    let (ids, _) = bytes.as_chunks::<16>();
    ids.iter().map(|id| Id::from_bytes(*id)).collect()
}
