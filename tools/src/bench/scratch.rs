//! Temporary directories for benchmarks.

use super::BenchResult;
use std::path::{Path, PathBuf};

/// A directory that is deleted when this is dropped.
#[derive(Debug)]
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// Creates a directory below `dir`, which should be on the disk to be measured.
    pub(crate) fn below(dir: &Path) -> BenchResult<Self> {
        let made = tempfile::Builder::new().prefix("claude-mem-bench-").tempdir_in(dir);
        made.map(Self).map_err(|error| format!("cannot write in {}: {error}", dir.display()).into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// An unused path in it.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
