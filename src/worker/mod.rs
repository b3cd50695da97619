//! The worker: one quiet process that distils while the user works, and answers programs and people.
//!
//! It holds no truth. Killed at any moment, nothing is lost: the log has everything, and the next worker goes
//! on where this one was. One runtime of one thread serves all connections; whatever blocks (tables, asking,
//! syncing) has threads of its own, and there are few of them.

mod appender;
mod chores;
mod listen;
mod lock;
mod presence;
pub(crate) mod shared;

use std::{fs, sync::Arc};

use appender::Appender;
pub(crate) use lock::WorkerLock;
pub(crate) use presence::Presence;
pub(crate) use shared::Shared;
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
};

use crate::{app::App, failure::Failure, http, paths::Paths};

/// Threads that may block at the same time: requests that read tables, and chores.
const BLOCKING_MAX: usize = 8;

/// Serves until told to end. Says `false` at once if another worker is here.
pub(crate) fn run(app: &App) -> Result<bool, Failure> {
    let paths = real(&app.paths)?;
    let app = App::new(app.environment.clone(), paths);
    let data = &app.paths.data;
    let broken = |what: &str, error: &dyn std::fmt::Display| {
        Failure::new(format!("the worker cannot {what}: {error}"))
            .meaning("hooks go on recording, and everything waits in the log")
    };
    let lock = WorkerLock::take(data).map_err(|error| broken("lock worker.lock", &error))?;
    let Some(_lock) = lock else { return Ok(false) };
    let listener = listen::listen(&app.paths, &app.settings)
        .map_err(|error| broken("listen on any port", &error))?;
    let address = listener.local_addr().map_err(|error| broken("listen", &error))?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let presence = Presence::new(&address.ip().to_string(), address.port(), now_us)
        .map_err(|error| broken("make a token", &error))?;
    presence.write(data).map_err(|error| broken("write worker.json", &error))?;
    let shared = Shared::new(&app, presence)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .build()
        .map_err(|error| broken("start", &error))?;
    let served = runtime.block_on(serve(listener, Arc::clone(&shared)));
    Presence::remove(data);
    served.map_err(|error| broken("serve", &error))?;
    Ok(true)
}

async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) -> std::io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let (mut terminated, mut interrupted) =
        (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let asked = Arc::clone(&shared);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
        asked.end();
    });
    chores::start(&shared);
    let ending = Arc::clone(&shared);
    http::serve(listener, shared, async move { ending.ended().await }).await
}

/// The data directory by its full name: the worker does not stand where it was started from.
fn real(paths: &Paths) -> Result<Paths, Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(format!("{} cannot be made: {error}", paths.data.display()))
    };
    paths.create_data().map_err(failed)?;
    let data = fs::canonicalize(&paths.data).map_err(failed)?;
    Ok(Paths { data, home: paths.home.clone() })
}
