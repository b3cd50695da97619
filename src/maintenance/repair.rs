//! Repairs the log automatically, from the remote or from the backup.
//!
//! The worker reads the complete log once a day, and as soon as folding finds damage. Damaged bytes
//! are first copied to `quarantine/`, as with `claude-mem verify`.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use claude_mem_log::{Compactor, GapReason, Options, Packing, Report, quarantine};
use claude_mem_projections::Store;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use claude_mem_core::{
    app::App,
    diagnostics::{self, Level},
    failure::Failure,
    paths::{Paths, create_private},
    settings::table::SHIP_TO,
    user_file::{self, Readers},
};
use claude_mem_memory::store;
use claude_mem_sync::ship::{
    Error, backup, local,
    manifest::HostId,
    remote::{Purpose, Remote},
    repair as ship_repair, runtime, verify,
};

/// Between two checks of the whole log.
const CHECK_EVERY: SignedDuration = SignedDuration::from_hours(24);

/// The result of the last check, stored in `backups/repair.json`. If it is lost, the next check
/// runs earlier.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repair {
    /// When the whole log was last read.
    pub checked_at: Option<Timestamp>,
    /// Damaged places in the tables at that time.
    pub gaps: u64,
    /// When something was last repaired.
    pub repaired_at: Option<Timestamp>,
    /// The repaired segments, and the copy they came from.
    pub repaired: Vec<String>,
    /// The damage that could not be repaired, and the reason.
    pub unrepaired: Vec<String>,
}

impl Repair {
    fn file(paths: &Paths) -> PathBuf {
        paths.data.join("backups/repair.json")
    }

    /// The result of the last check; empty if it cannot be read.
    pub fn load(paths: &Paths) -> Self {
        let text = fs::read(Self::file(paths)).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn save(&self, paths: &Paths) -> Result<(), Error> {
        let (file, dir) = (Self::file(paths), paths.data.join("backups"));
        let text = serde_json::to_vec_pretty(self).expect("this is plain data");
        create_private(&dir)
            .and_then(|()| user_file::write(&file, &text, Readers::Owner))
            .map_err(|error| Error::io("write", file, error))
    }
}

/// Checks the log if that is due, or if folding found `gaps` since the last check, and repairs
/// damage.
pub fn turn(app: &mut App, gaps: u64) -> Result<(), Failure> {
    let last = Repair::load(&app.paths);
    let is_fresh =
        last.checked_at.is_some_and(|at| app.clock.now().duration_since(at) < CHECK_EVERY);
    if is_fresh && gaps == last.gaps {
        return Ok(());
    }
    unless_compacting(app, |app| run(app, false))
}

/// Handles a backup that is not a copy of the current log: one of them is damaged, or was replaced
/// by an older version.
pub fn backup(app: &mut App) -> Result<(), Failure> {
    unless_compacting(app, |app| run(app, true))
}

/// A compaction replaces segments, too. While one runs, the repair is postponed.
fn unless_compacting(
    app: &mut App,
    work: impl FnOnce(&mut App) -> Result<(), Failure>,
) -> Result<(), Failure> {
    match Compactor::begin(&app.paths.log(), &Options::default(), Packing::default())? {
        Some(_compactor) => work(app),
        None => Ok(()),
    }
}

/// Reads the complete log and repairs damage. If the backup `is_other_history`, also restores
/// records that only the backup contains, and then makes the backup a copy of the log again.
fn run(app: &mut App, is_other_history: bool) -> Result<(), Failure> {
    let dir = app.paths.log();
    let Some(host) = local::host(&dir)? else { return Ok(()) };
    let gaps = known_gaps(app)?;
    let mut report = ship_repair::report(&dir)?;
    set_aside(app, &report);
    let mut repair = Repair::load(&app.paths);
    repair.unrepaired.clear();
    repair.gaps = gaps;
    let mut repaired = Vec::new();
    let runtime = runtime()?;
    for (place, is_backup) in copies(app) {
        let is_settled = is_backup && is_other_history;
        if !is_settled && !report.is_damaged() {
            continue;
        }
        let done = runtime.block_on(async {
            let done = from(app, &place, host, &report).await?;
            if is_settled {
                copy_again(app, &place, host).await?;
            }
            Ok::<_, Error>(done)
        });
        match done {
            Ok(done) => {
                repaired.extend(done.repaired);
                repair.unrepaired.extend(done.unrepaired);
            }
            Err(error) => repair.unrepaired.push(format!("{place}: {error}")),
        }
        report = ship_repair::report(&dir)?;
    }
    if !report.is_damaged() {
        repair.unrepaired.clear();
    } else if repair.unrepaired.is_empty() {
        repair.unrepaired.push("no copy contains the damaged events".into());
    }
    if !repaired.is_empty() {
        let message = format_args!("repair: {}", repaired.join("; "));
        diagnostics::record_worker(&app.paths.data, Level::Info, message);
        repair.repaired_at = Some(app.clock.now());
        repair.repaired = repaired;
        // If a fold had skipped the restored records, this rebuilds the tables.
        repair.gaps = store::open_whole(app)?.0.pending_counts()?.gaps;
    }
    repair.checked_at = Some(app.clock.now());
    Ok(repair.save(&app.paths)?)
}

fn known_gaps(app: &App) -> Result<u64, Failure> {
    match Store::open_read_only(&app.paths.memory())? {
        Some(store) => Ok(store.pending_counts()?.gaps),
        None => Ok(0),
    }
}

/// Keeps a copy for later examination. A repair does not fail because of it.
fn set_aside(app: &App, report: &Report) {
    for gap in report.gaps() {
        if gap.len > 0 && !matches!(gap.reason, GapReason::Truncated | GapReason::MissingSegment) {
            let _ = quarantine(&app.paths.log(), &Options::default(), gap);
        }
    }
}

/// The copies of the log, and which of them is the backup.
fn copies(app: &App) -> Vec<(String, bool)> {
    let remote = Some(app.settings.get(&SHIP_TO)).filter(|place| !place.is_empty());
    let backup = Some(backup::dir(&app.paths)).filter(|dir| dir.exists());
    let backup = backup.map(|dir| (dir.to_string_lossy().into_owned(), true));
    remote.map(|place| (place, false)).into_iter().chain(backup).collect()
}

async fn from(
    app: &App,
    place: &str,
    host: HostId,
    report: &Report,
) -> Result<ship_repair::RepairOutcome, Error> {
    let remote = open(app, place)?;
    match verify::newest_intact(&remote, host, &mut Vec::new()).await? {
        Some(head) => ship_repair::repair(&remote, &head, &app.paths.log(), report).await,
        None => Ok(ship_repair::RepairOutcome::default()),
    }
}

/// Recreates the backup from the log, unless it contains events that the log does not.
async fn copy_again(app: &App, place: &str, host: HostId) -> Result<(), Error> {
    let remote = open(app, place)?;
    if let Some(head) = verify::newest_intact(&remote, host, &mut Vec::new()).await?
        && !ship_repair::is_remote_contained(&remote, &head, &app.paths.log()).await?
    {
        let why = "it has events that are missing here and could not be fetched".into();
        return Err(Error::Diverged { place: place.into(), why });
    }
    backup::shipper(app)?.reship().await.map(|_| ())
}

fn open(app: &App, place: &str) -> Result<Remote, Error> {
    let App { paths, settings, environment, .. } = app;
    Remote::open(place, Purpose::Read, paths, settings, environment)
}

/// Rewrites the backup after records were permanently removed from the log. A backup that is
/// switched off is deleted, and so are the copies of other logs: they may contain the removed
/// records.
pub(crate) fn refresh_backup(app: &mut App) -> Result<(), Failure> {
    let dir = backup::dir(&app.paths);
    if !dir.exists() {
        return Ok(());
    }
    let left = |why: String| {
        Failure::new(why)
            .meaning(format!("{} may still contain what was removed from the log", dir.display()))
            .remedy("delete that directory: the worker creates a new backup")
    };
    let removed = |path: &Path| match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(left(error.to_string())),
        _ => Ok(()),
    };
    if !backup::is_on(&app.settings) {
        let _ = fs::remove_file(backup::state_file(&app.paths));
        return removed(&dir);
    }
    let Some(host) = local::host(&app.paths.log())? else { return Ok(()) };
    for other in backup::other_logs(&dir, host) {
        removed(&other)?;
    }
    let runtime = runtime()?;
    let copy = |app: &App| runtime.block_on(async { backup::shipper(app)?.ship().await });
    let mut copied = copy(app);
    if copied.as_ref().is_err_and(Error::is_other_history) {
        run(app, true)?;
        copied = copy(app);
    }
    match copied.map(|shipped| shipped.undeleted) {
        Ok(None) => Ok(()),
        Ok(Some(why)) => Err(left(why)),
        Err(error) => Err(left(error.to_string())),
    }
}
