//! The subcommands, one file each.

mod agents;
mod bench;
mod clients;
mod crash;
mod dump;
mod inspect;
mod model_server;
mod pack_model;
mod secrets;
mod size;

use std::error::Error;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::Parser;

/// Tools to inspect, crash, measure and check claude-mem
#[derive(Debug, Parser)]
#[command(name = "claude-mem-tools", version)]
struct Tools {
    #[command(subcommand)]
    command: Command,
}

/// Runs the subcommand.
pub(crate) fn main() -> ExitCode {
    match Tools::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Agents(agents::Agents),
    Bench(bench::Bench),
    Clients(clients::Clients),
    Crash(crash::Crash),
    Inspect(inspect::Inspect),
    ModelServer(model_server::ModelServer),
    PackModel(pack_model::PackModel),
    Dump(dump::Dump),
    Secrets(secrets::Secrets),
    Size(size::Size),
}

impl Command {
    fn run(self) -> Result<ExitCode, Box<dyn Error>> {
        match self {
            Self::Agents(command) => command.run(),
            Self::Bench(command) => command.run(),
            Self::Clients(command) => command.run(),
            Self::Crash(command) => command.run(),
            Self::Inspect(command) => command.run(),
            Self::ModelServer(command) => command.run(),
            Self::PackModel(command) => command.run(),
            Self::Dump(command) => command.run(),
            Self::Secrets(command) => command.run(),
            Self::Size(_) => size::Size::run(),
        }
    }
}

/// Flushes after each line, also into a pipe.
fn say(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}")?;
    out.flush()
}
