//! A worker process for the tools: started in a home directory, reached over HTTP and
//! `worker.sock`, killed when dropped.

use std::{
    error::Error,
    fs,
    io::{self, BufRead, BufReader, Read as _, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Time limit for the start of a worker, and for processing all events.
const WAIT_MAX: Duration = Duration::from_secs(900);
/// Time between two polls. Each poll costs the worker time, too.
const PAUSE: Duration = Duration::from_millis(50);

/// A running worker.
#[derive(Debug)]
pub struct WorkerProcess {
    child: Child,
    data: PathBuf,
    /// The content of `worker.json`.
    presence: Value,
}

impl WorkerProcess {
    /// Starts a worker in this home directory, and waits until it listens.
    pub fn start(binary: &Path, home: &Path, environment: &[(&str, &str)]) -> Outcome<Self> {
        fs::create_dir_all(home)?;
        let mut command = command(binary, home, &["worker", "run"]);
        command.envs(environment.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let data = home.join(".claude-mem");
        let mut worker = Self { child: command.spawn()?, data, presence: Value::Null };
        let file = worker.data.join("worker.json");
        worker.presence = wait_for("a worker", || {
            serde_json::from_str(&fs::read_to_string(&file).unwrap_or_default()).ok()
        })?;
        Ok(worker)
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// Opens a connection to `worker.sock`.
    pub fn lines(&self) -> Outcome<WorkerLines> {
        let stream = UnixStream::connect(self.data.join("worker.sock"))?;
        Ok(WorkerLines { responses: BufReader::new(stream.try_clone()?), stream })
    }

    /// Opens an HTTP connection for consecutive requests.
    pub fn http(&self) -> Outcome<WorkerHttp> {
        let port = self.presence["port"].as_u64().ok_or("worker.json has a port")?;
        let token = self.presence["token"].as_str().ok_or("worker.json has a token")?;
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        Ok(WorkerHttp { stream: BufReader::new(stream), host, token: token.to_owned() })
    }

    /// Waits until it exits.
    pub fn wait(&mut self) -> io::Result<()> {
        self.child.wait().map(drop)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A command of the program in this home directory, with nothing of our environment. The rules
/// distill.
pub fn command(binary: &Path, home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").env("CLAUDE_MEM_WORKER_PORT", "0");
    command.env("CLAUDE_MEM_PROVIDER", "extract").current_dir(home);
    command
}

/// JSON lines over `worker.sock`.
#[derive(Debug)]
pub struct WorkerLines {
    stream: UnixStream,
    responses: BufReader<UnixStream>,
}

impl WorkerLines {
    /// Sends this many events at once, and reads all responses.
    pub fn record(&mut self, lines: &str, count: usize) -> Outcome<()> {
        self.stream.write_all(lines.as_bytes())?;
        let mut response = String::new();
        for _ in 0..count {
            response.clear();
            self.responses.read_line(&mut response)?;
            if !response.contains("\"recorded\"") {
                return Err(format!("the worker responded {response:?}").into());
            }
        }
        Ok(())
    }

    /// Sends one message, and returns the response.
    pub fn ask(&mut self, message: &Value) -> Outcome<Value> {
        writeln!(self.stream, "{message}")?;
        let mut response = String::new();
        self.responses.read_line(&mut response)?;
        Ok(serde_json::from_str(&response)?)
    }
}

/// HTTP over one connection.
#[derive(Debug)]
pub struct WorkerHttp {
    stream: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl WorkerHttp {
    /// Sends a request, and reads nothing.
    pub fn send(&mut self, method: &str, path: &str, body: &str) -> io::Result<()> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes())
    }

    /// Sends a request and returns the body of the response, which must be a success.
    pub fn request(&mut self, method: &str, path: &str, body: &str) -> Outcome<Vec<u8>> {
        self.send(method, path, body)?;
        let (mut status, mut length) = (String::new(), 0);
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            if line.trim_end().is_empty() {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse()?;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        match status.split(' ').nth(1) {
            Some("200" | "201" | "202") => Ok(body),
            _ => Err(format!("{path}: {status}{}", String::from_utf8_lossy(&body)).into()),
        }
    }

    /// As [`request`](Self::request), with JSON.
    pub fn ask(&mut self, method: &str, path: &str, body: Option<&Value>) -> Outcome<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        Ok(serde_json::from_slice(&self.request(method, path, &body)?)?)
    }

    /// The connection, to read a response that does not end.
    pub fn into_stream(self) -> BufReader<TcpStream> {
        self.stream
    }
}

/// Polls until there is a result, with a time limit.
pub fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> Outcome<T> {
    let deadline = Instant::now() + WAIT_MAX;
    loop {
        if let Some(found) = poll() {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("waited too long for {what}").into());
        }
        thread::sleep(PAUSE);
    }
}
