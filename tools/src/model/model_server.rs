//! The server: chooses the protocol by the path, and records every request.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::http_server::{HttpReply, HttpRequest, HttpServer};

use super::{
    answer::Answer, anthropic, gemini, openai, request::Request, response::Response, responses,
    script::Script,
};

/// Responds on a free port of the loopback interface until it is dropped; then every connection is
/// closed.
#[derive(Debug)]
pub struct Server {
    http: HttpServer,
    received: Arc<Received>,
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
        let received = Arc::<Received>::default();
        let record = Arc::clone(&received);
        let http =
            HttpServer::start(port, move |request| respond(&record.record(request), &answer))?;
        Ok(Self { http, received })
    }

    /// The value for `ANTHROPIC_BASE_URL`: `http://127.0.0.1:PORT`. OpenAI clients add `/v1`.
    pub fn url(&self) -> String {
        format!("http://{}", self.http.address())
    }

    /// Every request so far in the order of arrival, including rejected ones.
    pub fn requests(&self) -> Vec<Request> {
        self.received.requests().clone()
    }

    /// Waits until this many requests have arrived, and returns them all. If they never do, the
    /// test runner's time limit ends the test.
    pub fn wait_for_requests(&self, count: usize) -> Vec<Request> {
        let requests = self.received.requests();
        let arrived = &self.received.arrived;
        let requests = arrived.wait_while(requests, |requests| requests.len() < count);
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Debug, Default)]
struct Received {
    requests: Mutex<Vec<Request>>,
    arrived: Condvar,
}

impl Received {
    fn requests(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: HttpRequest) -> Request {
        let HttpRequest { method, path, query, headers, body } = request;
        let body = serde_json::from_slice(&body).unwrap_or_default();
        let mut requests = self.requests();
        let request = Request { number: requests.len(), method, path, query, headers, body };
        requests.push(request.clone());
        self.arrived.notify_all();
        request
    }
}

type InProtocol = fn(&Request, &Answer) -> Option<Response>;

/// The reply to a request; `None` if nothing is ever sent.
fn respond(request: &Request, choose: &impl Fn(&Request) -> Answer) -> Option<HttpReply> {
    let path = request.path.as_str();
    let is_post = request.method == "POST";
    let (refusal, in_protocol): (Option<Response>, InProtocol) = if !is_post {
        (Some(not_found()), anthropic::respond)
    } else if path.ends_with("/v1/messages") {
        (anthropic::refusal(request), anthropic::respond)
    } else if path.ends_with("/chat/completions") {
        (openai::refusal(request), openai::respond)
    } else if path.ends_with("/embeddings") {
        (openai::refusal_to_embed(request), openai::respond)
    } else if path.ends_with("/v1/responses") {
        (responses::refusal(request), responses::respond)
    } else if gemini::is_for(path) {
        (gemini::refusal(request), gemini::respond)
    } else if path.ends_with("/v1/messages/count_tokens") {
        let counted = anthropic::refusal(request);
        (Some(counted.unwrap_or_else(|| anthropic::count_tokens(request))), anthropic::respond)
    } else {
        (Some(not_found()), anthropic::respond)
    };
    if let Some(refusal) = refusal {
        return Some(refusal.reply(&Answer::empty()));
    }
    let answer = choose(request);
    if let Some(gate) = &answer.gate {
        gate.wait();
    }
    Some(in_protocol(request, &answer)?.reply(&answer))
}

fn not_found() -> Response {
    anthropic::error(404, "not_found_error", "Not Found")
}
