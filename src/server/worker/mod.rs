//! The worker: one background process that distills and serves HTTP and the socket.
//!
//! It has no persistent state. If it is killed, nothing is lost: the log has everything, and the
//! next worker continues. One single-threaded runtime serves all connections; blocking work
//! (database, providers, flushes) runs on a few separate threads.

pub mod client;
mod embedding;
mod line_socket;
mod listen;
mod log_layer;
mod main_loop;
pub mod periodic;
mod periodic_pull;
mod periodic_ship;
pub mod recall;
mod throttle;
mod version;

use std::{fs, panic, sync::Arc, time::Duration};

use crate::{
    instance::Instance,
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

/// Maximum number of blocking threads: requests that use the database, and periodic jobs.
const BLOCKING_MAX: usize = 8;

/// Time for connections to finish at shutdown.
const END_MAX: Duration = Duration::from_secs(5);

/// Listening sockets of the worker.
struct Sockets {
    http: std::net::TcpListener,
    lines: Listener,
    wake: WakeListener,
}

/// Serves until stopped, and returns the reason. Returns `None` at once if another worker is
/// running.
pub fn run(app: &App, is_background: bool) -> Result<Option<End>, Failure> {
    if is_background {
        os::detach();
    }
    os::share_one_heap();
    let app = App::new(app.environment.clone(), real(&app.paths)?);
    let data = app.paths.data.clone();
    let lock = WorkerLock::take(&data).map_err(|error| broken("lock worker.lock", &error))?;
    let Some(lock) = lock else { return Ok(None) };
    let lock = Arc::new(lock);
    // Older versions created some files with the user's umask; `doctor` reports what cannot be
    // changed.
    let _ = data_dir::tighten(&app.paths);
    let sockets = Sockets::open(&app)?;
    let address = sockets.http.local_addr().map_err(|error| broken("listen", &error))?;
    let now_us = app.clock.now().as_microsecond().cast_unsigned();
    let instance = Instance::new(&address.ip().to_string(), address.port(), now_us)
        .map_err(|error| broken("create a token", &error))?;
    log_layer::start(&data, &app.settings.get(&LOG));
    tracing::info!("version {} is listening at {}", instance.version, instance.url());
    log_panics();
    let served = serve_all(&app, sockets, instance, &lock);
    if lock.is_in_place(&data) {
        Instance::remove(&data);
        for socket in [line_socket::SOCKET, claude_mem_core::worker_process::WAKE_SOCKET] {
            let _ = fs::remove_file(data.join(socket));
        }
    }
    match &served {
        Ok(End::Requested) => tracing::info!("stopped on request"),
        Ok(End::Idle) => tracing::info!("stopped because it is idle"),
        Ok(End::Replaced) => tracing::info!("stopped for a newer version"),
        Ok(End::Deleted) => {}
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

impl Sockets {
    fn open(app: &App) -> Result<Self, Failure> {
        // A socket path has at most 108 bytes, so it is created in the current directory.
        std::env::set_current_dir(&app.paths.data)
            .map_err(|error| broken("enter its data directory", &error))?;
        Ok(Self {
            http: listen::listen(&app.paths, &app.settings)
                .map_err(|error| broken("listen on any port", &error))?,
            lines: line_socket::listen_here()
                .map_err(|error| broken("create worker.sock", &error))?,
            wake: claude_mem_core::worker_process::listen_here()
                .map_err(|error| broken("create worker.wake", &error))?,
        })
    }
}

fn serve_all(
    app: &App,
    sockets: Sockets,
    instance: Instance,
    lock: &Arc<WorkerLock>,
) -> Result<End, Failure> {
    let shared = Shared::new(app, instance)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_MAX)
        .thread_keep_alive(Duration::from_secs(5))
        .build()
        .map_err(|error| broken("start", &error))?;
    embedding::start(&shared)?;
    let main_loop = main_loop::start(&shared, sockets.wake, Arc::clone(lock))?;
    let served = runtime.block_on(serve(sockets.http, sockets.lines, Arc::clone(&shared)));
    shared.end();
    // The thread ends within a bounded time. If it panicked, nothing is lost: the log has
    // everything.
    let _ = main_loop.join();
    runtime.shutdown_timeout(Duration::from_millis(100));
    served.map_err(|error| broken("serve", &error))?;
    Ok(shared.ending().unwrap_or(End::Requested))
}

async fn serve(
    http: std::net::TcpListener,
    lines: Listener,
    shared: Arc<Shared>,
) -> std::io::Result<()> {
    let http = TcpListener::from_std(http)?;
    let lines = lines.listen()?;
    let termination = os::termination()?;
    // A reader of this file may stop us at once.
    shared.instance.write(&shared.paths.data)?;
    let asked = Arc::clone(&shared);
    tokio::spawn(async move {
        termination.await;
        asked.end();
    });
    tokio::spawn(line_socket::serve(lines, Arc::clone(&shared)));
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
        .meaning("hooks keep recording, and events stay pending in the log")
}

/// The absolute data directory: the worker changes its working directory.
fn real(paths: &Paths) -> Result<Paths, Failure> {
    let failed = |error: std::io::Error| Failure::no_directory(&paths.data, &error);
    paths.create_data().map_err(failed)?;
    let data = os::canonicalize(&paths.data).map_err(failed)?;
    Ok(Paths { data, home: paths.home.clone() })
}
