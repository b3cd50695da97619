//! Schemathesis, a Python program that tests use, installed if missing.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::install::{ClientError, cache, check, directory, lock, remove};

/// The version of Schemathesis that tests use.
const SCHEMATHESIS_VERSION: &str = "4.32.5";

/// The program that tests an HTTP API against its OpenAPI description, in a virtual environment
/// next to the other clients.
pub fn schemathesis() -> Result<PathBuf, ClientError> {
    let package = format!("schemathesis=={SCHEMATHESIS_VERSION}");
    let dir = install(&cache(), &package, Path::new("python3"))?;
    Ok(dir.join("bin/schemathesis"))
}

/// Returns the installation directory. A virtual environment cannot be moved, so a file in it marks
/// it as complete.
fn install(cache: &Path, package: &str, python: &Path) -> Result<PathBuf, ClientError> {
    let name = package.replace("==", "-");
    let dir = cache.join(&name);
    let _alone = lock(cache, &name).map_err(|source| directory(cache, source))?;
    let complete = dir.join("complete");
    if complete.exists() {
        return Ok(dir);
    }
    remove(&dir)?;
    check(Command::new(python).args(["-m", "venv"]).arg(&dir), |output| output.status.success())?;
    let mut pip = Command::new(dir.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", package]);
    check(&mut pip, |output| output.status.success())?;
    fs::write(&complete, "").map_err(|source| directory(&complete, source))?;
    Ok(dir)
}
