//! Streams between processes of this machine: named pipes. Only their user may write to them, and
//! other machines cannot connect.

use std::{
    env,
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    sync::mpsc,
    thread,
    time::Duration,
};

use claude_mem_log::system::canonicalize;
use tokio::{
    io::{ReadHalf, WriteHalf},
    net::windows::named_pipe::{NamedPipeServer, ServerOptions},
};

/// All instances of the pipe are in use.
const BUSY: i32 = windows_sys::Win32::Foundation::ERROR_PIPE_BUSY.cast_signed();
/// Number of attempts while the pipe is busy, and the pause between them.
const TRIES_MAX: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The address of the listener.
#[derive(Debug)]
pub struct Listener {
    name: String,
}

/// The same, in an async runtime.
#[derive(Debug)]
pub struct Listening {
    name: String,
    next: NamedPipeServer,
}

impl Listener {
    /// A pipe for the working directory of this process.
    pub fn here(name: &str) -> io::Result<Self> {
        Ok(Self { name: pipe(&env::current_dir()?, name)? })
    }

    /// Starts to listen. Must be called within the runtime.
    pub fn listen(self) -> io::Result<Listening> {
        let next = ServerOptions::new().first_pipe_instance(true).create(&self.name)?;
        Ok(Listening { name: self.name, next })
    }
}

impl Listening {
    /// Waits for the next connection.
    pub async fn accept(
        &mut self,
    ) -> io::Result<(ReadHalf<NamedPipeServer>, WriteHalf<NamedPipeServer>)> {
        self.next.connect().await?;
        let next = ServerOptions::new().create(&self.name)?;
        Ok(tokio::io::split(std::mem::replace(&mut self.next, next)))
    }
}

/// The name of the pipe; pipe names are separate from file names. Two paths of one directory give
/// one pipe.
fn pipe(dir: &Path, name: &str) -> io::Result<String> {
    let dir = canonicalize(dir)?.to_string_lossy().to_lowercase();
    let hash = blake3::hash(dir.as_bytes()).to_hex();
    Ok(format!(r"\\.\pipe\claude-mem-{}-{name}", &hash[..16]))
}

/// Sends one line to the listener of this name for `dir`, and returns the response line.
pub fn ask(dir: &Path, name: &str, line: &str, time_max: Duration) -> io::Result<String> {
    let stream = connect(&pipe(dir, name)?)?;
    let line = format!("{line}\n");
    let (answered, answer) = mpsc::channel();
    // Reading from a pipe has no time limit, so it runs in its own thread.
    thread::spawn(move || answered.send(say(stream, &line)));
    answer.recv_timeout(time_max).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

fn say(mut stream: File, line: &str) -> io::Result<String> {
    stream.write_all(line.as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn connect(pipe: &str) -> io::Result<File> {
    for _ in 0..TRIES_MAX {
        match File::options().read(true).write(true).open(pipe) {
            Err(error) if error.raw_os_error() == Some(BUSY) => thread::sleep(PAUSE),
            other => return other,
        }
    }
    Err(io::Error::from_raw_os_error(BUSY))
}
