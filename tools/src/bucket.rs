//! A bucket on this machine that speaks enough of S3, and lies when told to.
//!
//! What real servers do right is tested with a real one. This one is for what they do wrong: errors, silence,
//! half an answer, old listings, other bytes.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

/// The bucket. It is gone when this is dropped.
#[derive(Debug)]
pub struct Bucket {
    address: SocketAddr,
    inner: Arc<Shared>,
}

/// What the connections share.
#[derive(Debug, Default)]
struct Shared {
    inner: Mutex<Inner>,
    /// Told of when there are enough who wait, or when it is over.
    enough: Condvar,
}

/// How it misbehaves. Nothing is wrong by default.
#[derive(Debug, Clone, Default)]
pub struct Lies {
    /// Every request is answered with this status.
    pub status: Option<u16>,
    /// After as many requests, nothing is answered any more but status 500.
    pub requests_max: Option<u64>,
    /// Listings show what was there when this was set.
    pub is_listing_old: bool,
    /// Objects whose name holds this are sent only in half, and the connection is closed.
    pub cut: Option<String>,
    /// Objects whose name holds this are sent with one bit changed.
    pub flip: Option<String>,
    /// Requests for objects whose name holds this are never answered.
    pub silent: Option<String>,
    /// Objects whose name holds this are sent only once as many of them are asked for at the same time.
    pub together: Option<(String, usize)>,
    /// Conditions are not known.
    pub is_without_conditions: bool,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<String, Vec<u8>>,
    listed: Vec<String>,
    lies: Lies,
    requests: u64,
    is_over: bool,
    /// Requests that wait for others.
    waiting: usize,
    /// Connections that wait for an answer that does not come.
    silent: Vec<TcpStream>,
}

struct Request {
    method: String,
    key: String,
    query: String,
    is_conditional: bool,
    body: Vec<u8>,
}

impl Bucket {
    /// Begins to listen on a free port.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let inner = Arc::new(Shared::default());
        let shared = Arc::clone(&inner);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if locked(&shared).is_over {
                    return;
                }
                let shared = Arc::clone(&shared);
                thread::spawn(move || serve(&stream, &shared));
            }
        });
        Ok(Self { address, inner })
    }

    /// What `AWS_ENDPOINT_URL` must be.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The variables that make a client use it, for a bucket of any name.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AWS_ENDPOINT_URL", self.endpoint()),
            ("AWS_ACCESS_KEY_ID", "someone".into()),
            ("AWS_SECRET_ACCESS_KEY", "secret".into()),
            ("AWS_REGION", "nowhere".into()),
        ]
    }

    /// From now on it lies like this.
    pub fn lie(&self, lies: Lies) {
        let mut inner = locked(&self.inner);
        inner.listed = inner.objects.keys().cloned().collect();
        (inner.requests, inner.waiting) = (0, 0);
        inner.lies = lies;
        self.inner.enough.notify_all();
    }

    /// Names of all objects, with that of the bucket in front.
    pub fn names(&self) -> Vec<String> {
        locked(&self.inner).objects.keys().cloned().collect()
    }

    /// All objects.
    pub fn objects(&self) -> BTreeMap<String, Vec<u8>> {
        locked(&self.inner).objects.clone()
    }

    /// Makes this its content.
    pub fn set(&self, objects: BTreeMap<String, Vec<u8>>) {
        locked(&self.inner).objects = objects;
    }

    /// Requests that wait for others to come.
    pub fn waiting(&self) -> usize {
        locked(&self.inner).waiting
    }

    /// Requests since it was last told how to lie.
    pub fn requests(&self) -> u64 {
        locked(&self.inner).requests
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        locked(&self.inner).is_over = true;
        self.inner.enough.notify_all();
        // So that it notices.
        let _ = TcpStream::connect(self.address);
    }
}

fn locked(shared: &Shared) -> MutexGuard<'_, Inner> {
    shared.inner.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(stream: &TcpStream, shared: &Shared) {
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read(&mut reader) {
        let mut guard = locked(shared);
        guard.requests += 1;
        let lies = guard.lies.clone();
        let is_meant = |part: &Option<String>| {
            part.as_ref().is_some_and(|part| request.key.contains(part.as_str()))
        };
        if is_meant(&lies.silent) {
            guard.silent.extend(stream.try_clone());
            return;
        }
        if let Some((part, _)) = &lies.together
            && request.method == "GET"
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
        let (status, body) = match lies.status {
            Some(status) => (status, error("Scripted")),
            None if is_down => (500, error("InternalError")),
            None => guard.answer(&request),
        };
        drop(guard);
        let is_head = request.method == "HEAD";
        let cut = is_meant(&lies.cut) && request.method == "GET" && status == 200;
        if write(stream, status, &body, is_head, cut).is_err() || cut {
            return;
        }
    }
}

impl Inner {
    fn answer(&mut self, request: &Request) -> (u16, Vec<u8>) {
        let Request { method, key, query, .. } = request;
        match method.as_str() {
            "GET" if query.contains("list-type=2") => (200, self.list(key, query)),
            "GET" | "HEAD" => match self.objects.get(key) {
                Some(object) => (200, self.object(key, object)),
                None => (404, error("NoSuchKey")),
            },
            "PUT" if request.is_conditional && self.lies.is_without_conditions => {
                (501, error("NotImplemented"))
            }
            "PUT" if request.is_conditional && self.objects.contains_key(key) => {
                (412, error("PreconditionFailed"))
            }
            "PUT" => {
                self.objects.insert(key.clone(), request.body.clone());
                (200, Vec::new())
            }
            "DELETE" => {
                self.objects.remove(key);
                (204, Vec::new())
            }
            "POST" if query.contains("delete") => {
                let body = String::from_utf8_lossy(&request.body).into_owned();
                let mut answer = String::from("<DeleteResult>");
                for part in body.split("<Key>").skip(1) {
                    let name = part.split("</Key>").next().unwrap_or_default();
                    self.objects.remove(&format!("{}/{name}", key.trim_matches('/')));
                    let _ = write!(answer, "<Deleted><Key>{name}</Key></Deleted>");
                }
                (200, (answer + "</DeleteResult>").into_bytes())
            }
            _ => (501, error("NotImplemented")),
        }
    }

    fn object(&self, key: &str, object: &[u8]) -> Vec<u8> {
        let mut bytes = object.to_vec();
        let is_flipped = self.lies.flip.as_ref().is_some_and(|part| key.contains(part.as_str()));
        if let (true, Some(byte)) = (is_flipped, bytes.last_mut()) {
            *byte ^= 1;
        }
        bytes
    }

    fn list(&self, key: &str, query: &str) -> Vec<u8> {
        let bucket = key.trim_matches('/');
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(known, _)| *known == name).map(|(_, value)| value.replace("%2F", "/"))
        };
        let prefix = value("prefix").unwrap_or_default();
        let current;
        let names = if self.lies.is_listing_old {
            &self.listed
        } else {
            current = self.objects.keys().cloned().collect();
            &current
        };
        let mut folders = Vec::new();
        let mut xml = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
        for name in names {
            let Some(name) = name.strip_prefix(bucket).and_then(|name| name.strip_prefix('/'))
            else {
                continue;
            };
            let Some(rest) = name.strip_prefix(prefix.as_str()) else { continue };
            match rest.split_once('/') {
                Some((folder, _)) if value("delimiter").is_some() => {
                    folders.push(format!("{prefix}{folder}/"));
                }
                _ => {
                    let _ = write!(
                        xml,
                        "<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
                         <ETag>\"0\"</ETag><Size>0</Size></Contents>"
                    );
                }
            }
        }
        folders.dedup();
        for folder in folders {
            let _ = write!(xml, "<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
        }
        (xml + "</ListBucketResult>").into_bytes()
    }
}

fn error(code: &str) -> Vec<u8> {
    format!("<Error><Code>{code}</Code><Message>as told</Message></Error>").into_bytes()
}

fn read(reader: &mut BufReader<&TcpStream>) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request = Request {
        method,
        key: path.trim_start_matches('/').to_owned(),
        query: query.to_owned(),
        is_conditional: false,
        body: Vec::new(),
    };
    let mut len = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().unwrap_or(0);
        }
        request.is_conditional |= line.starts_with("if-none-match:");
    }
    request.body.resize(len, 0);
    reader.read_exact(&mut request.body)?;
    Ok(Some(request))
}

fn write(
    mut stream: &TcpStream,
    status: u16,
    body: &[u8],
    is_head: bool,
    is_cut: bool,
) -> io::Result<()> {
    let mut answer = format!(
        "HTTP/1.1 {status} As Told\r\nContent-Length: {}\r\nETag: \"0\"\r\n\
         Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n",
        body.len()
    )
    .into_bytes();
    if !is_head {
        let len = if is_cut { body.len() / 2 } else { body.len() };
        answer.extend_from_slice(&body[..len]);
    }
    stream.write_all(&answer)?;
    stream.flush()
}
