//! claude-mem: long-term memory for Claude Code, in one binary.
//!
//! Claude Code starts this program for every tool call, so the hooks are picked out of the arguments by
//! hand and never meet the command-line parser, whose tables alone cost more than a whole hook.

mod agent;
mod app;
mod clock;
mod commands;
mod compact;
mod context;
mod data_dir;
mod diagnostics;
mod distilling;
mod document;
mod environment;
mod failure;
mod forget;
mod glob;
mod hooks;
mod http;
mod import;
mod install;
mod mcp;
mod memory;
mod pager;
mod paths;
mod privacy;
mod project;
mod projector;
mod pull;
mod redaction;
mod remember;
mod safe_text;
mod settings;
mod ship;
mod system;
mod user_file;
mod viewer;
mod when;
mod words;
mod worker;

use std::{
    env,
    io::{self, IsTerminal},
    process::ExitCode,
};

fn main() -> ExitCode {
    system::make_files_private();
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref().is_some_and(|first| first == system::CHILD_COMMAND) {
        return system::child_main(arguments).into();
    }
    let code = match first.as_deref().and_then(hooks::named) {
        Some(name) if arguments.next().is_none() && !is_by_hand(name) => hooks::run(name),
        _ => commands::main(),
    };
    code.into()
}

/// `claude-mem context`, typed by a person who wants to see what a session is told.
fn is_by_hand(name: &str) -> bool {
    name == "context" && io::stdin().is_terminal()
}
