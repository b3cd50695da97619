//! `claude-mem man`: manual pages, drawn from the same definition as the help.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::{Args, Command};

use super::help;
use claude_mem_core::{
    app::App,
    failure::Failure,
    os::create_dirs_for_all,
    user_file::{self, Readers},
};

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
        let mut command = help::command().disable_help_subcommand(true);
        command.build();
        let written = create_dirs_for_all(&self.dir).and_then(|()| write_pages(command, &self.dir));
        written.map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", self.dir.display()))
                .remedy("name a folder that you may write to")
        })?;
        app.output.line(format_args!("manual pages are in {}", self.dir.display()))
    }
}

/// Writes the page of a command and those of its subcommands.
fn write_pages(command: Command, dir: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|command| !command.is_hide_set()) {
        write_pages(subcommand.clone(), dir)?;
    }
    let page = clap_mangen::Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text)?;
    user_file::write(&dir.join(page.get_filename()), &text, Readers::Everyone)
}
