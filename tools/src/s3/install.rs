//! Finding the server, and building it where it is missing.

use std::{
    env, fmt,
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::client;

/// The version that tests expect.
pub const VERSION: &str = "2.5.0";

/// Why there is no server.
#[derive(Debug)]
pub enum S3Error {
    /// It could not be built, or does not run.
    Broken {
        /// What was tried.
        command: String,
        /// What it printed last.
        output: String,
    },
    /// Something of its files or of the process could not be had.
    Io {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for S3Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { command, output } => {
                write!(f, "the S3 server cannot be used: `{command}` failed:\n{output}")
            }
            Self::Io { path, source } => {
                write!(f, "the S3 server cannot be used: {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for S3Error {}

impl S3Error {
    pub(super) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), source }
    }
}

/// The server's program, built by cargo on first use.
///
/// It is kept in `garage-VERSION` where the client is kept. Building takes some minutes: it is not optimised,
/// because a few hundred small objects are all that it is asked for. Processes that want it at the same time wait
/// for the first of them.
pub fn executable() -> Result<PathBuf, S3Error> {
    build(&client::cache(), Path::new(&env::var_os("CARGO").unwrap_or_else(|| "cargo".into())))
}

fn build(cache: &Path, cargo: &Path) -> Result<PathBuf, S3Error> {
    let name = format!("garage-{VERSION}");
    let finished = cache.join(&name);
    let program = finished.join("bin/garage");
    fs::create_dir_all(cache).map_err(S3Error::io(cache))?;
    let lock = cache.join(format!("{name}.lock"));
    let alone = File::create(&lock).map_err(S3Error::io(&lock))?;
    alone.lock().map_err(S3Error::io(&lock))?;
    if program.exists() {
        return Ok(program);
    }
    // Built aside and renamed when it runs, so that what an interrupted build leaves is never used; it is gone
    // on from, though.
    let unfinished = cache.join(format!("{name}.unfinished"));
    fs::create_dir_all(&unfinished).map_err(S3Error::io(&unfinished))?;
    run(&mut install(cargo, &unfinished))?;
    run(Command::new(unfinished.join("bin/garage")).arg("--version"))?;
    let _ = fs::remove_dir_all(unfinished.join("target"));
    fs::rename(&unfinished, &finished).map_err(S3Error::io(&finished))?;
    Ok(program)
}

fn install(cargo: &Path, into: &Path) -> Command {
    let mut command = Command::new(cargo);
    command.args(["install", "garage", "--locked", "--version", VERSION]);
    // Without what a test has no use for: other databases, metrics, another protocol.
    command
        .args(["--no-default-features", "--features", "bundled-libs,sqlite", "--root"])
        .arg(into);
    command.env("CARGO_TARGET_DIR", into.join("target")).current_dir("/");
    for (setting, value) in [("OPT_LEVEL", "0"), ("DEBUG", "false"), ("STRIP", "symbols")] {
        command.env(format!("CARGO_PROFILE_RELEASE_{setting}"), value);
    }
    command.env("CARGO_PROFILE_RELEASE_LTO", "off");
    // What cargo tells the tests that it runs is about us.
    for about_us in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_TARGET", "RUSTC_WRAPPER"]
    {
        command.env_remove(about_us);
    }
    command
}

fn run(command: &mut Command) -> Result<(), S3Error> {
    let program = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output().map_err(S3Error::io(&program))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = said.lines().rev().take(20).collect();
    let output = last.into_iter().rev().collect::<Vec<_>>().join("\n");
    Err(S3Error::Broken { command: format!("{command:?}"), output })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_cargo_are_passed_on_and_nothing_is_kept() {
        let cache = tempfile::tempdir().unwrap();
        let error = build(cache.path(), Path::new("/bin/false")).unwrap_err().to_string();
        assert!(error.contains("garage") && error.contains("failed"), "{error}");
        let error = build(cache.path(), Path::new("/nowhere/cargo")).unwrap_err().to_string();
        assert!(error.contains("/nowhere/cargo: No such file"), "{error}");
        // A cargo that installs nothing.
        assert!(build(cache.path(), Path::new("/bin/true")).is_err());
        assert!(!cache.path().join(format!("garage-{VERSION}")).exists());
    }
}
