//! Where logs are made to be measured, and taken away again.

use super::Outcome;
use std::path::{Path, PathBuf};

/// A directory that goes when this does.
#[derive(Debug)]
pub(crate) struct Scratch(tempfile::TempDir);

impl Scratch {
    /// A new directory below `dir`, which should be on the disk that is to be measured.
    pub(crate) fn below(dir: &Path) -> Outcome<Self> {
        let made = tempfile::Builder::new().prefix("claude-mem-bench-").tempdir_in(dir);
        made.map(Self).map_err(|error| format!("cannot write in {}: {error}", dir.display()).into())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// A place in it for something new.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }
}
