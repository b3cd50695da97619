//! A real S3-compatible server for tests: a single node of Garage.
//!
//! It is the published crate, built once as a separate program and not linked with ours. Each
//! [`S3Server`] has its own directory, ports, key and empty bucket, and is deleted when dropped.

use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
};

use crate::client::{
    ClientError,
    install::{cache, check, directory, lock},
};

/// The version that tests expect.
const VERSION: &str = "2.5.0";

/// The bucket that every server has.
const BUCKET: &str = "memory";
const REGION: &str = "garage";
const KEY: &str = "GK31c2f218a2e44f485b94239e";
const SECRET: &str = "b892c0665f0ada8a4755dae98baa3b133590e11dae3bcc1f9d769d67f16c3835";
/// Printed when the server is ready.
const READY: &str = "S3 API server listening";

/// A server with an empty bucket. It is stopped when this is dropped.
#[derive(Debug)]
pub struct S3Server {
    child: Child,
    port: u16,
    dir: tempfile::TempDir,
}

impl S3Server {
    /// Starts a server, and returns when it is ready.
    pub fn start() -> Result<Self, ClientError> {
        let program = executable()?;
        let dir = tempfile::tempdir().map_err(missing(&program))?;
        let ports = free_ports().map_err(missing(&program))?;
        let child = start(&program, dir.path(), ports)?;
        Ok(Self { child, port: ports[0], dir })
    }

    /// The URL of the bucket, as users write it.
    pub fn place(&self, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}")
    }

    /// Environment variables with the endpoint and the credentials.
    pub fn variables(&self) -> Vec<(String, String)> {
        let endpoint = format!("http://127.0.0.1:{}", self.port);
        [
            ("CLAUDE_MEM_SHIP_ENDPOINT", endpoint.as_str()),
            ("CLAUDE_MEM_SHIP_REGION", REGION),
            ("CLAUDE_MEM_SHIP_ACCESS_KEY_ID", KEY),
            ("CLAUDE_MEM_SHIP_SECRET_ACCESS_KEY", SECRET),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .into()
    }

    /// Stops it and keeps its data.
    pub fn stop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again with the same data and ports.
    pub fn start_again(&mut self) -> Result<(), ClientError> {
        self.stop();
        let program = executable()?;
        let ports = free_ports().map_err(missing(&program))?;
        self.child = start(&program, self.dir.path(), [self.port, ports[1]])?;
        Ok(())
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Two unused ports.
fn free_ports() -> std::io::Result<[u16; 2]> {
    let listeners = [TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?];
    Ok([listeners[0].local_addr()?.port(), listeners[1].local_addr()?.port()])
}

fn start(program: &Path, dir: &Path, [port, rpc_port]: [u16; 2]) -> Result<Child, ClientError> {
    let config = dir.join("garage.toml");
    let text = format!(
        "metadata_dir = \"{0}/meta\"\ndata_dir = \"{0}/data\"\ndb_engine = \"sqlite\"\n\
         replication_factor = 1\nrpc_bind_addr = \"127.0.0.1:{rpc_port}\"\n\
         rpc_public_addr = \"127.0.0.1:{rpc_port}\"\nrpc_secret = \"{SECRET}\"\n\
         [s3_api]\ns3_region = \"{REGION}\"\napi_bind_addr = \"127.0.0.1:{port}\"\n",
        dir.display()
    );
    fs::write(&config, text).map_err(|source| directory(&config, source))?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&config).args(["server", "--single-node", "--default-bucket"]);
    command.env_clear().env("GARAGE_DEFAULT_ACCESS_KEY", KEY);
    command.env("GARAGE_DEFAULT_SECRET_KEY", SECRET).env("GARAGE_DEFAULT_BUCKET", BUCKET);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(missing(program))?;
    let mut stderr = BufReader::new(child.stderr.take().expect("it was piped"));
    let mut all = String::new();
    loop {
        let mut line = String::new();
        if stderr.read_line(&mut line).map_err(missing(program))? == 0 {
            let _ = child.wait();
            return Err(ClientError::Broken { command: format!("{command:?}"), output: all });
        }
        if line.contains(READY) {
            break;
        }
        all += &line;
    }
    // It would block if its output were not read.
    thread::spawn(move || stderr.lines().map_while(Result::ok).for_each(drop));
    Ok(child)
}

/// The server program, built by cargo on first use, like the packages in `tools/.cache`.
fn executable() -> Result<PathBuf, ClientError> {
    let name = format!("garage-{VERSION}");
    let cache = cache();
    let finished = cache.join(&name);
    let program = finished.join("bin/garage");
    let _alone = lock(&cache, &name).map_err(|source| directory(&cache, source))?;
    if program.exists() {
        return Ok(program);
    }
    // Built in a temporary directory and renamed when it runs, so that an interrupted build leaves
    // nothing that is used, but can be continued.
    let unfinished = cache.join(format!("{name}.unfinished"));
    fs::create_dir_all(&unfinished).map_err(|source| directory(&unfinished, source))?;
    check(&mut build(&unfinished), |output| output.status.success())?;
    let mut built = Command::new(unfinished.join("bin/garage"));
    check(built.arg("--version"), |output| output.status.success())?;
    let _ = fs::remove_dir_all(unfinished.join("target"));
    fs::rename(&unfinished, &finished).map_err(|source| directory(&finished, source))?;
    Ok(program)
}

fn build(into: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(["install", "garage", "--locked", "--version", VERSION]);
    // Without unused features: other databases, metrics, another protocol.
    command
        .args(["--no-default-features", "--features", "bundled-libs,sqlite", "--root"])
        .arg(into);
    command.env("CARGO_TARGET_DIR", into.join("target")).current_dir("/");
    for (setting, value) in [("OPT_LEVEL", "0"), ("DEBUG", "false"), ("STRIP", "symbols")] {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    command.env("CARGO_PROFILE_RELEASE_LTO", "off");
    // Variables that cargo sets for tests are about our package.
    for about_us in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"]
    {
        command.env_remove(about_us);
    }
    command
}

fn missing(program: &Path) -> impl FnOnce(std::io::Error) -> ClientError {
    move |source| ClientError::Missing { program: program.to_owned(), source }
}
