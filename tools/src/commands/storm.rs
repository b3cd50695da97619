//! `storm`: sends events through `worker.sock`, and compares the log with the tables.

use crate::bench::binary;
use claude_mem_tools::socket_storm::{SocketStorm, storm};
use std::{error::Error, path::PathBuf, process::ExitCode, time::Instant};

/// Send events through `worker.sock`, and compare the log with the tables
///
/// Starts a worker in an empty home directory and sends prompts over several connections while the
/// worker indexes them. Fails if the log and the tables differ afterwards.
#[derive(Debug, clap::Args)]
pub(crate) struct Storm {
    /// Number of events to send
    #[arg(long, default_value_t = 1_000_000)]
    events: u64,
    /// Number of connections that send at the same time
    #[arg(long, default_value_t = 8)]
    connections: u64,
    /// Directory for the data, which must be empty [default: a temporary directory]
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
