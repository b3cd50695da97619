//! `claude-mem generate man`: manual pages, generated from the help.

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
/// Writes one page per command. `man claude-mem-search` finds them in `~/.local/share/man/man1`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Output folder, created if missing
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Man {
    pub(crate) fn run(&self, app: &mut App) -> Result<(), Failure> {
        let mut command = help::command_with_help().disable_help_subcommand(true);
        command.build();
        let written = create_dirs_for_all(&self.dir).and_then(|()| write_pages(command, &self.dir));
        written.map_err(|error| {
            Failure::new(format!("{} cannot be written: {error}", self.dir.display()))
                .remedy("pass a folder that you can write to")
        })?;
        app.output.line(format_args!("wrote manual pages to {}", self.dir.display()))
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
