//! The wake socket: one datagram wakes another process, without waiting.
//!
//! It also shows whether that process runs, because a socket without a reader refuses.

use std::{
    fs::File,
    io,
    os::{fd::AsRawFd as _, unix::net::UnixDatagram},
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
    net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with},
};

use super::{local_socket::bind_here, timespec};

/// Close-on-exec, where it can be set in the same call.
#[cfg(target_os = "linux")]
const FLAGS: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: SocketFlags = SocketFlags::empty();

/// Sends a datagram to the socket of this name in `dir`. Returns whether it has a reader, if that
/// is known.
#[inline]
pub fn send_wakeup(dir: &Path, name: &str, words: &[u8]) -> Option<bool> {
    match send(&dir.join(name), words) {
        // The queue is full: the reader will wake anyway.
        Ok(()) | Err(Errno::AGAIN | Errno::NOBUFS) => Some(true),
        Err(Errno::NAMETOOLONG) => send_wakeup_long_path(dir, name, words),
        Err(_) => Some(false),
    }
}

fn send(socket: &Path, words: &[u8]) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let from = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
    sendto(&from, words, SendFlags::DONTWAIT, &address).map(|_| ())
}

/// A socket's path has at most 108 bytes; that of an open directory in `/proc` is short.
fn send_wakeup_long_path(dir: &Path, name: &str, words: &[u8]) -> Option<bool> {
    let dir = File::open(dir).ok()?;
    let short = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
    send(&PathBuf::from(short), words).ok().map(|()| true)
}

/// Sends to the socket in the working directory, from within the process that reads it.
#[derive(Debug)]
pub struct WakeSender {
    socket: UnixDatagram,
    name: &'static str,
}

impl WakeSender {
    pub fn new(name: &'static str) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, name })
    }

    /// A full queue is fine: the reader will wake anyway.
    pub fn send_wakeup(&self, words: &[u8]) {
        let _ = self.socket.send_to(words, self.name);
    }
}

/// The receiving end.
#[derive(Debug)]
pub struct WakeListener(UnixDatagram);

impl WakeListener {
    /// Creates it in the working directory, whose path may be too long for a socket.
    pub fn here(name: &str) -> io::Result<Self> {
        let socket = bind_here(name, |name| UnixDatagram::bind(name))?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Waits for a datagram or the timeout.
    pub fn wait(&self, time_max: Duration) {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        // Interrupted or not, the queue is read next.
        let _ = poll(&mut watched, Some(&timespec(time_max)));
    }

    /// The length of the next datagram, if there is one.
    pub fn take(&self, words: &mut [u8]) -> Option<usize> {
        self.0.recv(words).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "worker.wake";

    #[test]
    fn waking_reports_whether_a_worker_listens() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(send_wakeup(dir.path(), NAME, b"hello"), Some(false), "there is no socket");
        let listening = UnixDatagram::bind(dir.path().join(NAME)).unwrap();
        assert_eq!(send_wakeup(dir.path(), NAME, b"hello"), Some(true));
        let mut received = [0; 32];
        let len = listening.recv(&mut received).unwrap();
        assert_eq!(&received[..len], b"hello");
        // A sender never waits, however full the queue is.
        assert!((0..2000).all(|_| send_wakeup(dir.path(), NAME, b"again") == Some(true)));
        drop(listening);
        assert_eq!(send_wakeup(dir.path(), NAME, b"hello"), Some(false), "no process has it open");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_long_path_works() {
        let outer = tempfile::tempdir().unwrap();
        let far = outer.path().join("x".repeat(120));
        std::fs::create_dir(&far).unwrap();
        assert_eq!(send_wakeup(&far, NAME, b"hello"), None);
        let dir = File::open(&far).unwrap();
        let short = format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd());
        let _listening = UnixDatagram::bind(short).unwrap();
        assert_eq!(send_wakeup(&far, NAME, b"hello"), Some(true));
    }
}
