//! `claude-mem generate completions`: shell completion scripts.

use clap::Args;
use clap_complete::Shell;

use super::help;
use claude_mem_core::{app::App, failure::Failure};

/// Print a shell completion script
///
/// bash: `claude-mem generate completions bash > ~/.local/share/bash-completion/completions/claude-mem`.
/// zsh: save it as `_claude-mem` in a folder of `$fpath`. fish: save it as
/// `~/.config/fish/completions/claude-mem.fish`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self, app: &mut App) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(
            self.shell,
            &mut help::command_with_help(),
            "claude-mem",
            &mut script,
        );
        app.output.line(String::from_utf8_lossy(&script).trim_end())
    }
}
