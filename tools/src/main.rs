//! `claude-mem-tools`: one subcommand for each thing done to claude-mem rather than by it.

mod bench;
mod commands;
mod inspect;

use std::process::ExitCode;

use clap::Parser;

use crate::commands::Command;

/// Tools to inspect, crash, measure and check claude-mem
#[derive(Debug, Parser)]
#[command(name = "claude-mem-tools", version)]
struct Tools {
    #[command(subcommand)]
    command: Command,
}

fn main() -> ExitCode {
    match Tools::parse().command.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
