//! A TLS proxy in front of a server without TLS.
//!
//! The certificate is for `localhost`, for a hundred years, and signed by an authority that no
//! system trusts and whose key was deleted. The proxy's key is next to it and is valid for nothing
//! else.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::client::ClientError;

/// Accepts connections and forwards them.
const DOOR: &str = "
    const [certificate, key, port] = process.argv.slice(1), {readFileSync} = require('fs');
    const {connect} = require('net'), {createServer} = require('tls');
    const options = {cert: readFileSync(certificate), key: readFileSync(key)};
    const proxy = createServer(options, outside => {
        const inside = connect(port, '127.0.0.1');
        outside.pipe(inside).pipe(outside);
        for (const one of [outside, inside]) one.on('error', () => [outside, inside].forEach(end => end.destroy()));
    });
    proxy.on('tlsClientError', () => {});
    proxy.listen(0, '127.0.0.1', () => console.log(proxy.address().port));";

/// The proxy. It is stopped when this is dropped.
#[derive(Debug)]
pub struct TlsProxy {
    process: Child,
    port: u16,
}

impl TlsProxy {
    /// Starts a proxy in front of the server at this address, such as `http://127.0.0.1:8080`.
    pub fn before(address: &str) -> Result<Self, ClientError> {
        let port_behind = address.rsplit(':').next().unwrap_or_default();
        let mut command = Command::new("node");
        command.args(["-e", DOOR]).args([file("server.pem"), file("server.key")]).arg(port_behind);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let missing = |source| ClientError::Missing { program: "node".into(), source };
        let mut process = command.spawn().map_err(missing)?;
        let mut line = String::new();
        let mut stdout = BufReader::new(process.stdout.take().expect("it was piped"));
        stdout.read_line(&mut line).map_err(missing)?;
        if let Ok(port) = line.trim().parse() {
            return Ok(Self { process, port });
        }
        let _ = process.wait();
        Err(ClientError::Broken { command: format!("{command:?}"), output: line })
    }

    /// The address of the proxy.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The certificate of its authority, for programs that should trust it.
    pub fn authority() -> PathBuf {
        file("authority.pem")
    }
}

impl Drop for TlsProxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls").join(name)
}
