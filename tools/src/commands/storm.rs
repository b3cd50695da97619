//! `storm`: send events through `worker.sock`, and compare the log with the tables.

use crate::bench::binary;
use claude_mem_tools::socket_storm::{SocketStorm, storm};
use std::{error::Error, path::PathBuf, process::ExitCode, time::Instant};

/// Send events through `worker.sock`, and compare the log with the tables
///
/// Starts a worker in an empty home directory and sends prompts over several connections while the worker folds
/// them. Then the log and the tables must hold the same events. Fails if not.
#[derive(Debug, clap::Args)]
pub(crate) struct Storm {
    /// How many events to send
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// How many connections send at the same time
    #[arg(long, default_value_t = 8)]
    connections: u64,
    /// Where to keep the data instead of a temporary directory; must be empty
    #[arg(long)]
    dir: Option<PathBuf>,
}

impl Storm {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let temporary = tempfile::tempdir()?;
        let began = Instant::now();
        let outcome = storm(&SocketStorm {
            program: binary()?,
            home: self.dir.unwrap_or_else(|| temporary.path().to_path_buf()),
            events: self.events,
            connections: self.connections.max(1),
        })?;
        super::say(&format!("{outcome:#?}\n{:.0} s", began.elapsed().as_secs_f64()))?;
        Ok(if outcome.is_good() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
