//! Finds the client, and installs it if it is missing.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The version that tests expect.
pub const VERSION: &str = "2.1.325";

/// The version of the official MCP client that tests use.
const ESBUILD_VERSION: &str = "0.28.2";
const MCP_SDK_VERSION: &str = "1.32.2";

/// The version of Playwright, which drives the browser in tests.
const PLAYWRIGHT_VERSION: &str = "1.65.0";

/// The version of axe-core, which checks the accessibility of pages.
const AXE_VERSION: &str = "4.14.0";

/// The version of the Azure-compatible server that tests ship to.
const AZURITE_VERSION: &str = "3.37.0";

/// Why the client cannot be installed or run.
#[derive(Debug)]
pub enum ClientError {
    /// A program needed for the installation, usually npm, could not be started.
    Missing {
        /// The command as given.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// npm failed, or the installed program does not run.
    Broken {
        /// The command.
        command: String,
        /// What it printed.
        output: String,
    },
    /// The directory for the client could not be prepared.
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { program, source } => {
                let program = program.display();
                write!(f, "cannot run {program}: {source}")
            }
            Self::Broken { command, output } => {
                write!(f, "`{command}` failed:\n{output}")
            }
            Self::Directory { path, source } => {
                write!(f, "cannot write in {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for ClientError {}

/// An npm package, and how to check that it runs.
#[derive(Debug)]
pub(super) struct Package<'v> {
    /// The name of its directory, before the version.
    pub(super) name: &'static str,
    /// Its name in the registry.
    pub(super) registered_as: &'static str,
    pub(super) version: &'v str,
    /// The program to run, below the installation directory.
    pub(super) program: &'static str,
    pub(super) args: &'static [&'static str],
    /// The start of its output.
    pub(super) prints: &'v str,
    /// Whether it does not run with Node 20.
    pub(super) needs_newer_node: bool,
}

/// For packages that need more than Node 20. It takes about 190 MB.
const NEWER_NODE: Package<'static> = Package {
    name: "node",
    registered_as: "node",
    version: "22.23.3",
    program: "node_modules/node/bin/node",
    args: &["--version"],
    prints: "v22.23.3",
    needs_newer_node: false,
};

/// The client of [`VERSION`], installed if need be.
pub fn executable() -> Result<PathBuf, ClientError> {
    executable_of(VERSION)
}

/// The client of this version, installed by npm on first use.
///
/// It is kept in `claude-code-VERSION` under `tools/.cache`, or under the directory in the
/// environment variable `CLAUDE_MEM_CLIENT_DIR`. Concurrent processes wait for the first one. It
/// takes about 350 MB.
pub fn executable_of(version: &str) -> Result<PathBuf, ClientError> {
    let package = claude_code(version);
    Ok(install_package(&package)?.join(package.program))
}

/// Returns the installation directory of a package. The first call installs it.
pub(super) fn install_package(package: &Package<'_>) -> Result<PathBuf, ClientError> {
    install(&cache(), package, Path::new("npm"))
}

/// The `node_modules` of the official MCP client for JavaScript, an independent check of our
/// server.
pub fn mcp_sdk() -> Result<PathBuf, ClientError> {
    modules(
        "mcp-sdk",
        "@modelcontextprotocol/sdk",
        MCP_SDK_VERSION,
        &["node", "-p", "typeof require('@modelcontextprotocol/sdk/client/stdio.js')"],
    )
}

/// The `node_modules` of Playwright. It includes no browser: tests use the system's.
pub fn playwright() -> Result<PathBuf, ClientError> {
    modules(
        "playwright-core",
        "playwright-core",
        PLAYWRIGHT_VERSION,
        &["node", "-p", "typeof require('playwright-core').chromium"],
    )
}

/// The `node_modules` of axe-core.
pub fn axe() -> Result<PathBuf, ClientError> {
    modules("axe-core", "axe-core", AXE_VERSION, &["node", "-p", "typeof require('axe-core')"])
}

/// The `node_modules` of the TypeScript compiler.
pub fn esbuild() -> Result<PathBuf, ClientError> {
    let probe = &["node", "-p", "typeof require('esbuild')"];
    modules("esbuild", "esbuild", ESBUILD_VERSION, probe)
}

/// The `node_modules` of Azurite. They take about 360 MB.
pub fn azurite() -> Result<PathBuf, ClientError> {
    let probe = &["node", "-p", "typeof require('azurite/package.json')"];
    modules("azurite", "azurite", AZURITE_VERSION, probe)
}

/// Node modules; they are installed if a probe prints `object`.
fn modules(
    name: &'static str,
    registered_as: &'static str,
    version: &str,
    probe: &'static [&'static str],
) -> Result<PathBuf, ClientError> {
    let package = Package {
        name,
        registered_as,
        version,
        program: "/usr/bin/env",
        args: probe,
        prints: "object",
        needs_newer_node: false,
    };
    Ok(install_package(&package)?.join("node_modules"))
}

/// The directory for all installed packages.
pub(crate) fn cache() -> PathBuf {
    env::var_os("CLAUDE_MEM_CLIENT_DIR")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join(".cache"), PathBuf::from)
}

pub(super) const fn claude_code(version: &str) -> Package<'_> {
    Package {
        name: "claude-code",
        registered_as: "@anthropic-ai/claude-code",
        version,
        program: "node_modules/.bin/claude",
        args: &["--version"],
        prints: version,
        needs_newer_node: false,
    }
}

/// Returns the installation directory.
fn install(cache: &Path, package: &Package<'_>, npm: &Path) -> Result<PathBuf, ClientError> {
    let name = format!("{}-{}", package.name, package.version);
    let finished = cache.join(&name);
    let _alone = lock(cache, &name).map_err(|source| directory(cache, source))?;
    if finished.join("node_modules").exists() {
        return Ok(finished);
    }
    // Installed in a temporary directory and renamed when it runs, so that an interrupted npm
    // leaves nothing that is used.
    let unfinished = cache.join(format!("{name}.unfinished"));
    remove(&unfinished)?;
    remove(&finished)?;
    fs::create_dir_all(&unfinished).map_err(|source| directory(&unfinished, source))?;
    install_into(&unfinished, package, npm)?;
    fs::rename(&unfinished, &finished).map_err(|source| directory(&finished, source))?;
    Ok(finished)
}

/// The PATH for a package, with its Node.
pub(super) fn search_path(package: &Package<'_>) -> Result<OsString, ClientError> {
    let path = env::var_os("PATH").unwrap_or_default();
    if !package.needs_newer_node {
        return Ok(path);
    }
    let mut newer = install_package(&NEWER_NODE)?.join("node_modules/node/bin").into_os_string();
    newer.push(":");
    newer.push(path);
    Ok(newer)
}

pub(crate) fn lock(cache: &Path, name: &str) -> io::Result<File> {
    fs::create_dir_all(cache)?;
    let file = File::create(cache.join(format!("{name}.lock")))?;
    file.lock()?;
    Ok(file)
}

fn install_into(prefix: &Path, package: &Package<'_>, npm: &Path) -> Result<(), ClientError> {
    let mut npm = Command::new(npm);
    npm.args(["install", "--no-audit", "--no-fund", "--prefix"]).arg(prefix);
    npm.arg(format!("{}@{}", package.registered_as, package.version));
    check(&mut npm, |output| output.status.success())?;
    // npm reports success even if a native part is missing or does not fit.
    let mut program = Command::new(prefix.join(package.program));
    program.env("PATH", search_path(package)?);
    check(program.args(package.args).current_dir(prefix), |output| {
        output.status.success() && output.stdout.starts_with(package.prints.as_bytes())
    })
}

pub(crate) fn check(
    command: &mut Command,
    good: impl Fn(&Output) -> bool,
) -> Result<(), ClientError> {
    let output = command.stdin(Stdio::null()).output().map_err(|source| {
        let program = PathBuf::from(command.get_program());
        ClientError::Missing { program, source }
    })?;
    if good(&output) {
        return Ok(());
    }
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let output = format!("{}\n{out}{err}", output.status);
    Err(ClientError::Broken { command: format!("{command:?}"), output })
}

pub(super) fn remove(path: &Path) -> Result<(), ClientError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(directory(path, source)),
        _ => Ok(()),
    }
}

pub(crate) fn directory(path: &Path, source: io::Error) -> ClientError {
    ClientError::Directory { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A fake npm, for tests of its failures and of how often it runs.
    fn npm(directory: &Path, script: &str) -> PathBuf {
        let path = directory.join("npm");
        let text = directory.join("npm.sh");
        fs::write(&text, format!("#!/bin/sh\n{script}\n")).unwrap();
        // Copied by another process: a file that this process has open for writing while another
        // test forks cannot be executed.
        let copied = Command::new("install").arg(&text).arg(&path).status().unwrap();
        assert!(copied.success());
        path
    }

    #[test]
    fn a_client_that_does_not_run_is_not_kept() {
        let cache = tempfile::tempdir().unwrap();
        let fake = "\
            mkdir -p \"$5/node_modules/.bin\"; printf '#!/bin/sh\\n\
            echo no native part; exit 1' >\"$5/node_modules/.bin/claude\"; chmod +x \
            \"$5/node_modules/.bin/claude\"";
        let npm = npm(cache.path(), fake);
        let message = install(cache.path(), &claude_code("1.2.3"), &npm).unwrap_err().to_string();
        assert!(message.contains("no native part"), "{message}");
        assert!(!cache.path().join("claude-code-1.2.3").exists());
    }

    #[test]
    fn concurrent_installations_install_once() {
        let cache = tempfile::tempdir().unwrap();
        let runs = cache.path().join("runs");
        let fake = format!(
            "echo run >>{}; mkdir -p \"$5/node_modules/.bin\"; printf '#!/bin/sh\\necho 1.2.3' \
             >\"$5/node_modules/.bin/claude\"; chmod +x \"$5/node_modules/.bin/claude\"",
            runs.display()
        );
        let npm = npm(cache.path(), &fake);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    assert!(install(cache.path(), &claude_code("1.2.3"), &npm).unwrap().exists());
                });
            }
        });
        assert_eq!(fs::read_to_string(runs).unwrap(), "run\n");
    }
}
