//! What the worker does now and then, beside everything else.
//!
//! A chore is registered in [`ALL`] and runs on a thread where it may block. No chore runs twice at the same
//! time, and one that takes long delays no other.

use std::{sync::Arc, time::Duration};

use claude_mem_log::{Options, maintain};

use super::{periodic_pull, periodic_ship};
use crate::shared::{Shared, health::Health, queue_history};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_maintenance::{compact, retention};

/// A job that comes back.
pub struct Chore {
    /// For the diagnostics.
    pub name: &'static str,
    /// How long after a run the next one begins. The first one begins that long after the start, but no later
    /// than a minute, because a worker may not live long.
    pub every: Duration,
    /// The job. It is given settings as they are now.
    pub run: fn(&Shared, &mut App) -> Result<(), Failure>,
}

const MINUTE: Duration = Duration::from_secs(60);

/// Every chore there is.
pub static ALL: &[Chore] = &[
    Chore { name: "log", every: MINUTE, run: tidy_log },
    Chore { name: "queue", every: queue_history::EVERY, run: sample_queue },
    Chore { name: "private turns", every: MINUTE.saturating_mul(60), run: sweep_private_turns },
    // What is recorded is in the remote within a second.
    Chore { name: "ship", every: Duration::from_millis(500), run: periodic_ship::turn },
    periodic_pull::CHORE,
    Chore { name: "compaction", every: MINUTE.saturating_mul(60), run: compact },
];

/// Compacts, when it is worth it.
fn compact(_: &Shared, app: &mut App) -> Result<(), Failure> {
    match retention::worth_it(app)? {
        Some(options) => compact::run(app, &options, |_, _| ()).map(|_| ()),
        None => Ok(()),
    }
}

/// Seals full segments and merges what hooks had to put aside.
fn tidy_log(_: &Shared, app: &mut App) -> Result<(), Failure> {
    if app.paths.log().is_dir() {
        maintain(&app.paths.log(), &Options::default())?;
    }
    Ok(())
}

/// Notes how many events are pending.
#[expect(clippy::unnecessary_wraps, reason = "other chores can fail")]
fn sample_queue(shared: &Shared, _: &mut App) -> Result<(), Failure> {
    Health::look(shared);
    Ok(())
}

/// Removes the marks of private turns whose sessions were killed.
fn sweep_private_turns(_: &Shared, app: &mut App) -> Result<(), Failure> {
    claude_mem_capture::sweep_private_turns(&app.paths.data)
        .map_err(|error| Failure::new(format!("private/ cannot be read: {error}")))
}

/// Begins with all of them. They end with the runtime.
pub(super) fn start(shared: &Arc<Shared>) {
    for chore in ALL {
        tokio::spawn(keep_doing(chore, Arc::clone(shared)));
    }
}

async fn keep_doing(chore: &'static Chore, shared: Arc<Shared>) {
    let mut pause = chore.every.min(MINUTE);
    loop {
        tokio::time::sleep(pause).await;
        pause = chore.every;
        let of_thread = Arc::clone(&shared);
        let done = tokio::task::spawn_blocking(move || {
            let mut app = of_thread.app();
            (chore.run)(&of_thread, &mut app)
        });
        let problem = match done.await {
            Ok(Ok(())) => continue,
            Ok(Err(failure)) => failure.in_one_line(),
            Err(_) => "it gave up".into(),
        };
        tracing::warn!("{}: {problem}", chore.name);
    }
}
