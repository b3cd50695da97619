//! A door with a certificate in front of a server that has none, for what goes over TLS.
//!
//! The certificate is for `localhost`, for a hundred years, and signed by an authority that no system knows and
//! whose key was deleted. The proxy's key is next to it and is valid for nothing else.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::client::ClientError;

/// Takes connections, and passes on what is said over them.
const DOOR: &str = "
    const [certificate, key, port] = process.argv.slice(1), {readFileSync} = require('fs');
    const {connect} = require('net'), {createServer} = require('tls');
    const options = {cert: readFileSync(certificate), key: readFileSync(key)};
    const door = createServer(options, outside => {
        const inside = connect(port, '127.0.0.1');
        outside.pipe(inside).pipe(outside);
        for (const one of [outside, inside]) one.on('error', () => [outside, inside].forEach(end => end.destroy()));
    });
    door.on('tlsClientError', () => {});
    door.listen(0, '127.0.0.1', () => console.log(door.address().port));";

/// The door. It is shut when this is dropped.
#[derive(Debug)]
pub struct TlsDoor {
    process: Child,
    port: u16,
}

impl TlsDoor {
    /// Opens one in front of the server at this address, as in `http://127.0.0.1:8080`.
    pub fn before(address: &str) -> Result<Self, ClientError> {
        let port_behind = address.rsplit(':').next().unwrap_or_default();
        let mut command = Command::new("node");
        command.args(["-e", DOOR]).args([file("server.pem"), file("server.key")]).arg(port_behind);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let missing = |source| ClientError::Missing { program: "node".into(), source };
        let mut process = command.spawn().map_err(missing)?;
        let mut line = String::new();
        let mut said = BufReader::new(process.stdout.take().expect("it was piped"));
        said.read_line(&mut line).map_err(missing)?;
        if let Ok(port) = line.trim().parse() {
            return Ok(Self { process, port });
        }
        let _ = process.wait();
        Err(ClientError::Broken { command: format!("{command:?}"), output: line })
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The certificate of its authority, for programs that should trust it.
    pub fn authority() -> PathBuf {
        file("authority.pem")
    }
}

impl Drop for TlsDoor {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tls").join(name)
}
