//! claude-mem: long-term memory for Claude Code, in one binary.
//!
//! Claude Code starts this program for every tool call, so the hooks are picked out of the arguments by
//! hand and never meet the command-line parser, whose tables alone cost more than a whole hook.

mod agent;
mod app;
mod clock;
mod commands;
mod diagnostics;
mod document;
mod environment;
mod failure;
mod glob;
mod hooks;
mod install;
mod memory;
mod paths;
mod privacy;
mod project;
mod projector;
mod settings;
mod when;

use std::{env, process::ExitCode};

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref().is_some_and(|first| first == agent::CHILD_COMMAND) {
        return agent::child_main(arguments);
    }
    if let Some(name) = first.as_deref().and_then(hooks::named)
        && !arguments.next().is_some_and(|next| next == "--help" || next == "-h")
    {
        return hooks::run(name);
    }
    commands::main()
}
