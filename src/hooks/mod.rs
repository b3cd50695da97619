//! The commands Claude Code runs by itself.
//!
//! Whatever happens in here, the user's session goes on: exit code 0, nothing on stderr, one JSON object
//! on stdout.

use std::{
    ffi::OsStr,
    io::{self, Write},
    process::ExitCode,
};

/// As hooks are named on the command line.
pub(crate) const NAMES: [&str; 5] = ["context", "new", "save", "summary", "cleanup"];

/// What a hook says when it has nothing to add to the session.
const CARRY_ON: &[u8] = b"{\"continue\": true, \"suppressOutput\": true}\n";

/// The hook that goes by this name, if any does.
pub(crate) fn named(argument: &OsStr) -> Option<&'static str> {
    NAMES.into_iter().find(|name| argument == *name)
}

/// Runs one hook.
pub(crate) fn run(_name: &'static str) -> ExitCode {
    // A closed stdout is the client's business; there is nobody left to tell.
    let _ = io::stdout().write_all(CARRY_ON);
    ExitCode::SUCCESS
}
