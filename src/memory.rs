//! Memory as drawn from the log: opening it, and bringing it up to date.

use std::time::{Duration, Instant};

use claude_mem_events::Seq;
use claude_mem_log::{Log, Options, maintain};
use claude_mem_projections::{
    Error, Folded, Options as StoreOptions, State, Store, foreign, log_of,
};

use crate::{
    app::App,
    failure::Failure,
    project::{self, ProjectId},
    projector::mode,
};

/// How long whoever asks may be kept waiting for the tables to catch up.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(2);

const BEHIND: &str = "note: memory is behind the log; `claude-mem project` brings it up to date";

/// Opens the log to read from it. What was spilled is taken in first, so that it is read, too.
pub(crate) fn open_log(app: &App) -> Result<Log, Failure> {
    let dir = app.paths.log();
    // The log can be read however that goes; whoever writes next tries again.
    let _ = maintain(&dir, &Options::default());
    Ok(Log::open(&dir, Options::default())?)
}

/// Opens the log that this place of the tables is in: our own, or the copy of another machine's.
pub(crate) fn open_log_of(app: &App, seq: Seq) -> Result<Log, Failure> {
    let number = log_of(seq);
    if number == 0 {
        return open_log(app);
    }
    let mut copies = foreign(&app.paths.foreign())?.into_iter();
    let copy = copies.find(|copy| copy.host.number == number);
    copy.map(|copy| copy.log).ok_or_else(|| Failure::new("the log of that machine is gone"))
}

/// Opens the tables. A file that cannot be used is moved out of the way and said so; a new one is then
/// drawn from the log.
pub(crate) fn open(app: &mut App) -> Result<Store, Failure> {
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
            "warning: memory.db could not be used; it is now {aside}, and is drawn from the log again"
        ));
    }
    Ok(store)
}

/// The choices that folding depends on.
pub(crate) fn options(app: &App) -> Result<StoreOptions, Failure> {
    let kinds = mode(app)?.kinds().into_iter().map(str::to_owned).collect();
    Ok(StoreOptions { kinds, foreign: app.paths.foreign(), ..StoreOptions::default() })
}

/// Folds everything that the log holds, whatever that takes.
pub(crate) fn fold(store: &mut Store, log: &Log) -> Result<Folded, Failure> {
    Ok(store.catch_up(log, |_| ())?)
}

/// Folds for no longer than about `time_max`, for whoever only wants to read. What must be drawn anew is left
/// as it is.
pub(crate) fn fold_for(store: &mut Store, log: &Log, time_max: Duration) -> Result<State, Failure> {
    let began = Instant::now();
    Ok(store.fold(log, |_| began.elapsed() < time_max)?.state)
}

/// The tables, with what was recorded up to now as far as that takes no longer than [`WAIT_MAX`].
pub(crate) fn open_folded(app: &mut App) -> Result<Store, Failure> {
    let mut store = open(app)?;
    let log = open_log(app)?;
    if fold_for(&mut store, &log, WAIT_MAX)? != State::Complete {
        app.output.say(BEHIND);
    }
    Ok(store)
}

/// The log, and the tables with everything that was recorded, whatever that takes.
pub(crate) fn open_whole(app: &mut App) -> Result<(Store, Log), Failure> {
    let mut store = open(app)?;
    let log = open_log(app)?;
    fold(&mut store, &log)?;
    Ok((store, log))
}

/// The tables to read from, as [`open_folded`] has them if they can be written, else as far as they can be read.
pub(crate) fn read_folded(app: &mut App) -> Result<Store, Failure> {
    read(app, Some(WAIT_MAX))
}

/// The tables to read from, as [`open_whole`] has them if they can be written, else as far as they can be read.
pub(crate) fn read_whole(app: &mut App) -> Result<Store, Failure> {
    read(app, None)
}

/// Folds for at most `time_max`, then reads. Where nothing can be written (a full disk, a read-only directory, a
/// database of a newer version) reading goes on without.
fn read(app: &mut App, time_max: Option<Duration>) -> Result<Store, Failure> {
    let dir = &app.paths.data;
    if let Err(error) = app.paths.create_data()
        && !dir.is_dir()
    {
        return Err(Failure::no_directory(dir, &error));
    }
    let options = options(app)?;
    let log = open_log(app)?;
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
    let began = Instant::now();
    let state = match time_max {
        Some(time_max) => store.fold(log, |_| began.elapsed() < time_max)?.state,
        None => store.catch_up(log, |_| ())?.state,
    };
    if state != State::Complete {
        app.output.say(BEHIND);
    }
    Ok(store)
}

/// Reads memory.db as it is; if that is not possible either, folds the log into memory.
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
    app.output.say(format_args!("note: {refused}; the answer is made from the log alone"));
    let mut store = Store::in_memory_with(options)?;
    store.catch_up(log, |_| ())?;
    Ok(store)
}

/// The project that goes by this name or key, or is in this folder; the one we stand in, if none is named.
pub(crate) fn project_meant(
    app: &App,
    store: &Store,
    name: Option<&str>,
) -> Result<ProjectId, Failure> {
    let here = std::env::current_dir().unwrap_or_default();
    let Some(name) = name else {
        return Ok(project::identify(&here.to_string_lossy(), &app.environment));
    };
    if let Some((key, label, root)) = store.project_named(name)? {
        return Ok(ProjectId { key, label, ..ProjectId::of(root.as_ref()) });
    }
    let dir = here.join(name);
    if dir.is_dir() {
        return Ok(ProjectId::of(&dir));
    }
    Err(Failure::new(format!("nothing is remembered of a project `{name}`"))
        .remedy("give its folder, or one of the names in `claude-mem status --json`"))
}
