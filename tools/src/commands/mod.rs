//! The subcommands, one file each.

mod model_server;

use std::error::Error;
use std::process::ExitCode;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    ModelServer(model_server::ModelServer),
}

impl Command {
    pub(crate) fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Self::ModelServer(command) => command.run(),
        }
    }
}
