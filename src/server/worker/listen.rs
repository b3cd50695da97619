//! The HTTP port: the one of the last worker, else the configured one, else a free one.

use std::{
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
};

use claude_mem_core::{
    diagnostics::{self, Level},
    paths::Paths,
    settings::{
        Settings,
        table::{WORKER_HOST, WORKER_PORT, WORKER_REMOTE},
    },
    user_file::{self, Readers},
};

/// The configured port and the one that was used for it. If the configured one is taken, the next
/// worker still uses the same port, so that open pages and bookmarks find it. 0 asks for another
/// port each time.
const FILE: &str = "worker.port";

/// Listens. If the port is taken, uses any other: the actual one is in `worker.json`.
pub(super) fn listen(paths: &Paths, settings: &Settings) -> std::io::Result<TcpListener> {
    let host = host(paths, settings);
    let port = settings.get(&WORKER_PORT);
    let file = paths.data.join(FILE);
    let last = fs::read_to_string(&file).unwrap_or_default();
    let last =
        last.trim().split_once(' ').filter(|(configured, _)| *configured == port.to_string());
    let last = last.and_then(|(_, used)| used.parse().ok()).filter(|_| port != 0);
    // Binds to the first of these that is free.
    let ports = last.into_iter().chain([port, 0]);
    let addresses: Vec<_> = ports.map(|port| SocketAddr::new(host, port)).collect();
    let listener = TcpListener::bind(&addresses[..])?;
    let used = listener.local_addr()?.port();
    if port != 0 && last != Some(used) {
        // Without it, the next worker may use another port.
        let _ = user_file::write(&file, format!("{port} {used}\n").as_bytes(), Readers::Owner);
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// The address to listen on. A public address needs a second setting, because another program may
/// write the same settings file with less care.
fn host(paths: &Paths, settings: &Settings) -> IpAddr {
    let wanted = settings.get(&WORKER_HOST);
    if wanted.is_loopback() || settings.get(&WORKER_REMOTE) {
        return wanted;
    }
    let message = format_args!(
        "{} is `{wanted}`, which is ignored: other machines can reach it, and {} is not set",
        WORKER_HOST.name, WORKER_REMOTE.name
    );
    diagnostics::record(&paths.data, Level::Warn, message);
    IpAddr::V4(Ipv4Addr::LOCALHOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use claude_mem_core::environment::Environment;
    use std::path::Path;

    fn listening(variables: &[(&str, &str)]) -> SocketAddr {
        let data = tempfile::tempdir().unwrap();
        listening_in(data.path(), variables)
    }

    fn listening_in(data: &Path, variables: &[(&str, &str)]) -> SocketAddr {
        let paths = Paths { home: None, data: data.into() };
        let settings = Settings::load(&paths, &Environment::fixed(variables));
        listen(&paths, &settings).unwrap().local_addr().unwrap()
    }

    #[test]
    fn an_occupied_port_is_replaced_by_a_free_one_that_the_next_worker_uses_too() {
        let data = tempfile::tempdir().unwrap();
        let held = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = held.local_addr().unwrap().port();
        let listening = |port: u16| {
            let port = port.to_string();
            listening_in(data.path(), &[("CLAUDE_MEM_WORKER_PORT", &port)]).port()
        };
        let used = listening(port);
        assert_ne!(used, port);
        drop(held);
        assert_eq!(listening(port), used);
        let other = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert_eq!(listening(other), other, "the setting was changed");
    }

    #[test]
    fn a_public_address_needs_two_settings() {
        let any = ("CLAUDE_MEM_WORKER_HOST", "0.0.0.0");
        let port = ("CLAUDE_MEM_WORKER_PORT", "0");
        assert!(listening(&[any, port]).ip().is_loopback());
        let remote = ("CLAUDE_MEM_WORKER_REMOTE", "true");
        assert!(listening(&[any, port, remote]).ip().is_unspecified());
        assert!(listening(&[("CLAUDE_MEM_WORKER_HOST", "localhost"), port]).ip().is_loopback());
        assert!(listening(&[("CLAUDE_MEM_WORKER_HOST", "a b c"), port]).ip().is_loopback());
    }
}
