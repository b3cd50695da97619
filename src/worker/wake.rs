//! Waking the worker: one datagram after something was appended, not waited for.
//!
//! It also tells whether a worker is there, because a socket that nobody has open any more refuses. So a
//! hook needs no other check. What is sent is the sender's version: a worker that hears of a newer program
//! than its own makes room for it.

use std::{
    io,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
};

use rustix::{
    io::Errno,
    net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, sendto, socket_with},
};

/// The datagram socket in the data directory. The one for lines is `worker.sock`.
pub(super) const SOCKET: &str = "worker.wake";

/// No child gets a copy of the socket, where that can be said in the same call.
#[cfg(target_os = "linux")]
const FLAGS: SocketFlags = SocketFlags::CLOEXEC;
#[cfg(not(target_os = "linux"))]
const FLAGS: SocketFlags = SocketFlags::empty();

/// Tells the worker that the log has grown. Says whether there is one.
pub(crate) fn wake(data: &Path) -> bool {
    match send(&data.join(SOCKET)) {
        // It has more wake-ups waiting than it needs.
        Ok(()) | Err(Errno::AGAIN | Errno::NOBUFS) => true,
        Err(Errno::NAMETOOLONG) => wake_far_away(data),
        Err(_) => false,
    }
}

fn send(socket: &Path) -> Result<(), Errno> {
    let address = SocketAddrUnix::new(socket)?;
    let from = socket_with(AddressFamily::UNIX, SocketType::DGRAM, FLAGS, None)?;
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    sendto(&from, version, SendFlags::DONTWAIT, &address).map(|_| ())
}

/// The name of a socket has at most 108 bytes, but that of an open directory in `/proc` is short. Where
/// there is no `/proc`, the worker looks by itself within a second, and its lock says that it is there.
fn wake_far_away(data: &Path) -> bool {
    let short = || {
        let dir = std::fs::File::open(data).ok()?;
        let name = format!("/proc/self/fd/{}/{SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&dir));
        send(&PathBuf::from(name)).ok()
    };
    short().is_some() || crate::hooks::is_worker_running(data)
}

/// Wakes the projecting thread from within this process, which stands in the data directory.
#[derive(Debug)]
pub(super) struct Waker(UnixDatagram);

impl Waker {
    pub(super) fn new() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        Ok(Self(socket))
    }

    /// One of our own has something to say.
    pub(super) fn wake(&self) {
        // If there is no room, enough wake-ups are waiting.
        let _ = self.0.send_to(&[], SOCKET);
    }

    /// Something was appended for somebody else.
    pub(super) fn grown(&self) {
        let _ = self.0.send_to(env!("CARGO_PKG_VERSION").as_bytes(), SOCKET);
    }
}

/// Listens for wake-ups in the directory that this process stands in, whose name may be too long for a
/// socket.
pub(super) fn listen_here() -> io::Result<UnixDatagram> {
    bind_here(SOCKET, |name| UnixDatagram::bind(name))
}

/// Makes a socket in the directory that this process stands in. One that is left from an earlier worker is
/// in the way; whoever holds the lock may remove it.
pub(super) fn bind_here<T>(name: &str, bind: impl Fn(&str) -> io::Result<T>) -> io::Result<T> {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::remove_file(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = bind(name)?;
    // The data directory may have been opened to others by its owner; this is not for them.
    std::fs::set_permissions(name, std::fs::Permissions::from_mode(0o600))?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_says_whether_somebody_heard_it() {
        let data = tempfile::tempdir().unwrap();
        assert!(!wake(data.path()), "there is no socket");
        let listening = UnixDatagram::bind(data.path().join(SOCKET)).unwrap();
        assert!(wake(data.path()));
        let mut heard = [0; 32];
        let len = listening.recv(&mut heard).unwrap();
        assert_eq!(&heard[..len], env!("CARGO_PKG_VERSION").as_bytes());
        // However many nobody takes, the sender does not wait.
        assert!((0..2000).all(|_| wake(data.path())));
        drop(listening);
        assert!(!wake(data.path()), "nobody has it open");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_long_name_is_no_obstacle() {
        let outer = tempfile::tempdir().unwrap();
        let data = outer.path().join("x".repeat(120));
        std::fs::create_dir(&data).unwrap();
        assert!(!wake(&data));
        let dir = std::fs::File::open(&data).unwrap();
        let short = format!("/proc/self/fd/{}/{SOCKET}", std::os::fd::AsRawFd::as_raw_fd(&dir));
        let _listening = UnixDatagram::bind(short).unwrap();
        assert!(wake(&data));
    }
}
