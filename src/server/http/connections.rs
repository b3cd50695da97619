//! Connections: limited in number, and none is kept open by sending or reading nothing.
//!
//! When all places are taken, the oldest connection that has not shown a token is closed for the new one. So
//! strangers compete with each other, and never with the programs of the user.

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

/// Connections at the same time.
const CONNECTIONS_MAX: usize = 128;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// How long a client may read nothing of an answer.
const WRITE_TIME_MAX: Duration = Duration::from_secs(30);
/// How long a connection without a token may last. A page is loaded in less.
const STRANGER_TIME_MAX: Duration = Duration::from_secs(60);
/// How long requests under way may take when all is over.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// After an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is known of the other side. Requests carry it as an extension.
#[derive(Debug, Default)]
pub(super) struct Connection {
    is_trusted: AtomicBool,
    closing: Notify,
}

impl Connection {
    /// It has shown the token. From now on it is not closed for others.
    pub(super) fn trust(&self) {
        self.is_trusted.store(true, Ordering::Relaxed);
    }

    fn is_stranger(&self) -> bool {
        !self.is_trusted.load(Ordering::Relaxed)
    }
}

/// Places for connections.
#[derive(Debug)]
struct Places {
    free: Arc<Semaphore>,
    /// Oldest first.
    open: Mutex<VecDeque<Arc<Connection>>>,
}

impl Places {
    fn new() -> Self {
        Self { free: Arc::new(Semaphore::new(CONNECTIONS_MAX)), open: Mutex::default() }
    }

    /// Takes a place, if need be from the oldest stranger.
    async fn take(&self) -> Option<(Arc<Connection>, OwnedSemaphorePermit)> {
        if self.free.available_permits() == 0
            && let Some(stranger) = lock(&self.open).iter().find(|open| open.is_stranger())
        {
            stranger.closing.notify_one();
        }
        let place = Arc::clone(&self.free).acquire_owned().await.ok()?;
        let connection = Arc::new(Connection::default());
        lock(&self.open).push_back(Arc::clone(&connection));
        Some((connection, place))
    }

    fn leave(&self, connection: &Arc<Connection>) {
        lock(&self.open).retain(|open| !Arc::ptr_eq(open, connection));
    }
}

/// Answers whoever connects until `shutdown` is there.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let places = Arc::new(Places::new());
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
            places.leave(&connection);
            drop(place);
        });
    }
    drop(listener);
    ending.send_replace(true);
    // Whoever still talks then is not waited for.
    let all = u32::try_from(CONNECTIONS_MAX).expect("there are few");
    let _ = tokio::time::timeout(END_TIME_MAX, places.free.acquire_many(all)).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    places: &Places,
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
    // Answers are small and written at once; to wait for more of them helps nobody.
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
        tokio::time::sleep(STRANGER_TIME_MAX).await;
        if !connection.is_stranger() {
            std::future::pending::<()>().await;
        }
    };
    // Whatever ends a connection is its client's business: it is either gone or was told.
    tokio::select! {
        _ = http.as_mut() => return,
        () = connection.closing.notified() => return,
        () = stranger_time => return,
        _ = ended.wait_for(|is_ended| *is_ended) => http.as_mut().graceful_shutdown(),
    }
    let _ = http.await;
}
