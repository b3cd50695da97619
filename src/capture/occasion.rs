//! Events that memories may concern: a prompt, the use of a file, a failed command.

use claude_mem_events::{Envelope, ToolUsed};

/// An event that memories may concern.
#[derive(Debug)]
pub struct Occasion {
    pub envelope: Envelope,
    pub subject: Subject,
}

/// What memories may concern. Texts are as recorded: without private text and secrets.
#[derive(Debug)]
pub enum Subject {
    /// A prompt of the user.
    Prompt { text: String },
    /// A file that is about to be read or written.
    File { path: String, cwd: String },
    /// A command that failed.
    Failure { command: String, error: String },
}

impl Subject {
    /// The command that a tool was given, with its error. `None` for tools that run none.
    pub(crate) fn failure(used: ToolUsed) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Input {
            command: String,
        }
        let Input { command } = serde_json::from_str(&used.input).ok()?;
        Some(Self::Failure { command, error: used.error })
    }
}
