//! `dump`: prints every table of a database as text, to compare two of them.

use claude_mem_projections::Store;
use std::{
    error::Error,
    io::{self, BufWriter, Write as _},
    path::PathBuf,
    process::ExitCode,
};

/// Print every table of a database as text
///
/// Two databases built from the same log print the same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Dump {
    /// The database, such as `~/.claude-mem/memory.db`
    database: PathBuf,
    /// Only the rows that are the same on all machines
    #[arg(long)]
    shared: bool,
}

impl Dump {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        let Some(store) = Store::open_read_only(&self.database)? else {
            return Err(format!("there is no {}", self.database.display()).into());
        };
        let mut out = BufWriter::new(io::stdout().lock());
        match self.shared {
            true => store.write_shared_dump(&mut out)?,
            false => store.write_dump(&mut out)?,
        }
        out.flush()?;
        Ok(ExitCode::SUCCESS)
    }
}
