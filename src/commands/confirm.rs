//! Confirmation prompts.

use std::io::{self, BufRead, IsTerminal};

use claude_mem_core::{app::App, failure::Failure};

/// Continues only if the user answers yes. Without a terminal it fails, and reports `what` would
/// have been done.
pub(super) fn confirm(app: &mut App, what: &str, question: &str) -> Result<(), Failure> {
    if !io::stdin().is_terminal() {
        return Err(Failure::usage(format!("{what}, and there is no terminal to confirm it"))
            .meaning("nothing was changed")
            .remedy("add `--yes` to skip the confirmation"));
    }
    ask(app, question)
}

/// Continues only if the user answers yes. For a terminal.
pub(super) fn ask(app: &mut App, question: &str) -> Result<(), Failure> {
    app.output.say(format_args!("{question} [y/N]"));
    let mut answer = String::new();
    let is_yes = io::stdin().lock().read_line(&mut answer).is_ok()
        && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str());
    if is_yes { Ok(()) } else { Err(Failure::cancelled()) }
}
