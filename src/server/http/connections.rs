//! Connections: limited in number, and closed when idle.
//!
//! At the limit, a new connection replaces the oldest one that has not sent a token. So
//! unauthorized clients compete with each other, and never with the user's programs.

use std::{
    collections::VecDeque,
    future::Future,
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::Router;
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Notify, OwnedSemaphorePermit, Semaphore, watch},
};
use tokio_io_timeout::TimeoutStream;

use super::{auth::HEAD_BYTES_MAX, state::lock};

/// Maximum number of concurrent connections.
const CONNECTIONS_MAX: usize = 128;
/// Maximum time to receive a request head, and maximum idle time.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// Maximum time for which a client reads nothing of a response.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum lifetime of a connection without a token. Loading the page takes less.
const UNAUTHORIZED_TIME_MAX: Duration = Duration::from_secs(60);
/// Time for requests to finish when the worker stops.
const SHUTDOWN_TIME_MAX: Duration = Duration::from_secs(5);
/// Delay after an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// State of a connection. Requests carry it as an extension.
#[derive(Debug, Default)]
pub(super) struct Connection {
    is_trusted: AtomicBool,
    closing: Notify,
}

impl Connection {
    /// Marks it as authorized: it is no longer closed for others.
    pub(super) fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    fn is_unauthorized(&self) -> bool {
        !self.is_trusted.load(Ordering::Relaxed)
    }
}

/// All open connections.
#[derive(Debug)]
struct ConnectionSlots {
    free: Arc<Semaphore>,
    /// Oldest first.
    open: Mutex<VecDeque<Arc<Connection>>>,
}

impl ConnectionSlots {
    fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(CONNECTIONS_MAX)), open: Mutex::default() }
    }

    /// Takes a slot, if necessary from the oldest unauthorized connection.
    async fn take(&self) -> Option<(Arc<Connection>, OwnedSemaphorePermit)> {
        if self.free.available_permits() == 0
            && let Some(stranger) = lock(&self.open).iter().find(|open| open.is_unauthorized())
        {
            stranger.closing.notify_one();
        }
        let place = Arc::clone(&self.free).acquire_owned().await.ok()?;
        let connection = Arc::new(Connection::default());
        lock(&self.open).push_back(Arc::clone(&connection));
        Some((connection, place))
    }

    fn release(&self, connection: &Arc<Connection>) {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, connection));
    }
}

/// Serves connections until `shutdown` completes.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let places = Arc::new(ConnectionSlots::new());
    let (ending, _) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &places) => accepted,
        };
        let Some((stream, connection, place)) = accepted else { continue };
        let (router, ended, places) = (router.clone(), ending.subscribe(), Arc::clone(&places));
        tokio::spawn(async move {
            converse(stream, router, &connection, ended).await;
            places.release(&connection);
            drop(place);
        });
    }
    drop(listener);
    ending.send_replace(true);
    // Do not wait for connections that are still open then.
    let all = u32::try_from(CONNECTIONS_MAX).expect("there are few");
    let _ = tokio::time::timeout(SHUTDOWN_TIME_MAX, places.free.acquire_many(all)).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &ConnectionSlots,
) -> Option<(TcpStream, Arc<Connection>, OwnedSemaphorePermit)> {
    if let Ok((stream, _)) = listener.accept().await {
        let (connection, place) = places.take().await?;
        return Some((stream, connection, place));
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
    None
}

async fn converse(
    stream: TcpStream,
    router: Router,
    connection: &Arc<Connection>,
    mut ended: watch::Receiver<bool>,
) {
    // Responses are small and written at once, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIME_MAX));
    let router = TowerToHyperService::new(router);
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(connection));
        router.call(request)
    });
    let http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(Box::pin(stream)), service);
    let mut http = std::pin::pin!(http);
    let stranger_time = async {
        tokio::time::sleep(UNAUTHORIZED_TIME_MAX).await;
        if !connection.is_unauthorized() {
            std::future::pending::<()>().await;
        }
    };
    // An error of one connection is ignored: the client is gone, or got an error response.
    tokio::select! {
        _ = http.as_mut() => return,
        () = connection.closing.notified() => return,
        () = stranger_time => return,
        _ = ended.wait_for(|is_ended| *is_ended) => http.as_mut().graceful_shutdown(),
    }
    let _ = http.await;
}
