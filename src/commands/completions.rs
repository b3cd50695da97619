//! `claude-mem completions`: what a shell needs to complete a command line.

use clap::Args;
use clap_complete::Shell;

use super::help;
use claude_mem_core::{app::App, failure::Failure};

/// Print what your shell needs to complete commands
///
/// For bash: `claude-mem completions bash > ~/.local/share/bash-completion/completions/claude-mem`. For zsh, a file
/// `_claude-mem` in a folder of `$fpath`; for fish, `~/.config/fish/completions/claude-mem.fish`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: Shell,
}

impl Completions {
    /// Prints the script.
    pub(crate) fn run(&self, app: &mut App) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut help::command(), "claude-mem", &mut script);
        app.output.line(String::from_utf8_lossy(&script).trim_end())
    }
}
