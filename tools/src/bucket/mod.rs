//! A test bucket with the API of S3 or Google Cloud Storage that fails on demand.
//!
//! Correct behaviour is tested with real servers where they exist. This one simulates failures:
//! errors, time-outs, truncated responses, stale listings, damaged objects; and Google Cloud
//! Storage, for which there is no emulator.

mod google;
mod request;

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use serde_json::Value;

use crate::http_server::{HttpReply, HttpRequest, HttpServer};

use self::{
    google::Google,
    request::{Answer, Request},
};

/// The bucket. The server is stopped when this is dropped.
#[derive(Debug)]
pub struct Bucket {
    http: HttpServer,
    inner: Arc<Shared>,
}

/// State shared by the connections.
#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Set for Google Cloud Storage.
    google: Option<Google>,
    /// Notified when enough requests wait, or when the server is stopped.
    enough: Condvar,
}

/// How the bucket misbehaves. By default it does not.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    /// Every request gets this status.
    pub status: Option<u16>,
    /// After this many requests, all others get status 500.
    pub requests_max: Option<u64>,
    /// Listings show the state at the time this was set.
    pub is_listing_old: bool,
    /// Objects whose name contains this are truncated, and the connection is closed.
    pub cut: Option<String>,
    /// Objects whose name contains this are sent with one flipped bit.
    pub flip: Option<String>,
    /// Requests for objects whose name contains this are never answered.
    pub silent: Option<String>,
    /// Objects whose name contains this are sent only when this many of them are requested at the
    /// same time.
    pub together: Option<(String, usize)>,
    /// Conditional requests are not supported.
    pub is_without_conditions: bool,
    /// Every client has access. The S3 variant never checks credentials.
    pub is_open: bool,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Vec<u8>>,
    listed: Vec<String>,
    lies: Faults,
    requests: u64,
    is_over: bool,
    /// Requests that wait for others.
    waiting: usize,
}

impl Bucket {
    /// Starts an S3 server on a free port.
    pub fn start() -> io::Result<Self> {
        Self::listen(None)
    }

    /// Starts a Google server. Its bucket `memories` is ours, its bucket `others` is not.
    pub fn start_google() -> io::Result<Self> {
        Self::listen(Some(Google::new()?))
    }

    fn listen(google: Option<Google>) -> io::Result<Self> {
        let inner = Arc::new(Shared { google, ..Shared::default() });
        let shared = Arc::clone(&inner);
        let http = HttpServer::start(0, move |request| serve(request, &shared))?;
        Ok(Self { http, inner })
    }

    /// The value for `AWS_ENDPOINT_URL` or `GOOGLE_BASE_URL`.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.http.address())
    }

    /// The URL of our bucket, as users write it.
    pub fn place(&self, prefix: &str) -> String {
        let scheme = if self.inner.google.is_some() { "gs" } else { "s3" };
        format!("{scheme}://{}/{prefix}", google::OURS)
    }

    /// The file of the Google account with access.
    pub fn account(&self) -> Option<Value> {
        self.inner.google.as_ref().map(Google::account)
    }

    /// Environment variables with the endpoint and the credentials.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        if let Some(account) = self.account() {
            return vec![
                ("GOOGLE_BASE_URL", self.endpoint()),
                ("GOOGLE_SERVICE_ACCOUNT_KEY", account.to_string()),
            ];
        }
        vec![
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", "someone".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
            ("AWS_REGION", "nowhere".into()),
        ]
    }

    /// Sets how the bucket misbehaves.
    pub fn inject(&self, lies: Faults) {
        let mut inner = locked(&self.inner);
        inner.listed = inner.objects.keys().cloned().collect();
        (inner.requests, inner.waiting) = (0, 0);
        inner.lies = lies;
        self.inner.enough.notify_all();
    }

    /// The names of all objects, prefixed with their bucket.
    pub fn names(&self) -> Vec<String> {
        locked(&self.inner).objects.keys().cloned().collect()
    }

    /// All objects.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        locked(&self.inner).objects.clone()
    }

    /// Replaces all objects.
    pub fn set(&self, objects: BTreeMap<String, Vec<u8>>) {
        locked(&self.inner).objects = objects;
    }

    /// The number of requests that wait for others.
    pub fn waiting(&self) -> usize {
        locked(&self.inner).waiting
    }

    /// The number of requests since [`inject`](Self::inject) was called.
    pub fn requests(&self) -> u64 {
        locked(&self.inner).requests
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        locked(&self.inner).is_over = true;
        self.inner.enough.notify_all();
    }
}

fn locked(shared: &Shared) -> MutexGuard<'_, Inner> {
    shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The reply to a request; `None` if it is never answered.
fn serve(request: HttpRequest, shared: &Shared) -> Option<HttpReply> {
    let request = Request::new(request);
    let mut guard = locked(shared);
    guard.requests += 1;
    let lies = guard.lies.clone();
    let is_meant = |part: &Option<String>| {
        part.as_ref().is_some_and(|part| request.key.contains(part.as_str()))
    };
    if is_meant(&lies.silent) {
        return None;
    }
    if let Some((part, _)) = &lies.together
        && request.method() == "GET"
        && request.key.contains(part.as_str())
    {
        guard.waiting += 1;
        shared.enough.notify_all();
        let is_too_few = |inner: &mut Inner| {
            let wanted = inner.lies.together.as_ref().map_or(0, |(_, wanted)| *wanted);
            inner.waiting < wanted && !inner.is_over
        };
        let woken = shared.enough.wait_while(guard, is_too_few);
        guard = woken.unwrap_or_else(PoisonError::into_inner);
    }
    let is_down = lies.requests_max.is_some_and(|max| guard.requests > max);
    let answer = match lies.status {
        Some(status) => Answer::error(status, "Scripted", "scripted"),
        None if is_down => Answer::error(500, "InternalError", "scripted"),
        None => guard.answer(&request, shared.google.as_ref()),
    };
    let is_cut = is_meant(&lies.cut) && request.method() == "GET" && answer.status == 200;
    Some(answer.reply(is_cut))
}

impl Inner {
    fn answer(&mut self, request: &Request, google: Option<&Google>) -> Answer {
        if let Some(answer) = google.and_then(|google| google.meet(request, self.lies.is_open)) {
            return answer;
        }
        let key = &request.key;
        let is_there = self.objects.contains_key(key);
        let is_conditional = match google {
            Some(_) => request.header("x-goog-if-generation-match") == Some("0"),
            None => request.header("if-none-match").is_some(),
        };
        match request.method() {
            "GET" if request.parameter("list-type").as_deref() == Some("2") => {
                Answer::new(200, self.list(request, google.is_some()))
            }
            "GET" | "HEAD" => match self.objects.get(key) {
                Some(object) => Answer::new(200, self.object(key, object)),
                None => missing(),
            },
            "PUT" if is_conditional && self.lies.is_without_conditions => not_known(),
            "PUT" if is_conditional && is_there => {
                Answer::error(412, "PreconditionFailed", "It is there.")
            }
            "PUT" => {
                self.objects.insert(key.clone(), request.body().to_vec());
                Answer::new(200, "")
            }
            // S3 does not report a missing object.
            "DELETE" if google.is_some() && !is_there => missing(),
            "DELETE" => {
                self.objects.remove(key);
                Answer::new(204, "")
            }
            // Google Cloud Storage has no such request.
            "POST" if google.is_none() && request.parameter("delete").is_some() => {
                Answer::new(200, self.delete_many(key, &String::from_utf8_lossy(request.body())))
            }
            _ => not_known(),
        }
    }

    fn delete_many(&mut self, bucket: &str, xml: &str) -> String {
        let mut answer = String::from("<DeleteResult>");
        for part in xml.split("<Key>").skip(1) {
            let name = part.split("</Key>").next().unwrap_or_default();
            self.objects.remove(&format!("{}/{name}", bucket.trim_matches('/')));
            let _ = write!(answer, "<Deleted><Key>{name}</Key></Deleted>");
        }
        answer + "</DeleteResult>"
    }

    fn object(&self, key: &str, object: &[u8]) -> Vec<u8> {
        let mut bytes = object.to_vec();
        let is_flipped = self.lies.flip.as_ref().is_some_and(|part| key.contains(part.as_str()));
        if let (true, Some(byte)) = (is_flipped, bytes.last_mut()) {
            *byte ^= 1;
        }
        bytes
    }

    fn list(&self, request: &Request, is_google: bool) -> String {
        let bucket = request.key.trim_matches('/');
        let prefix = request.parameter("prefix").unwrap_or_default();
        let has_folders = request.parameter("delimiter").is_some();
        let names: Vec<&String> = match self.lies.is_listing_old {
            true => self.listed.iter().collect(),
            false => self.objects.keys().collect(),
        };
        let mut found = BTreeMap::new();
        for name in names {
            let name = name.strip_prefix(bucket).and_then(|name| name.strip_prefix('/'));
            let Some(name) = name.filter(|name| name.starts_with(&prefix)) else { continue };
            match name[prefix.len()..].split_once('/') {
                Some((folder, _)) if has_folders => {
                    let folder = format!("{prefix}{folder}/");
                    let xml = format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
                    found.insert(folder, xml);
                }
                _ => {
                    let xml = format!(
                        "<Contents><Key>{name}</Key>\
                         <LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"0\"</ETag>\
                         <Size>0</Size></Contents>"
                    );
                    found.insert(name.to_owned(), xml);
                }
            }
        }
        page(&found, request.parameter("continuation-token"), is_google)
    }
}

/// The page size of listings, small enough to need several pages.
fn page(found: &BTreeMap<String, String>, behind: Option<String>, is_short: bool) -> String {
    let len_max = if is_short { 3 } else { 1000 };
    let behind = behind.map(|token| token.trim_end_matches("==").to_owned()).unwrap_or_default();
    let mut rest = found.iter().filter(|(name, _)| **name > behind);
    let mut xml = String::from("<ListBucketResult>");
    let mut last = "";
    for (name, entry) in rest.by_ref().take(len_max) {
        xml += entry;
        last = name;
    }
    let is_truncated = rest.next().is_some();
    let _ = write!(xml, "<IsTruncated>{is_truncated}</IsTruncated>");
    if is_truncated {
        // As in real servers, the token ends in a character that must be encoded when it is sent
        // back.
        let _ = write!(xml, "<NextContinuationToken>{last}==</NextContinuationToken>");
    }
    xml + "</ListBucketResult>"
}

fn missing() -> Answer {
    Answer::error(404, "NoSuchKey", "The specified key does not exist.")
}

fn not_known() -> Answer {
    Answer::error(501, "NotImplemented", "scripted")
}
