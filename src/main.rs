//! claude-mem: long-term memory for Claude Code, in one binary.
//!
//! Claude Code starts this program for every tool call, so the hooks are picked out of the arguments by
//! hand and never meet the command-line parser, whose tables alone cost more than a whole hook.

mod commands;
mod hook;
mod static_dns;

use std::{
    env,
    io::{self, IsTerminal},
    process::ExitCode,
};

use claude_mem_core::os;

fn main() -> ExitCode {
    os::make_files_private();
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref().is_some_and(|first| first == os::CHILD_COMMAND) {
        return os::child_main(arguments).into();
    }
    let code = match first.as_deref().and_then(hook::named) {
        Some(name) if arguments.next().is_none() && !is_by_hand(name) => hook::run(name),
        _ => {
            static_dns::use_hosts_and_dns_only();
            commands::main()
        }
    };
    code.into()
}

/// `claude-mem context`, typed by a person who wants to see what a session is told.
fn is_by_hand(name: &str) -> bool {
    name == "context" && io::stdin().is_terminal()
}
