//! Events that memories can be relevant to: a prompt, the use of a file, a failed command.

use claude_mem_events::{Envelope, ToolUsed};

/// An event that memories can be relevant to.
#[derive(Debug)]
pub struct Occasion {
    pub envelope: Envelope,
    pub subject: Subject,
}

/// The subject of such an event. Texts are redacted, as recorded.
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
    /// The command of a tool, with its error. `None` for tools that run no command.
    pub(crate) fn failure(used: ToolUsed) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct Input {
            command: String,
        }
        let Input { command } = serde_json::from_str(&used.input).ok()?;
        Some(Self::Failure { command, error: used.error })
    }
}
