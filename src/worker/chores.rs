//! What the worker does now and then, beside everything else.
//!
//! A chore is registered in [`ALL`] and runs on a thread where it may block. No chore runs twice at the same
//! time, and one that takes long delays no other.

use std::{sync::Arc, time::Duration};

use super::Shared;
use crate::{
    app::App,
    diagnostics::{self, Level},
    failure::Failure,
};

/// A job that comes back.
pub(crate) struct Chore {
    /// For the diagnostics.
    pub(crate) name: &'static str,
    /// How long after a run the next one begins; the first one begins that long after the start.
    pub(crate) every: Duration,
    /// The job. It is given settings as they are now.
    pub(crate) run: fn(&Shared, &mut App) -> Result<(), Failure>,
}

/// Every chore there is.
pub(crate) static ALL: &[Chore] = &[];

/// Begins with all of them. They end with the runtime.
pub(super) fn start(shared: &Arc<Shared>) {
    for chore in ALL {
        tokio::spawn(keep_doing(chore, Arc::clone(shared)));
    }
}

async fn keep_doing(chore: &'static Chore, shared: Arc<Shared>) {
    loop {
        tokio::time::sleep(chore.every).await;
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
        let message = format_args!("{}: {problem}", chore.name);
        diagnostics::record_worker(&shared.paths.data, Level::Warn, message);
    }
}
