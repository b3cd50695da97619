//! `pack-model`: builds `src/model/arctic-embed-s.bin`.

use std::{error::Error, fs, path::PathBuf, process::ExitCode};

use super::say;

/// Build the embedding model from its package
///
/// The package is `bot_brain-0.8.0-py3-none-any.whl`, from `pip download --no-deps
/// bot-brain==0.8.0`. Checks the digests of the package, of its parts, and of the result. Writes
/// nothing if one differs.
#[derive(Debug, clap::Args)]
pub(crate) struct PackModel {
    /// The package
    wheel: PathBuf,
    /// The output file
    out: PathBuf,
}

impl PackModel {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let packed = crate::pack::pack(&fs::read(&self.wheel)?)?;
        fs::write(&self.out, &packed)?;
        say(&format!("wrote {} bytes to {}", packed.len(), self.out.display()))?;
        Ok(ExitCode::SUCCESS)
    }
}
