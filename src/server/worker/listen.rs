//! The HTTP port: the configured one, else a free one.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};

use claude_mem_core::{
    diagnostics::{self, Level},
    paths::Paths,
    settings::{
        Settings,
        table::{WORKER_HOST, WORKER_PORT, WORKER_REMOTE},
    },
};

/// Listens. If the port is taken, uses any other: the actual one is in `worker.json`.
pub(super) fn listen(paths: &Paths, settings: &Settings) -> std::io::Result<TcpListener> {
    let host = host(paths, settings);
    let port = settings.get(&WORKER_PORT);
    let listener = TcpListener::bind(SocketAddr::new(host, port))
        .or_else(|_| TcpListener::bind(SocketAddr::new(host, 0)))?;
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

    fn listening(variables: &[(&str, &str)]) -> SocketAddr {
        let data = tempfile::tempdir().unwrap();
        let paths = Paths { home: None, data: data.path().into() };
        let settings = Settings::load(&paths, &Environment::fixed(variables));
        listen(&paths, &settings).unwrap().local_addr().unwrap()
    }

    #[test]
    fn an_occupied_port_is_replaced_by_a_free_one() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let held = TcpListener::bind(taken).unwrap();
        let port = taken.port().to_string();
        let found = listening(&[("CLAUDE_MEM_WORKER_PORT", &port)]);
        assert_ne!(found.port(), taken.port());
        drop(held);
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
