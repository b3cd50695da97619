//! The worker: one quiet process that distils while the user works, and answers programs and people.
//!
//! It holds no truth. Killed at any moment, nothing is lost: the log has everything, and the next worker goes
//! on where this one was. One runtime of one thread serves all connections; whatever blocks (tables, asking,
//! syncing) has threads of its own, and there are few of them.

pub mod client;
mod distill_queue;
mod jsonl;
mod listen;
mod log_layer;
mod main_loop;
pub mod periodic;
mod periodic_pull;
mod periodic_ship;
pub mod service;
mod throttle;
mod version;

use std::{fs, panic, sync::Arc, time::Duration};

use crate::{
    instance::Presence,
    shared::{End, Shared},
};
use claude_mem_core::worker_process::WorkerLock;
use tokio::net::TcpListener;

use crate::http;
use claude_mem_core::{
    app::App,
    failure::Failure,
    os::{self, Listener, WakeListener},
    paths::{Paths, data_dir},
    settings::table::LOG,
};

/// Threads that may block at the same time: requests that read tables, and chores.
const BLOCKING_MAX: usize = 8;

/// How long connections may take to end; then they are cut.
const END_MAX: Duration = Duration::from_secs(5);

/// What others reach the worker by.
struct Doors {
    http: std::net::TcpListener,
    lines: Listener,
    wake: WakeListener,
}

/// Serves until told to end, and says why it did. Returns nothing, and at once, if another worker is here.
pub fn run(app: &App, is_background: bool) -> Result<Option<End>, Failure> {
    if is_background {
        os::detach();
    }
    os::share_one_heap();
    let app = App::new(app.environment.clone(), real(&app.paths)?);
    let data = app.paths.data.clone();
    let lock = WorkerLock::take(&data).map_err(|error| broken("lock worker.lock", &error))?;
    let Some(_lock) = lock else { return Ok(None) };
    // Older versions created some files with the user's umask; what cannot be changed is told by `doctor`.
    let _ = data_dir::tighten(&app.paths);
    let doors = Doors::open(&app)?;
    let address = doors.http.local_addr().map_err(|error| broken("listen", &error))?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let presence = Presence::new(&address.ip().to_string(), address.port(), now_us)
        .map_err(|error| broken("make a token", &error))?;
    log_layer::start(&data, &app.settings.get(&LOG));
    tracing::info!("version {} serves at {}", presence.version, presence.url());
    log_panics();
    let served = serve_all(&app, doors, presence);
    Presence::remove(&data);
    for socket in [jsonl::SOCKET, claude_mem_core::worker_process::WAKE_SOCKET] {
        let _ = fs::remove_file(data.join(socket));
    }
    match &served {
        Ok(End::Asked) => tracing::info!("stopped on request"),
        Ok(End::Idle) => tracing::info!("stopped because there is nothing to do"),
        Ok(End::Replaced) => tracing::info!("stopped to make room for a newer version"),
        Err(failure) => tracing::error!("{}", failure.in_one_line()),
    }
    served.map(Some)
}

/// Logs where a thread panicked. The message is left out: it may quote private text.
fn log_panics() {
    let default_hook = panic::take_hook();
    panic::set_hook(Box::new(move |panicked| {
        if let Some(place) = panicked.location() {
            tracing::error!("panicked at {}:{}", place.file(), place.line());
        }
        default_hook(panicked);
    }));
}

impl Doors {
    fn open(app: &App) -> Result<Self, Failure> {
        // A socket is named by at most 108 bytes, so that it is made where we stand.
        std::env::set_current_dir(&app.paths.data)
            .map_err(|error| broken("enter its data directory", &error))?;
        Ok(Self {
            http: listen::listen(&app.paths, &app.settings)
                .map_err(|error| broken("listen on any port", &error))?,
            lines: jsonl::listen_here().map_err(|error| broken("make worker.sock", &error))?,
            wake: claude_mem_core::worker_process::listen_here()
                .map_err(|error| broken("make worker.wake", &error))?,
        })
    }
}

fn serve_all(app: &App, doors: Doors, presence: Presence) -> Result<End, Failure> {
    let shared = Shared::new(app, presence)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_keep_alive(Duration::from_secs(5))
        .build()
        .map_err(|error| broken("start", &error))?;
    let projecting = main_loop::start(&shared, doors.wake)?;
    let served = runtime.block_on(serve(doors.http, doors.lines, Arc::clone(&shared)));
    shared.end();
    // It ends on its own within a bounded time; if it panicked it has ended, and everything is in the log.
    let _ = projecting.join();
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map_err(|error| broken("serve", &error))?;
    Ok(shared.ending().unwrap_or(End::Asked))
}

async fn serve(
    http: std::net::TcpListener,
    lines: Listener,
    shared: Arc<Shared>,
) -> std::io::Result<()> {
    let http = TcpListener::from_std(http)?;
    let lines = lines.listen()?;
    let told_to_end = os::told_to_end()?;
    // Whoever reads it may ask us to end at once.
    shared.presence.write(&shared.paths.data)?;
    let asked = Arc::clone(&shared);
    tokio::spawn(async move {
        told_to_end.await;
        asked.end();
    });
    tokio::spawn(jsonl::serve(lines, Arc::clone(&shared)));
    periodic::start(&shared);
    let (ending, ended) = (Arc::clone(&shared), Arc::clone(&shared));
    let serving = http::serve(http, shared, async move { ending.ended().await });
    let cut = async move {
        ended.ended().await;
        tokio::time::sleep(END_MAX).await;
    };
    tokio::select! {
        served = serving => served,
        () = cut => Ok(()),
    }
}

fn broken(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::new(format!("the worker cannot {what}: {error}"))
        .meaning("hooks go on recording, and everything waits in the log")
}

/// The data directory by its full name: the worker does not stand where it was started from.
fn real(paths: &Paths) -> Result<Paths, Failure> {
    let failed = |error: std::io::Error| Failure::no_directory(&paths.data, &error);
    paths.create_data().map_err(failed)?;
    let data = os::canonicalize(&paths.data).map_err(failed)?;
    Ok(Paths { data, home: paths.home.clone() })
}
