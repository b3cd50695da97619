//! Unix domain sockets between processes of this machine.

use std::{
    fs::{self, File, Permissions},
    io::{self, BufRead as _, BufReader, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{
            fs::PermissionsExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::Path,
    time::Duration,
};

use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// A listening socket.
#[derive(Debug)]
pub struct Listener(UnixListener);

/// A listening socket in the async runtime.
#[derive(Debug)]
pub struct Listening(tokio::net::UnixListener);

impl Listener {
    /// Creates a socket of this name in the working directory.
    pub fn here(name: &str) -> io::Result<Self> {
        let listener = bind_here(name, |name| UnixListener::bind(name))?;
        listener.set_nonblocking(true)?;
        Ok(Self(listener))
    }

    /// Starts to listen. Call it within the runtime.
    pub fn listen(self) -> io::Result<Listening> {
        tokio::net::UnixListener::from_std(self.0).map(Listening)
    }
}

impl Listening {
    /// Waits for the next connection.
    pub async fn accept(&mut self) -> io::Result<(OwnedReadHalf, OwnedWriteHalf)> {
        let (stream, _) = self.0.accept().await?;
        Ok(stream.into_split())
    }
}

/// Creates a socket in the working directory. Removes one that an earlier process left; the lock
/// allows that.
pub(super) fn bind_here<T>(name: &str, bind: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    match fs::remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = bind(name)?;
    // Others may be able to enter the directory; the socket is for its owner only.
    fs::set_permissions(name, Permissions::from_mode(0o600))?;
    Ok(socket)
}

/// Sends one line to the socket of this name in `dir`, and returns the line of the response.
pub fn ask(dir: &Path, name: &str, line: &str, time_max: Duration) -> io::Result<String> {
    let mut stream = connect(dir, name)?;
    stream.set_read_timeout(Some(time_max))?;
    stream.set_write_timeout(Some(time_max))?;
    writeln!(stream, "{line}")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn connect(dir: &Path, name: &str) -> io::Result<UnixStream> {
    match UnixStream::connect(dir.join(name)) {
        // The path is too long for a socket; that of an open directory in `/proc` is short.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let dir = File::open(dir)?;
            UnixStream::connect(format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()))
        }
        other => other,
    }
}
