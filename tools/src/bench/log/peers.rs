//! Other log engines, in a separate program, so that their dependencies stay out of ours.

use super::sample::PAYLOAD_BYTES;
use crate::bench::Outcome;
use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

pub(super) const NAMES: [&str; 3] = ["commitlog", "okaywal", "fjall"];

/// The built program.
#[derive(Debug)]
pub(super) struct Peers(PathBuf);

impl Peers {
    /// Builds it, which takes a minute the first time.
    pub(super) fn build() -> Outcome<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers");
        let manifest = root.join("Cargo.toml");
        let mut cargo = Command::new("cargo");
        cargo.args(["build", "--release", "--locked", "--manifest-path"]).arg(manifest);
        check(cargo.env_remove("CARGO_TARGET_DIR").output()?)?;
        Ok(Self(root.join("target/release/claude-mem-peers")))
    }

    pub(super) fn fill(&self, name: &str, dir: &Path, records: u64) -> Outcome<()> {
        let sizes = [records.to_string(), PAYLOAD_BYTES.to_string()];
        check(Command::new(&self.0).args(["fill", name]).arg(dir).args(sizes).output()?)?;
        Ok(())
    }

    /// Opens, checks and reads everything. Returns the time and the size.
    pub(super) fn read(&self, name: &str, dir: &Path) -> Outcome<(Duration, u64, u64)> {
        let text = check(Command::new(&self.0).args(["read", name]).arg(dir).output()?)?;
        let numbers: Vec<u64> =
            text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        match *numbers {
            [nanos, records, bytes] => Ok((Duration::from_nanos(nanos), records, bytes)),
            _ => Err(format!("{name} printed {text:?}").into()),
        }
    }
}

/// The output of a successful program.
pub(super) fn check(output: Output) -> Outcome<String> {
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim_end().to_owned().into());
    }
    Ok(String::from_utf8(output.stdout)?)
}
