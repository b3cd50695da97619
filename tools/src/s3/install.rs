//! Finds the server, and builds it if it is missing.

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

/// Why the server is not available.
#[derive(Debug)]
pub enum S3Error {
    /// It could not be built, or does not run.
    Broken {
        /// The command.
        command: String,
        /// The end of its output.
        output: String,
    },
    /// A file or the process is not accessible.
    Io {
        /// The path.
        path: PathBuf,
        /// The error of the system.
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

/// The server program, built by cargo on first use.
///
/// It is kept in `garage-VERSION` next to the client. Building takes some minutes: it is not
/// optimised, because it stores only a few hundred small objects. Concurrent processes wait for the
/// first one.
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
    // Built in a temporary directory and renamed when it runs, so that an interrupted build leaves
    // nothing that is used, but can be continued.
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

fn run(command: &mut Command) -> Result<(), S3Error> {
    let program = PathBuf::from(command.get_program());
    let output = command.stdin(Stdio::null()).output().map_err(S3Error::io(&program))?;
    if output.status.success() {
        return Ok(());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> = stderr.lines().rev().take(20).collect();
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
        // A fake cargo that installs nothing.
        assert!(build(cache.path(), Path::new("/bin/true")).is_err());
        assert!(!cache.path().join(format!("garage-{VERSION}")).exists());
    }
}
