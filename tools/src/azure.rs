//! A real server with the API of Azure Blob Storage for tests: Azurite.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use crate::client::{ClientError, azurite};

/// The account and key of every Azurite: both are published, and valid nowhere else.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// The container that every server has.
const CONTAINER: &str = "memory";
/// Printed before the address when the server is ready.
const READY: &str = "successfully listens on ";
/// Users create containers themselves, so `ship` does not.
const MAKE_CONTAINER: &str = "
    const [endpoint, account, key, container] = process.argv.slice(1);
    const version = '2021-08-06', date = new Date().toUTCString();
    const text = `PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:${date}\nx-ms-version:${version}\n`
        + `/${account}/${account}/${container}\nrestype:container`;
    const hmac = require('crypto').createHmac('sha256', Buffer.from(key, 'base64'));
    const headers = {'x-ms-date': date, 'x-ms-version': version,
        authorization: `SharedKey ${account}:${hmac.update(text).digest('base64')}`};
    fetch(`${endpoint}/${container}?restype=container`, {method: 'PUT', headers})
        .then(answer => process.exit(answer.status === 201 ? 0 : 1));";

/// A server with an empty container in memory. It is stopped when this is dropped.
#[derive(Debug)]
pub struct AzureServer {
    child: Child,
    endpoint: String,
}

impl AzureServer {
    /// Starts a server, and returns when it is ready.
    pub fn start() -> Result<Self, ClientError> {
        let (child, address) = start(&azurite()?.join(".bin/azurite-blob"))?;
        let server = Self { child, endpoint: format!("{address}/{ACCOUNT}") };
        let mut node = Command::new("node");
        node.args(["-e", MAKE_CONTAINER, &server.endpoint, ACCOUNT, KEY, CONTAINER]);
        match node.output() {
            Ok(output) if output.status.success() => Ok(server),
            Ok(output) => Err(broken(&node, &String::from_utf8_lossy(&output.stderr))),
            Err(source) => Err(ClientError::Missing { program: "node".into(), source }),
        }
    }

    /// The URL of the container, as users write it.
    pub fn place(&self, prefix: &str) -> String {
        format!("az://{CONTAINER}/{prefix}")
    }

    /// Environment variables with the endpoint and the credentials.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        vec![
            ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.into()),
            ("AZURE_STORAGE_ACCOUNT_KEY", KEY.into()),
            ("AZURE_ENDPOINT", self.endpoint.clone()),
            ("AZURE_ALLOW_HTTP", "true".into()),
        ]
    }
}

impl Drop for AzureServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the process and its address, on a free port.
fn start(program: &Path) -> Result<(Child, String), ClientError> {
    let mut command = Command::new(program);
    command.args(["--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence"]);
    command.args(["--silent", "--skipApiVersionCheck", "--disableTelemetry"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let missing = |source| ClientError::Missing { program: PathBuf::from(program), source };
    let mut child = command.spawn().map_err(missing)?;
    let mut stdout = BufReader::new(child.stdout.take().expect("it was piped"));
    let mut all = String::new();
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).map_err(missing)? == 0 {
            let _ = child.wait();
            return Err(broken(&command, &all));
        }
        if let Some((_, address)) = line.trim().split_once(READY) {
            // It would block if its output were not read.
            thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(drop));
            return Ok((child, address.to_owned()));
        }
        all += &line;
    }
}

fn broken(command: &Command, output: &str) -> ClientError {
    ClientError::Broken { command: format!("{command:?}"), output: output.into() }
}
