//! `claude-mem man`: manual pages, drawn from the same definition as the help.

use std::{fs, path::PathBuf};

use clap::Args;

use super::help;
use crate::{app::App, failure::Failure};

/// Write manual pages to a folder
///
/// One page for each command. In `~/.local/share/man/man1`, `man claude-mem-search` finds them.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Where to, made if it is not there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    /// Writes `claude-mem.1` and one page for each command.
    pub(crate) fn run(&self, app: &mut App) -> Result<(), Failure> {
        let written = fs::create_dir_all(&self.dir)
            .and_then(|()| clap_mangen::generate_to(help::command(), &self.dir));
        written.map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", self.dir.display()))
                .remedy("name a folder that you may write to")
        })?;
        app.output.line(format_args!("manual pages are in {}", self.dir.display()))
    }
}
