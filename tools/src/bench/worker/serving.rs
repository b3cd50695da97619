//! A running worker to measure.

use std::{
    fs,
    io::{BufRead, BufReader, Read as _, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::bench::{Outcome, Scratch, binary};

/// Time limit for the start of a worker, and for processing all events.
const PATIENCE: Duration = Duration::from_secs(600);
/// Time between two polls. Each poll costs the worker time, too.
const PAUSE: Duration = Duration::from_millis(50);

/// The unit of process times in Linux, in ticks per second.
const TICK: Duration = Duration::from_millis(10);

/// A worker, and its home directory.
pub(super) struct Serving {
    pub(super) home: PathBuf,
    child: Child,
    presence: Value,
}

impl Serving {
    pub(super) fn start(
        scratch: &Scratch,
        name: &str,
        environment: &[(&str, &str)],
    ) -> Outcome<Self> {
        let home = scratch.place(name);
        fs::create_dir_all(&home)?;
        let mut command = command(&home, &["worker", "run"], environment)?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut serving = Self { child: command.spawn()?, home, presence: Value::Null };
        let file = serving.data().join("worker.json");
        serving.presence = wait_for("a worker", || {
            let text = fs::read_to_string(&file).unwrap_or_default();
            serde_json::from_str(&text).ok()
        })?;
        Ok(serving)
    }

    pub(super) fn data(&self) -> PathBuf {
        self.home.join(".claude-mem")
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Opens a connection to `worker.sock`.
    pub(super) fn lines(&self) -> Outcome<Lines> {
        let stream = UnixStream::connect(self.data().join("worker.sock"))?;
        Ok(Lines { answers: BufReader::new(stream.try_clone()?), stream })
    }

    /// Opens an HTTP connection for consecutive requests.
    pub(super) fn http(&self) -> Outcome<Http> {
        let port = self.presence["port"].as_u64().ok_or("worker.json has a port")?;
        let token = self.presence["token"].as_str().ok_or("worker.json has a token")?;
        let host = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&host)?;
        stream.set_nodelay(true)?;
        let answers = BufReader::new(stream.try_clone()?);
        Ok(Http { stream, answers, host, token: token.to_owned() })
    }

    /// Waits until no event is unindexed or pending.
    pub(super) fn wait_until_done(&self) -> Outcome<()> {
        let mut lines = self.lines()?;
        wait_for("a worker without work", || {
            let health = lines.ask(&json!({"type": "health"})).ok()?;
            let is_none = |name: &str| health[name]["events"] == 0;
            (is_none("unfolded") && is_none("unanswered")).then_some(())
        })
    }

    /// The number of syncs of the log.
    pub(super) fn syncs(&self) -> Outcome<u64> {
        let health = self.lines()?.ask(&json!({"type": "health"}))?;
        Ok(health["syncs"].as_u64().ok_or("the health of a worker has `syncs`")?)
    }

    /// The number of tool uses in the log.
    pub(super) fn recorded(&self) -> Outcome<usize> {
        let output = command(&self.home, &["log", "--json"], &[])?.output()?;
        let text = String::from_utf8(output.stdout)?;
        Ok(text.lines().filter(|line| line.contains("\"ToolUsed\"")).count())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The processor time of a process, with all its threads.
pub(super) fn processor(pid: u32) -> Outcome<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Its name, in brackets, may contain anything.
    let (_, fields) = stat.rsplit_once(')').ok_or("a process has a name")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
    Ok(TICK * ticks as u32)
}

/// Our binary with this home directory.
pub(super) fn command(
    home: &Path,
    arguments: &[&str],
    environment: &[(&str, &str)],
) -> Outcome<Command> {
    let mut command = Command::new(binary()?);
    command.args(arguments).env_clear().env("HOME", home).env("PATH", "/usr/bin:/bin");
    command.env("CLAUDE_MEM_WORKER_AUTOSTART", "false").env("CLAUDE_MEM_WORKER_PORT", "0");
    command.env("CLAUDE_MEM_PROVIDER", "extract").envs(environment.iter().copied());
    command.current_dir(home);
    Ok(command)
}

/// JSON lines over `worker.sock`.
pub(super) struct Lines {
    stream: UnixStream,
    answers: BufReader<UnixStream>,
}

impl Lines {
    /// Sends this many lines at once, and reads all responses.
    pub(super) fn say(&mut self, lines: &str, count: usize) -> Outcome<()> {
        self.stream.write_all(lines.as_bytes())?;
        let mut answer = String::new();
        for _ in 0..count {
            answer.clear();
            self.answers.read_line(&mut answer)?;
            if !answer.contains("\"recorded\"") {
                return Err(format!("the worker responded {answer}").into());
            }
        }
        Ok(())
    }

    pub(super) fn ask(&mut self, message: &Value) -> Outcome<Value> {
        writeln!(self.stream, "{message}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }
}

/// HTTP over one connection.
pub(super) struct Http {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
    host: String,
    token: String,
}

impl Http {
    /// Sends one request and reads the whole response, which must be successful.
    pub(super) fn post(&mut self, path: &str, body: &str) -> Outcome<()> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.host,
            self.token,
            body.len()
        );
        self.stream.write_all(request.as_bytes())?;
        let (mut status, mut len) = (String::new(), 0);
        self.answers.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line)?;
            let line = line.trim_end().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                len = value.trim().parse()?;
            }
        }
        let mut body = vec![0; len];
        self.answers.read_exact(&mut body)?;
        match status.split(' ').nth(1) {
            Some("200" | "201" | "202") => Ok(()),
            _ => Err(format!("{status}{}", String::from_utf8_lossy(&body)).into()),
        }
    }
}

/// Polls until there is a result, with a time limit.
pub(super) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Outcome<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return Ok(found);
        }
        if Instant::now() > deadline {
            return Err(format!("{what} did not come").into());
        }
        thread::sleep(PAUSE);
    }
}
