//! The periodic pull.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use crate::{
    shared::{Change, Shared},
    worker::periodic::PeriodicJob,
};
use claude_mem_core::{
    app::App,
    failure::Failure,
    settings::table::{PULL, SHIP_TO},
};
use claude_mem_memory::{semantic::erase_hidden, store};
use claude_mem_sync::pull::pull;
use claude_mem_sync::ship::{
    Backoff,
    remote::{Purpose, Remote},
};

/// Other hosts' memories are needed at the next session start, not at once; and every request to a
/// bucket costs money.
pub(crate) const PULL_JOB: PeriodicJob =
    PeriodicJob { name: "pull", every: Duration::from_secs(20), run };

/// When to retry after a failure.
static LATER: Mutex<(Option<Instant>, Backoff)> = Mutex::new((None, Backoff::new()));

fn run(shared: &Shared, app: &mut App) -> Result<(), Failure> {
    let place = app.settings.get(&SHIP_TO);
    if place.is_empty() || !app.settings.get(&PULL) {
        return Ok(());
    }
    let Ok(mut later) = LATER.lock() else { return Ok(()) };
    if later.0.is_some_and(|at| Instant::now() < at) {
        return Ok(());
    }
    let remote = Remote::open(&place, Purpose::Read, &app.paths, &app.settings, &app.environment)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime
        .map_err(|error| Failure::new(format!("cannot start the async runtime: {error}")))?;
    let outcome = match runtime.block_on(pull(&remote, &app.paths)) {
        Ok(outcome) => outcome,
        Err(error) => {
            let is_first = later.1.is_first();
            later.0 = Some(Instant::now() + later.1.failed());
            // Log it once; an unreachable remote would fill the diagnostics.
            return if is_first { Err(error.into()) } else { Ok(()) };
        }
    };
    later.0 = None;
    later.1.succeeded();
    drop(later);
    if outcome.is_new() {
        let mut store = store::open(app)?;
        let log = store::open_log(app)?;
        store::fold(&mut store, &log)?;
        // The other machine may have forgotten something.
        erase_hidden(app, &store)?;
        shared.notify(Change::Folded);
    }
    match outcome.failed.into_iter().next() {
        Some((_, error)) => Err(error.into()),
        None => Ok(()),
    }
}
