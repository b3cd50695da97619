//! `crash`: kills processes that use a log, and checks that nothing is lost.

use claude_mem_tools::crash::{Role, Storm, play, storm};
use std::{env, error::Error, path::PathBuf, process::ExitCode};

/// Kill processes that append to a log, and check that nothing is lost
///
/// Starts writers, a maintainer and a tail on a new log and kills them (SIGKILL) at random moments,
/// replacing each. Then the log is read: every acknowledged record must be there exactly once, with
/// the right content, and a tail must have received each once. Fails if not.
#[derive(Debug, clap::Args)]
pub(crate) struct Crash {
    /// Number of processes to kill
    #[arg(long, default_value_t = 500)]
    kills: u64,
    /// Number of processes that append at the same time
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Seed of the random times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for the log, which must be empty [default: a temporary directory]
    #[arg(long)]
    dir: Option<PathBuf>,
    /// The role of a process in the storm
    #[arg(long, hide = true, requires_all = ["number", "dir"])]
    role: Option<Role>,
    /// The number of a process in the storm
    #[arg(long, hide = true)]
    number: Option<u64>,
}

impl Crash {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        if let (Some(role), Some(dir), Some(number)) = (self.role, &self.dir, self.number) {
            play(role, dir, number)?;
            return Ok(ExitCode::SUCCESS);
        }
        let temporary = tempfile::tempdir()?;
        let outcome = storm(&Storm {
            program: env::current_exe()?,
            dir: self.dir.unwrap_or_else(|| temporary.path().to_path_buf()),
            kills: self.kills,
            writers: self.writers,
            seed: self.seed,
        })?;
        super::say(&format!("{outcome:#?}"))?;
        Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
