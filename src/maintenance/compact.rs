//! Compaction: removes data that is no longer needed from the log and from all files next to it.
//!
//! First a point is recorded in the log, so that only events before it determine what is removed.
//! Then the tables are brought up to date, segments are rewritten one by one, and the database is
//! vacuumed. A crash at any time loses nothing; the next run continues.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use claude_mem_events::{Envelope, EventLog, Id, LogCompacted, Seq};
use claude_mem_log::{
    CompactionPolicy, Compactor, Item, Log, Options as LogOptions, Packing, RecordAction,
    Rewritten, SegmentInfo, SegmentState, maintain, roll,
};
use claude_mem_projections::{Eraser, FoldState, Store, Vacuumed};

use claude_mem_core::{app::App, failure::Failure, os, settings::table::SKIP_TOOLS};
use claude_mem_memory::{semantic::erase_hidden, store};

#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Report only.
    pub is_dry_run: bool,
    /// Only erase forgotten records; do not recompress or merge.
    pub is_only_forgotten: bool,
    /// Keep responses that a later generation superseded.
    pub keeps_superseded: bool,
    /// Keep only digests of tool inputs and outputs before this time, once they are distilled.
    pub raw_before_us: Option<u64>,
}

/// Result of a compaction.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Bytes of the log before and after.
    pub log_bytes: (u64, u64),
    /// Files of the log before and after.
    pub files: (usize, usize),
    pub erased: u64,
    /// Bytes of torn writes, and of damage that may contain forgotten content.
    pub dropped_bytes: u64,
    /// Damaged segments that were not rewritten.
    pub left: Vec<u64>,
    /// Whether one of them contains forgotten content.
    pub is_forgotten_left: bool,
    pub memory: Vacuumed,
    /// Bytes of old databases, quarantine and diagnostics that were deleted.
    pub purged_bytes: u64,
}

/// Segments are merged up to this size.
const SEGMENT_BYTES: u64 = 32 << 20;
/// Rewriting is mostly compression: two threads use two cores, a third one works while another
/// waits for the disk. More would disturb the user.
const THREADS_MAX: usize = 3;
/// Attempts to roll the active segment while others keep appending.
const ROLLS_MAX: u32 = 40;
const ROLL_PAUSE: Duration = Duration::from_millis(50);

/// Compacts the log and the database. `progress` gets the bytes done and the total.
pub fn run(
    app: &mut App,
    options: &Options,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Outcome, Failure> {
    let dir = app.paths.log();
    let mut store = store::open(app)?;
    let Some(compactor) = begin(app)? else { return Ok(Outcome::default()) };
    maintain(&dir, &LogOptions::default())?;
    let log = Log::open(&dir, LogOptions::default())?;
    catch_up(&mut store, &log)?;
    let point = point(app, options);
    if options.is_dry_run {
        let look = |store: &Store| Ok(measure(&compactor, store, &log, options));
        return store.try_compaction(&point, look)?;
    }
    record(app, point)?;
    catch_up(&mut store, &log)?;
    // Another machine may have forgotten something; the process that pulled its log deleted the
    // rows.
    erase_hidden(app, &store)?;
    let all = store.eraser()?;
    make_complete(&dir, &store, &all, &log)?;
    let mut outcome = Outcome::default();
    count(&log, |bytes, files| (outcome.log_bytes.0, outcome.files.0) = (bytes, files))?;
    let jobs = jobs(&store, &all, &log, options)?;
    rewrite(&compactor, jobs, &mut outcome, &progress)?;
    count(&log, |bytes, files| (outcome.log_bytes.1, outcome.files.1) = (bytes, files))?;
    if !all.forgotten().is_empty() {
        outcome.purged_bytes = crate::purge::purge_forgotten(app, &store, &all)?;
    }
    outcome.memory = store.vacuum()?;
    crate::repair::refresh_backup(app)?;
    Ok(outcome)
}

/// Takes the compaction lock; `None` if there is no log yet.
pub(crate) fn begin(app: &App) -> Result<Option<Compactor>, Failure> {
    let dir = app.paths.log();
    if Log::open(&dir, LogOptions::default())?.id().is_none() {
        return Ok(None);
    }
    match Compactor::begin(&dir, &LogOptions::default(), Packing::default())? {
        Some(compactor) => Ok(Some(compactor)),
        None => Err(Failure::new("the log is being compacted already")
            .meaning("nothing was changed")
            .remedy("wait for that process to end, then try again")),
    }
}

/// The rows determine what is removed, so they must be complete.
pub(crate) fn catch_up(store: &mut Store, log: &Log) -> Result<(), Failure> {
    match store::fold(store, log)?.state {
        FoldState::Complete => Ok(()),
        _ => Err(Failure::new("the database could not be updated from the log")
            .meaning("nothing was removed")
            .remedy("see what is wrong with `claude-mem doctor`")),
    }
}

fn point(app: &App, options: &Options) -> LogCompacted {
    LogCompacted {
        drops_superseded: !options.keeps_superseded,
        tools: app.settings.get(&SKIP_TOOLS),
        raw_before_us: options.raw_before_us,
    }
}

/// It belongs to no project and to no session.
fn record(app: &App, point: LogCompacted) -> Result<(), Failure> {
    let envelope = Envelope { host: os::host_name(), ..Envelope::default() };
    let id = Id::random(app.clock.now().as_microsecond().cast_unsigned());
    let mut log = EventLog::open(&app.paths.log(), LogOptions::default())?;
    log.record(id, &envelope, &point.into())?;
    Ok(log.sync()?)
}

/// Rolls and seals the active segment if something in it is to be erased.
fn make_complete(
    dir: &std::path::Path,
    store: &Store,
    all: &Eraser,
    log: &Log,
) -> Result<(), Failure> {
    let sealed = sealed(log)?;
    let first = sealed.last().map_or(1, |info| info.number_last + 1);
    if !has_work(log, &mut store.eraser_of(all, Seq::new(first, 0), Seq::from_raw(1 << 55))?)? {
        return Ok(());
    }
    for _ in 0..ROLLS_MAX {
        if roll(dir, &LogOptions::default())? {
            break;
        }
        thread::sleep(ROLL_PAUSE);
    }
    maintain(dir, &LogOptions::default())?;
    Ok(())
}

pub(crate) fn sealed(log: &Log) -> Result<Vec<SegmentInfo>, Failure> {
    let mut segments = log.segments()?;
    segments.retain(|info| info.state == SegmentState::Sealed);
    Ok(segments)
}

fn count(log: &Log, take: impl FnOnce(u64, usize)) -> Result<(), Failure> {
    let segments = log.segments()?;
    take(segments.iter().map(|info| info.bytes).sum(), segments.len());
    Ok(())
}

/// Segments that are merged into one, and the eraser for their records.
struct Job {
    segments: Vec<SegmentInfo>,
    eraser: Eraser,
}

impl Job {
    fn bytes(&self) -> u64 {
        self.segments.iter().map(|info| info.bytes).sum()
    }
}

/// Segments to rewrite: those with something to erase and, unless only that is requested, small
/// ones and those never compacted.
fn jobs(store: &Store, all: &Eraser, log: &Log, options: &Options) -> Result<Vec<Job>, Failure> {
    let mut jobs = Vec::new();
    for segments in groups(sealed(log)?, options.is_only_forgotten) {
        let from = Seq::new(segments[0].number, 0);
        let to = Seq::new(segments[segments.len() - 1].number_last + 1, 0);
        let mut eraser = store.eraser_of(all, from, to)?;
        let is_due = !options.is_only_forgotten
            && (segments.len() > 1 || segments.iter().any(|info| info.generation == 0));
        if is_due || has_work(log, &mut eraser)? {
            jobs.push(Job { segments, eraser });
        }
    }
    Ok(jobs)
}

/// Groups adjacent segments that fit into one file.
fn groups(segments: Vec<SegmentInfo>, is_each_alone: bool) -> Vec<Vec<SegmentInfo>> {
    let mut groups: Vec<Vec<SegmentInfo>> = Vec::new();
    for info in segments {
        match groups.last_mut() {
            Some(group)
                if !is_each_alone
                    && group.last().is_some_and(|last| last.number_last + 1 == info.number)
                    && group.iter().map(|info| info.bytes).sum::<u64>() + info.bytes
                        <= SEGMENT_BYTES =>
            {
                group.push(info);
            }
            _ => groups.push(vec![info]),
        }
    }
    groups
}

/// Whether anything is left to erase. An earlier compaction may have done it.
fn has_work(log: &Log, eraser: &mut Eraser) -> Result<bool, Failure> {
    let Some((first, last)) = eraser.reach() else { return Ok(false) };
    let mut reader = log.read_from(first);
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        if entry.seq > last {
            break;
        }
        if eraser.judge(&entry) != RecordAction::Keep {
            return Ok(true);
        }
    }
    Ok(false)
}

fn rewrite(
    compactor: &Compactor,
    jobs: Vec<Job>,
    outcome: &mut Outcome,
    progress: &(impl Fn(u64, u64) + Sync),
) -> Result<(), Failure> {
    let total = jobs.iter().map(Job::bytes).sum();
    let done = AtomicU64::new(0);
    let jobs = Mutex::new(jobs.into_iter());
    let next = || jobs.lock().expect("no thread panics while it holds the lock").next();
    let (sender, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..THREADS_MAX {
            let sender = sender.clone();
            let (next, done) = (&next, &done);
            scope.spawn(move || {
                while let Some(job) = next() {
                    let bytes = job.bytes();
                    let result = rewrite_job(compactor, job);
                    let is_over = result.is_err();
                    let done = done.fetch_add(bytes, Relaxed) + bytes;
                    progress(done, total);
                    if sender.send(result).is_err() || is_over {
                        return;
                    }
                }
            });
        }
    });
    drop(sender);
    for result in results {
        let (rewritten, left, is_forgotten_left) = result?;
        outcome.erased += rewritten.erased;
        outcome.dropped_bytes += rewritten.dropped_bytes;
        outcome.left.extend(left);
        outcome.is_forgotten_left |= is_forgotten_left;
    }
    outcome.left.sort_unstable();
    Ok(())
}

/// Rewrites a group; if that is not possible, each segment alone.
fn rewrite_job(
    compactor: &Compactor,
    mut job: Job,
) -> Result<(Rewritten, Vec<u64>, bool), Failure> {
    if let Some(rewritten) = compactor.rewrite(&job.segments, &mut job.eraser).map_err(failed)? {
        return Ok((rewritten, Vec::new(), false));
    }
    let (mut all, mut left, mut is_forgotten_left) = (Rewritten::default(), Vec::new(), false);
    for info in job.segments {
        let alone = std::slice::from_ref(&info);
        if let Some(rewritten) = compactor.rewrite(alone, &mut job.eraser).map_err(failed)? {
            all.erased += rewritten.erased;
            all.dropped_bytes += rewritten.dropped_bytes;
        } else {
            is_forgotten_left |= job.eraser.has_forgotten_in(info.number, info.number_last);
            left.push(info.number);
        }
    }
    Ok((all, left, is_forgotten_left))
}

/// Rewriting needs space before the old segment is deleted.
pub(crate) fn failed(error: claude_mem_log::Error) -> Failure {
    match error {
        claude_mem_log::Error::Full { .. } => Failure::new(error.to_string())
            .meaning("nothing was lost: what is not compacted yet is unchanged")
            .remedy("free space for two segments, then run it again"),
        error => error.into(),
    }
}

/// Number of events to erase in the active segment, which a real run would seal first.
fn erased_in_active(store: &Store, all: &Eraser, log: &Log) -> Result<u64, Failure> {
    let first = sealed(log)?.last().map_or(1, |info| info.number_last + 1);
    let mut eraser = store.eraser_of(all, Seq::new(first, 0), Seq::from_raw(1 << 55))?;
    let mut reader = log.read_from(Seq::new(first, 0));
    let mut count = 0;
    while let Some(item) = reader.next()? {
        let Item::Record(entry) = item else { continue };
        count += u64::from(eraser.judge(&entry) != RecordAction::Keep);
    }
    Ok(count)
}

/// The result of a dry run.
fn measure(
    compactor: &Compactor,
    store: &Store,
    log: &Log,
    options: &Options,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    count(log, |bytes, files| (outcome.log_bytes.0, outcome.files.0) = (bytes, files))?;
    (outcome.log_bytes.1, outcome.files.1) = (outcome.log_bytes.0, outcome.files.0);
    let all = store.eraser()?;
    outcome.erased = erased_in_active(store, &all, log)?;
    for mut job in jobs(store, &all, log, options)? {
        let bytes = job.bytes();
        match compactor.measure(&job.segments, &mut job.eraser)? {
            Some(rewritten) => {
                outcome.erased += rewritten.erased;
                outcome.dropped_bytes += rewritten.dropped_bytes;
                outcome.log_bytes.1 = outcome.log_bytes.1 - bytes + rewritten.bytes_after;
                outcome.files.1 -= job.segments.len() - 1;
            }
            None => outcome.left.extend(job.segments.iter().map(|info| info.number)),
        }
    }
    Ok(outcome)
}
