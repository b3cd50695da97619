//! `claude-mem-tools`: one subcommand per development tool. All of them need Unix.

#[cfg(unix)]
mod bench;
#[cfg(unix)]
mod commands;
#[cfg(unix)]
mod pack;

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    commands::main()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    eprintln!("error: these tools need Unix");
    ExitCode::FAILURE
}
