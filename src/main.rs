//! claude-mem: long-term memory for Claude Code, in one binary.
//!
//! Clients start this program for every tool call, so hooks are recognized without the command-line
//! parser. So is the status line, which they start after every message.

mod commands;
mod hook;
mod static_dns;

use std::{env, process::ExitCode};

use claude_mem_core::os;
use hook::HookCall;

fn main() -> ExitCode {
    os::make_files_private();
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_deref().is_some_and(|first| first == os::CHILD_COMMAND) {
        return os::child_main(arguments).into();
    }
    let is_status_line = first.as_deref().is_some_and(|first| first == commands::statusline::NAME);
    let code = if is_status_line && arguments.len() == 0 {
        commands::statusline::run()
    } else {
        let called = HookCall::from_arguments(first.as_deref(), arguments);
        called.and_then(HookCall::run).unwrap_or_else(|| {
            static_dns::use_hosts_and_dns_only();
            commands::main()
        })
    };
    code.into()
}
