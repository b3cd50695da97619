//! The hooks as the parser sees them, which is only when somebody asks for help.

use clap::Subcommand;

/// What Claude Code runs by itself.
#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    /// Hook of `UserPromptSubmit`: record the prompt
    New,
    /// Hook of `PostToolUse` and `PostToolUseFailure`: record the tool use
    Save,
    /// Hook of Stop and `SubagentStop`: ask for a summary
    Summary,
    /// Hook of `SessionEnd`: record the end
    Cleanup,
}

impl Hook {
    /// As on the command line.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Save => "save",
            Self::Summary => "summary",
            Self::Cleanup => "cleanup",
        }
    }
}
