//! The HTTP server of the simulated services. A closure computes each response, which may be broken
//! on purpose: cut off, or never finished.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    response::Response,
    serve::{ListenerExt as _, serve},
};
use tokio::{runtime, sync::mpsc, sync::oneshot, task::spawn_blocking};
use tokio_stream::wrappers::ReceiverStream;

/// More than any client sends: the largest messages they accept are below 32 MB.
const BODY_BYTES_MAX: usize = 64 << 20;

/// A received request.
pub(crate) struct HttpRequest {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: String,
    /// In the order sent, names in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
}

/// A response.
pub(crate) struct HttpReply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(&'static str, String)>,
    /// The pieces of the body that are sent.
    pub(crate) body: Vec<Bytes>,
    /// The announced length; without it, the body is sent in chunks.
    pub(crate) length: Option<usize>,
    pub(crate) end: End,
    /// Time before each piece.
    pub(crate) pause: Duration,
}

/// What happens after the last piece of a body.
#[derive(Clone, Copy)]
pub(crate) enum End {
    /// The body is complete.
    Complete,
    /// The connection is closed.
    Close,
    /// Nothing, until the server is dropped.
    Stall,
}

type Respond = dyn Fn(HttpRequest) -> Option<HttpReply> + Send + Sync;

/// Serves a port of the loopback interface until it is dropped, which closes every connection.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl HttpServer {
    /// Responds on this port; 0 is any free one. The closure may block. A request for which it
    /// returns `None` is never answered.
    pub(crate) fn start(
        port: u16,
        respond: impl Fn(HttpRequest) -> Option<HttpReply> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let respond: Arc<Respond> = Arc::new(respond);
        let (stop, stopped) = oneshot::channel();
        let thread = thread::spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
                let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
                let router = Router::new().fallback(answer).with_state(respond);
                tokio::select! {
                    _ = serve(listener, router).into_future() => (),
                    _ = stopped => (),
                }
            });
            // Closures that still block are not waited for.
            runtime.shutdown_background();
        });
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

async fn answer(State(respond): State<Arc<Respond>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, BODY_BYTES_MAX).await else {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::BAD_REQUEST;
        return refused;
    };
    let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into();
    let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
    let request = HttpRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body,
    };
    match spawn_blocking(move || respond(request)).await {
        Ok(Some(reply)) => send(reply),
        _ => std::future::pending().await,
    }
}

fn send(reply: HttpReply) -> Response {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    if let Some(length) = reply.length {
        response = response.header(header::CONTENT_LENGTH, length);
    }
    // With room for one piece, the connection has sent the previous one before it sees the end.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        for piece in reply.body {
            if !reply.pause.is_zero() {
                tokio::time::sleep(reply.pause).await;
            }
            if sender.send(Ok(piece)).await.is_err() {
                return;
            }
        }
        match reply.end {
            End::Complete => {}
            End::Close => drop(sender.send(Err(io::ErrorKind::BrokenPipe)).await),
            End::Stall => sender.closed().await,
        }
    });
    let pieces = tokio_stream::StreamExt::map(ReceiverStream::new(receiver), |piece| {
        piece.map_err(io::Error::from)
    });
    response.body(Body::from_stream(pieces)).unwrap_or_default()
}
