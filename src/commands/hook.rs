//! Hooks as the command-line parser sees them: for help, and for a person at a terminal.

use std::io::{self, Write as _};

use clap::{Args, Subcommand};

use claude_mem_capture::{
    CLAUDE_CODE, Client, HookCommand, IncomingKind,
    clients::{self, CLIENTS, HOOK},
};

/// Commands that clients run. Users do not run them, so they are not in the list of commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Hook {
    #[command(name = HOOK, hide = true)]
    Client(OfClient),
    /// Record the prompt (hook of `UserPromptSubmit`)
    #[command(hide = true)]
    New,
    /// Record the tool use (hook of `PostToolUse` and `PostToolUseFailure`)
    #[command(hide = true)]
    Save,
    /// Record the end of a turn (hook of `Stop` and `SubagentStop`)
    #[command(hide = true)]
    Summary,
    /// Record the end of the session (hook of `SessionEnd`)
    #[command(hide = true)]
    Cleanup,
}

/// Record an event that a client sends on stdin
///
/// The payload names the event. The response on stdout is in the client's own form. The exit code
/// is always 0, so that a session always continues; problems are in `logs/claude-mem.log`.
#[derive(Debug, Args)]
pub(crate) struct OfClient {
    /// The client that calls, such as `claude-code`
    #[arg(long, value_name = "NAME", value_parser = known_client)]
    client: &'static Client,
}

pub(super) fn known_client(name: &str) -> Result<&'static Client, String> {
    clients::find(name).ok_or_else(|| {
        let names: Vec<&str> = CLIENTS.iter().map(|client| client.name).collect();
        format!("known clients: {}", names.join(", "))
    })
}

impl Hook {
    /// Explains the hook to a user who typed it. The exit code is that of every hook.
    pub(crate) fn explain(&self) -> u8 {
        let HookCommand { name, client, .. } = self.command();
        let instead = match self {
            Self::Client(_) => "`claude-mem install` registers it",
            Self::New | Self::Save => "write a memory yourself with `claude-mem remember TEXT`",
            Self::Summary => "list summaries with `claude-mem search --kind summary`",
            Self::Cleanup => "delete old events with `claude-mem compact`",
        };
        let text = format!(
            "`claude-mem {name}` is a hook: {} runs it and sends JSON on stdin\n\
             note: nothing was recorded\nhint: {instead}\n",
            client.title
        );
        let _ = io::stderr().write_all(text.as_bytes());
        0
    }

    fn command(&self) -> HookCommand {
        let alias = |name, kind| HookCommand { name, client: &CLAUDE_CODE, expected: Some(kind) };
        match self {
            Self::Client(OfClient { client }) => HookCommand::of(client),
            Self::New => alias("new", IncomingKind::Prompt),
            Self::Save => alias("save", IncomingKind::ToolUse),
            Self::Summary => alias("summary", IncomingKind::Stop),
            Self::Cleanup => alias("cleanup", IncomingKind::SessionEnd),
        }
    }
}
