//! Connections: so many and no more, and none that is kept open by saying nothing.

use std::{future::Future, io, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
};

/// Connections at the same time; whoever comes then waits in the system's queue.
const CONNECTIONS_MAX: usize = 128;
/// How long the head of a request may take, and how long a connection may be idle.
const HEAD_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest head.
const HEAD_BYTES_MAX: usize = 32 << 10;
/// How long requests under way may take when all is over.
const END_TIME_MAX: Duration = Duration::from_secs(5);
/// After an error such as too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Answers whoever connects until `shutdown` is there.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let (ending, _) = watch::channel(false);
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            () = &mut shutdown => break,
            accepted = accept(&listener, &room) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (router, ended) = (router.clone(), ending.subscribe());
        tokio::spawn(async move {
            converse(stream, router, ended).await;
            drop(permit);
        });
    }
    drop(listener);
    ending.send_replace(true);
    // Whoever still talks then is not waited for.
    let all = u32::try_from(CONNECTIONS_MAX).expect("there are few");
    let _ = tokio::time::timeout(END_TIME_MAX, room.acquire_many(all)).await;
    Ok(())
}

async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.ok()?;
    if let Ok((stream, _)) = listener.accept().await {
        return Some((stream, permit));
    }
    tokio::time::sleep(ACCEPT_PAUSE).await;
    None
}

async fn converse(stream: TcpStream, router: Router, mut ended: watch::Receiver<bool>) {
    // Answers are small and written at once; to wait for more of them helps nobody.
    let _ = stream.set_nodelay(true);
    let service = TowerToHyperService::new(router);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    // Whatever ends a connection is its client's business: it is either gone or was told.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = ended.wait_for(|is_ended| *is_ended) => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
