//! The server: an accepting thread, one thread per connection, and a record of every request.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::answer::{Answer, Ending, Kind};
use super::gate::Gate;
use super::http::{self, Body, Response};
use super::request::Request;
use super::script::Script;
use super::{anthropic, gemini, openai, responses};

/// Responds on a free port of the loopback interface until it is dropped; then every connection is
/// closed and every thread has ended.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves a script.
    pub fn start(script: Script) -> io::Result<Self> {
        Self::answering(move |request| script.answer(request))
    }

    /// Serves the responses of a closure. It is called only for valid requests to the model, from
    /// several threads for concurrent requests.
    pub fn answering(
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::bind(0, answer)
    }

    /// As [`answering`](Self::answering), on this port; 0 is any free one.
    pub fn bind(
        port: u16,
        answer: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(Box::new(answer)));
        let theirs = Arc::clone(&shared);
        let acceptor = thread::spawn(move || accept(&listener, &theirs));
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// The value for `ANTHROPIC_BASE_URL`: `http://127.0.0.1:PORT`. OpenAI clients add `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Every request so far in the order of arrival, including rejected ones.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.requests().clone()
    }

    /// Waits until this many requests have arrived and returns them all, or `None` after `limit`.
    pub fn wait_for_requests(&self, count: usize, limit: Duration) -> Option<Vec<Request>> {
        let deadline = Instant::now() + limit;
        let mut requests = self.shared.requests();
        while requests.len() < count {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            let woken = self.shared.arrived.wait_timeout(requests, left);
            requests = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Some(requests.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.closing.open();
        // The accepting thread blocks in `accept`; a connection wakes it.
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            drop(acceptor.join());
        }
    }
}

type Chooser = Box<dyn Fn(&Request) -> Answer + Send + Sync>;

struct Shared {
    choose: Chooser,
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
    closing: Gate,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("requests", &self.requests).finish_non_exhaustive()
    }
}

impl Shared {
    fn new(choose: Chooser) -> Self {
        let (requests, arrived) = (Mutex::default(), Condvar::new());
        Self { choose, requests, arrived, closing: Gate::new() }
    }

    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, mut request: Request) -> Request {
        let mut requests = self.requests();
        request.number = requests.len();
        requests.push(request.clone());
        self.arrived.notify_all();
        request
    }

    /// Waits as scripted; returns whether the server is still open.
    fn pause(&self, length: Duration) -> bool {
        !self.closing.wait(length)
    }

    fn hang(&self) {
        while self.pause(Duration::from_secs(60)) {}
    }

    fn hold(&self, gate: &Gate) {
        // Either gate may open first, and a thread cannot wait for both: poll them in turn.
        while !gate.wait(Duration::from_millis(20)) && !self.closing.is_open() {}
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut connections: Vec<(Option<TcpStream>, JoinHandle<()>)> = Vec::new();
    for stream in listener.incoming() {
        if shared.closing.is_open() {
            break;
        }
        let Ok(stream) = stream else { continue };
        connections.retain(|(_, thread)| !thread.is_finished());
        let handle = stream.try_clone().ok();
        let shared = Arc::clone(shared);
        // A client may disconnect at any time.
        let serve = move || drop(converse(&stream, &shared));
        connections.push((handle, thread::spawn(serve)));
    }
    for (stream, thread) in connections {
        if let Some(stream) = stream {
            drop(stream.shutdown(Shutdown::Both));
        }
        drop(thread.join());
    }
}

fn converse(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let Some(request) = http::read(stream)? else { return Ok(()) };
    let request = shared.record(request);
    let sent = Conversation { stream, shared, request: &request }.reply();
    drop(stream.shutdown(Shutdown::Both));
    sent
}

/// One request and its connection.
struct Conversation<'a> {
    stream: &'a TcpStream,
    shared: &'a Shared,
    request: &'a Request,
}

type Respond = fn(&Request, &Answer) -> Option<Response>;

impl Conversation<'_> {
    fn reply(&self) -> io::Result<()> {
        let request = self.request;
        let path = request.path.as_str();
        match request.method.as_str() {
            "POST" if path.ends_with("/v1/messages") => {
                self.ask(anthropic::refusal(request), anthropic::respond)
            }
            "POST" if path.ends_with("/chat/completions") => {
                self.ask(openai::refusal(request), openai::respond)
            }
            "POST" if path.ends_with("/embeddings") => {
                self.ask(openai::refusal_to_embed(request), openai::respond)
            }
            "POST" if path.ends_with("/v1/responses") => {
                self.ask(responses::refusal(request), responses::respond)
            }
            "POST" if gemini::is_for(path) => self.ask(gemini::refusal(request), gemini::respond),
            "POST" if path.ends_with("/v1/messages/count_tokens") => {
                let counted = || anthropic::count_tokens(request);
                self.settle(&anthropic::refusal(request).unwrap_or_else(counted))
            }
            _ => self.settle(&anthropic::error(404, "not_found_error", "Not Found")),
        }
    }

    fn settle(&self, response: &Response) -> io::Result<()> {
        self.send(response, &Ending::Whole, Duration::ZERO)
    }

    fn ask(&self, refusal: Option<Response>, respond: Respond) -> io::Result<()> {
        if let Some(refusal) = refusal {
            return self.settle(&refusal);
        }
        let answer = (self.shared.choose)(self.request);
        if let Some(gate) = &answer.gate {
            self.shared.hold(gate);
        }
        let Some(mut response) = respond(self.request, &answer) else {
            self.shared.hang();
            return Ok(());
        };
        if let Kind::Error { retry_after: Some(seconds), .. } = &answer.kind {
            response.headers.push(("retry-after", seconds.to_string()));
        }
        self.send(&response, &answer.ending, answer.pause)
    }

    fn send(&self, response: &Response, ending: &Ending, pause: Duration) -> io::Result<()> {
        let mut stream = self.stream;
        let shortened = response.body.halved();
        let body = match ending {
            Ending::Whole | Ending::Error { .. } => &response.body,
            Ending::Short | Ending::Cut | Ending::Stall => &shortened,
        };
        // A truncated body has the full content length; a short one has its own.
        let announced = if *ending == Ending::Short { body } else { &response.body };
        stream.write_all(response.head(announced).as_bytes())?;
        self.send_body(body, pause)?;
        match ending {
            Ending::Cut => Ok(()),
            Ending::Stall => {
                self.shared.hang();
                Ok(())
            }
            _ => stream.write_all(announced.end()),
        }
    }

    fn send_body(&self, body: &Body, pause: Duration) -> io::Result<()> {
        let mut stream = self.stream;
        match body {
            Body::Whole(body) => {
                self.shared.pause(pause);
                stream.write_all(body.as_bytes())?;
            }
            Body::Events(events) => {
                for event in events {
                    self.shared.pause(pause);
                    write!(stream, "{:x}\r\n{event}\r\n", event.len())?;
                }
            }
        }
        Ok(())
    }
}
