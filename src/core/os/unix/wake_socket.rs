//! Waking another process: one datagram, not waited for.
//!
//! It also tells whether somebody is there, because a socket that nobody has open any more refuses.

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

/// No child gets a copy of the socket, where that can be said in the same call.
#[cfg(target_os = "linux")]
const FLAGS: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: SocketFlags = SocketFlags::empty();

/// Rings the bell of this name in `dir`. Says whether somebody heard it, if that can be told.
#[inline]
pub fn ring(dir: &Path, name: &str, words: &[u8]) -> Option<bool> {
    match send(&dir.join(name), words) {
        // There are more rings waiting than anybody needs.
        Ok(()) | Err(Errno::AGAIN | Errno::NOBUFS) => Some(true),
        Err(Errno::NAMETOOLONG) => ring_far_away(dir, name, words),
        Err(_) => Some(false),
    }
}

fn send(socket: &Path, words: &[u8]) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let from = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
    sendto(&from, words, SendFlags::DONTWAIT, &address).map(|_| ())
}

/// The name of a socket has at most 108 bytes, but that of an open directory in `/proc` is short.
fn ring_far_away(dir: &Path, name: &str, words: &[u8]) -> Option<bool> {
    let dir = File::open(dir).ok()?;
    let short = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
    send(&PathBuf::from(short), words).ok().map(|()| true)
}

/// Rings from within the process that has the bell, and stands in its directory.
#[derive(Debug)]
pub struct Ringer {
    socket: UnixDatagram,
    name: &'static str,
}

impl Ringer {
    pub fn new(name: &'static str) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, name })
    }

    /// If there is no room for it, enough rings are waiting.
    pub fn ring(&self, words: &[u8]) {
        let _ = self.socket.send_to(words, self.name);
    }
}

/// Where rings are heard.
#[derive(Debug)]
pub struct Bell(UnixDatagram);

impl Bell {
    /// Makes it in the directory that this process stands in, whose name may be too long for a socket.
    pub fn here(name: &str) -> io::Result<Self> {
        let socket = bind_here(name, |name| UnixDatagram::bind(name))?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// Waits for a ring, or until the time is over.
    pub fn wait(&self, time_max: Duration) {
        let mut watched = [PollFd::new(&self.0, PollFlags::IN)];
        // Interrupted or not, what there is will be read.
        let _ = poll(&mut watched, Some(&timespec(time_max)));
    }

    /// The next ring, if there is one: the length of the words that came with it.
    pub fn take(&self, words: &mut [u8]) -> Option<usize> {
        self.0.recv(words).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "bell";

    #[test]
    fn a_ring_says_whether_somebody_heard_it() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(ring(dir.path(), NAME, b"hello"), Some(false), "there is no socket");
        let listening = UnixDatagram::bind(dir.path().join(NAME)).unwrap();
        assert_eq!(ring(dir.path(), NAME, b"hello"), Some(true));
        let mut heard = [0; 32];
        let len = listening.recv(&mut heard).unwrap();
        assert_eq!(&heard[..len], b"hello");
        // However many nobody takes, whoever rings does not wait.
        assert!((0..2000).all(|_| ring(dir.path(), NAME, b"again") == Some(true)));
        drop(listening);
        assert_eq!(ring(dir.path(), NAME, b"hello"), Some(false), "nobody has it open");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_long_name_is_no_obstacle() {
        let outer = tempfile::tempdir().unwrap();
        let far = outer.path().join("x".repeat(120));
        std::fs::create_dir(&far).unwrap();
        assert_eq!(ring(&far, NAME, b"hello"), None);
        let dir = File::open(&far).unwrap();
        let short = format!("/proc/self/fd/{}/{NAME}", dir.as_raw_fd());
        let _listening = UnixDatagram::bind(short).unwrap();
        assert_eq!(ring(&far, NAME, b"hello"), Some(true));
    }
}
