//! Periodic jobs of the worker.
//!
//! A job is registered in [`ALL`] and runs on a blocking thread. No job runs twice at the same
//! time, and a slow one delays no other.

use std::{sync::Arc, time::Duration};

use claude_mem_log::{Options, maintain};
use claude_mem_projections::Store;

use super::{periodic_pull, periodic_ship};
use crate::shared::{Shared, health::Health, queue_history};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_maintenance::{compact, repair, retention};

/// A periodic job.
pub struct PeriodicJob {
    /// Name in diagnostics.
    pub name: &'static str,
    /// Time between the end of a run and the next one. The first run starts after this time, but no
    /// later than a minute, because the worker may exit soon.
    pub every: Duration,
    /// The job. It receives the current settings.
    pub run: fn(&Shared, &mut App) -> Result<(), Failure>,
}

const MINUTE: Duration = Duration::from_secs(60);

/// All periodic jobs.
pub static ALL: &[PeriodicJob] = &[
    PeriodicJob { name: "log", every: MINUTE, run: maintain_log },
    PeriodicJob { name: "queue", every: queue_history::EVERY, run: sample_queue },
    PeriodicJob {
        name: "private turns",
        every: MINUTE.saturating_mul(60),
        run: sweep_private_turns,
    },
    // An event is in the remote within a second.
    PeriodicJob { name: "ship", every: Duration::from_millis(500), run: periodic_ship::turn },
    PeriodicJob { name: "repair", every: Duration::from_secs(10), run: repair_log },
    periodic_pull::PULL_JOB,
    PeriodicJob { name: "compaction", every: MINUTE.saturating_mul(60), run: compact },
];

/// Compacts if it is worthwhile.
fn compact(_: &Shared, app: &mut App) -> Result<(), Failure> {
    match retention::due_compaction(app)? {
        Some(options) => compact::run(app, &options, |_, _| ()).map(|_| ()),
        None => Ok(()),
    }
}

/// Repairs the log when it is damaged.
fn repair_log(shared: &Shared, app: &mut App) -> Result<(), Failure> {
    let gaps = shared
        .read(|store| Ok(store.map(Store::pending_counts).transpose()?.map_or(0, |lag| lag.gaps)));
    repair::turn(app, gaps?)
}

/// Seals full segments and merges spilled events.
fn maintain_log(_: &Shared, app: &mut App) -> Result<(), Failure> {
    if app.paths.log().is_dir() {
        maintain(&app.paths.log(), &Options::default())?;
    }
    Ok(())
}

/// Notes how many events are pending.
#[expect(clippy::unnecessary_wraps, reason = "other jobs can fail")]
fn sample_queue(shared: &Shared, _: &mut App) -> Result<(), Failure> {
    Health::look(shared);
    Ok(())
}

/// Removes markers of private turns whose sessions were killed.
fn sweep_private_turns(_: &Shared, app: &mut App) -> Result<(), Failure> {
    claude_mem_capture::sweep_session_files(&app.paths.data)
        .and_then(|()| claude_mem_capture::sweep_private_turns(&app.paths.data))
        .map_err(|error| Failure::new(format!("private/ cannot be read: {error}")))
}

/// Starts all jobs. They end with the runtime.
pub(super) fn start(shared: &Arc<Shared>) {
    for job in ALL {
        tokio::spawn(keep_doing(job, Arc::clone(shared)));
    }
}

async fn keep_doing(job: &'static PeriodicJob, shared: Arc<Shared>) {
    let mut pause = job.every.min(MINUTE);
    loop {
        tokio::time::sleep(pause).await;
        pause = job.every;
        let of_thread = Arc::clone(&shared);
        let done = tokio::task::spawn_blocking(move || {
            let mut app = of_thread.app();
            (job.run)(&of_thread, &mut app)
        });
        let problem = match done.await {
            Ok(Ok(())) => continue,
            Ok(Err(failure)) => failure.in_one_line(),
            Err(_) => "panicked".into(),
        };
        tracing::warn!("{}: {problem}", job.name);
    }
}
