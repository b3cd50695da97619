//! Opens the log and the database, and indexes new events.

use std::time::{Duration, Instant};

use claude_mem_events::{EventItem, EventReader, Recorded, Seq};
use claude_mem_log::{Appender, Log, Options, maintain};
use claude_mem_projections::{
    Error, FoldState, Folded, Options as StoreOptions, RebuildReason, Store, host_logs, host_of,
    local_seq, redact_foreign,
};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::{
    log_progress::LogProgress,
    modes::{Mode, mode},
};
use claude_mem_core::{
    app::App,
    diagnostics::{self, Level},
    failure::Failure,
    format::count,
};

/// How long a reader waits for new events to be indexed.
pub const WAIT_MAX: Duration = Duration::from_secs(2);

const BEHIND: &str =
    "note: the database is behind the log; `claude-mem distill` brings it up to date";

/// Opens the log for reading, after moving spilled records into it.
pub fn open_log(app: &App) -> Result<Log, Failure> {
    let dir = app.paths.log();
    // Reading works without it; the next writer tries again.
    let _ = maintain(&dir, &Options::default());
    Ok(Log::open(&dir, Options::default())?)
}

/// Opens the log of a position: our own, or the copy of another host's.
pub fn open_log_of(app: &App, seq: Seq) -> Result<Log, Failure> {
    let number = host_of(seq);
    if number == 0 {
        return open_log(app);
    }
    let mut copies = host_logs(&app.paths.foreign())?.into_iter();
    let copy = copies.find(|copy| copy.host.number == number);
    copy.map(|copy| copy.log).ok_or_else(|| Failure::new("the log of that machine is missing"))
}

/// The event at this position of the log; `None` if it is damaged or missing.
pub fn event_at(log: &Log, seq: Seq) -> Result<Option<Recorded>, Failure> {
    let place = local_seq(seq);
    Ok(match EventReader::from(log, place).next()? {
        Some(EventItem::Event(mut recorded)) if recorded.seq == place => {
            if host_of(seq) > 0 {
                redact_foreign(&mut recorded);
            }
            Some(recorded)
        }
        _ => None,
    })
}

/// Opens the database. A damaged file is moved away with a warning, and a new one is built from the
/// log.
pub fn open(app: &mut App) -> Result<Store, Failure> {
    let dir = &app.paths.data;
    app.paths.create_data().map_err(|error| Failure::no_directory(dir, &error))?;
    let options = options(app)?;
    Ok(open_file(app, options)?)
}

fn open_file(app: &mut App, options: StoreOptions) -> Result<Store, Error> {
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let (store, aside) = Store::open_or_set_aside(&app.paths.memory(), options, now_us)?;
    if let Some(aside) = aside {
        let aside = aside.display();
        app.output.say(format_args!(
            "warning: memory.db could not be used; it was moved to {aside}, and is rebuilt from \
             the log"
        ));
    }
    Ok(store)
}

/// Settings that folding depends on.
pub fn options(app: &App) -> Result<StoreOptions, Failure> {
    Ok(options_of(app, &mode(app)?))
}

fn options_of(app: &App, mode: &Mode) -> StoreOptions {
    let kinds = mode.kinds().into_iter().map(str::to_owned).collect();
    StoreOptions { kinds, foreign: app.paths.foreign(), ..StoreOptions::default() }
}

/// Folds the whole log, without a time limit.
pub fn fold(store: &mut Store, log: &Log) -> Result<Folded, Failure> {
    Ok(catch_up(store, log)?)
}

fn catch_up(store: &mut Store, log: &Log) -> Result<Folded, Error> {
    let progress = fold_progress(store, log);
    store.catch_up(log, |folded| progress.show(folded.read))
}

/// Builds the database anew.
pub fn rebuild(store: &mut Store, log: &Log) -> Result<Folded, Failure> {
    let progress = fold_progress(store, log);
    Ok(store.rebuild(log, |folded| progress.show(folded.read))?)
}

fn fold_progress(store: &Store, log: &Log) -> LogProgress {
    LogProgress::new("indexing", log, Some(store.foreign()))
}

/// Folds for about `time_max`, for readers. An outdated database is left unchanged; one built from
/// a replaced log is wrong, so it is rebuilt.
pub fn fold_for(store: &mut Store, log: &Log, time_max: Duration) -> Result<FoldState, Error> {
    let began = Instant::now();
    let progress = fold_progress(store, log);
    let folded = store.fold(log, |folded| {
        progress.show(folded.read);
        began.elapsed() < time_max
    })?;
    drop(progress);
    match folded.state {
        FoldState::NeedsRebuild(
            RebuildReason::OtherLog | RebuildReason::HistoryDiffers | RebuildReason::DamageHealed,
        ) => Ok(catch_up(store, log)?.state),
        state => Ok(state),
    }
}

/// Opens the database and indexes new events for at most [`WAIT_MAX`].
pub fn open_folded(app: &mut App) -> Result<Store, Failure> {
    let mut store = open(app)?;
    let log = open_log(app)?;
    let before = store.checkpoint()?.position;
    let state = fold_for(&mut store, &log, WAIT_MAX)?;
    if store.checkpoint()?.position != before {
        sync_log(app);
    }
    if state != FoldState::Complete {
        app.output.say(BEHIND);
    }
    Ok(store)
}

/// How long a rebuild that lost events is reported.
const REBUILT_REPORTED: SignedDuration = SignedDuration::from_hours(7 * 24);

/// Reports a recent rebuild that was needed because the log no longer contained all indexed events.
pub fn rebuild_report(app: &App, store: &Store) -> Option<String> {
    let rebuilt = store.last_history_rebuild().ok().flatten()?;
    let moment = |at_us: u64| Timestamp::from_microsecond(at_us.cast_signed()).unwrap_or_default();
    if app.clock.now().duration_since(moment(rebuilt.at_us)) > REBUILT_REPORTED {
        return None;
    }
    let lost = count(rebuilt.lost_events, "event");
    let until = moment(rebuilt.lost_until_us).to_zoned(TimeZone::system());
    let lost = match rebuilt.lost_events {
        0 => "no event is lost".to_owned(),
        _ => format!("{lost}, the latest of {}, no longer in the log", until.strftime("%F %H:%M")),
    };
    Some(match rebuilt.is_other_log {
        true => format!("memory.db was rebuilt because the log was replaced: {lost}"),
        false => format!(
            "memory.db was rebuilt because it was ahead of the log, after a power loss or with an \
             older log: {lost}"
        ),
    })
}

/// Syncs the log before SQLite checkpoints the rows folded from it, which happens when the last
/// connection closes. Otherwise a power failure could leave a database that is ahead of the log. If
/// the sync fails, the database is rebuilt in that case.
pub fn sync_log(app: &App) {
    let synced =
        Appender::open(&app.paths.log(), Options::default()).and_then(|mut log| log.sync());
    if let Err(error) = synced {
        diagnostics::record(&app.paths.data, Level::Warn, error);
    }
}

/// Opens the log and the database, with all events indexed.
pub fn open_whole(app: &mut App) -> Result<(Store, Log), Failure> {
    let mut store = open(app)?;
    let log = open_log(app)?;
    if fold(&mut store, &log)?.events > 0 {
        sync_log(app);
    }
    Ok((store, log))
}

/// The database for reading: as [`open_folded`] if it is writable, or else without folding.
pub fn read_folded(app: &mut App) -> Result<Store, Failure> {
    read(app, Some(WAIT_MAX))
}

/// The database for reading: as [`open_whole`] if it is writable, or else without folding.
pub fn read_whole(app: &mut App) -> Result<Store, Failure> {
    read(app, None)
}

/// Folds for at most `time_max`, then reads. If nothing can be written (full disk, read-only
/// directory, database of a newer version), reads without folding.
fn read(app: &mut App, time_max: Option<Duration>) -> Result<Store, Failure> {
    let dir = &app.paths.data;
    if let Err(error) = app.paths.create_data()
        && !dir.is_dir()
    {
        return Err(Failure::no_directory(dir, &error));
    }
    let log = open_log(app)?;
    let options = match options(app) {
        Ok(options) => options,
        Err(failure) => return read_without_mode(app, &log, &failure),
    };
    match fold_file(app, options.clone(), &log, time_max) {
        Ok(store) => Ok(store),
        Err(error) if error.is_unwritable() || matches!(error, Error::Newer { .. }) => {
            read_without_writing(app, options, &log, &error)
        }
        Err(error) => Err(error.into()),
    }
}

fn fold_file(
    app: &mut App,
    options: StoreOptions,
    log: &Log,
    time_max: Option<Duration>,
) -> Result<Store, Error> {
    let mut store = open_file(app, options)?;
    let before = store.checkpoint()?.position;
    let state = match time_max {
        Some(time_max) => fold_for(&mut store, log, time_max)?,
        None => catch_up(&mut store, log)?.state,
    };
    if store.checkpoint()?.position != before {
        sync_log(app);
    }
    if state != FoldState::Complete {
        app.output.say(BEHIND);
    }
    Ok(store)
}

/// Reads memory.db without folding, because the mode, which indexing depends on, cannot be used. If
/// that fails, folds the log in memory with the built-in mode.
fn read_without_mode(app: &mut App, log: &Log, failure: &Failure) -> Result<Store, Failure> {
    let (what, ..) = failure.parts();
    app.output
        .say(format_args!("warning: {what}; new events are not indexed until it is corrected"));
    if let Ok(Some(store)) = Store::open_read_only(&app.paths.memory()) {
        return Ok(store);
    }
    let mut store = Store::in_memory_with(options_of(app, &Mode::code()))?;
    catch_up(&mut store, log)?;
    Ok(store)
}

/// Reads memory.db without folding; if that fails, folds the log in memory.
fn read_without_writing(
    app: &mut App,
    options: StoreOptions,
    log: &Log,
    refused: &Error,
) -> Result<Store, Failure> {
    let is_newer = matches!(refused, Error::Newer { .. });
    if !is_newer && let Ok(Some(store)) = Store::open_read_only(&app.paths.memory()) {
        app.output.say(format_args!(
            "note: memory.db cannot be written ({refused}); the newest events may be missing here"
        ));
        return Ok(store);
    }
    app.output.say(format_args!("note: {refused}; the result comes from the log alone"));
    let mut store = Store::in_memory_with(options)?;
    catch_up(&mut store, log)?;
    Ok(store)
}
