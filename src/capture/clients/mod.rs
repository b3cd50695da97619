//! The coding agents whose sessions are recorded: one file each, and one line in [`CLIENTS`].

pub mod claude_code;
#[cfg(test)]
mod example;

use std::{borrow::Cow, ffi::OsString};

use claude_mem_events::StopScope;

use crate::{
    incoming::{Incoming, IncomingKind, Skip},
    payload::Payload,
    transcript::{Message, TurnRow},
};
pub use claude_code::CLAUDE_CODE;
use claude_mem_core::environment::Environment;

/// One coding agent whose sessions are recorded.
#[derive(Debug)]
pub struct Client {
    /// Stored with every event: `claude-code`.
    pub name: &'static str,
    /// Environment variable with the session id, set for hooks and for programs the assistant runs.
    pub session_variable: Option<&'static str>,
    /// Environment variable with the directory in which the session was started. It decides the project,
    /// because the working directory follows every `cd` of the model.
    pub project_variable: Option<&'static str>,
    /// Takes the session id and the working directory out of a payload. Also called for a payload that
    /// is damaged behind them, because exclusions apply to that one, too.
    pub session: for<'a> fn(&mut Payload<'a>) -> SessionFields<'a>,
    /// Takes the fields of the event out of the payload, or says why there is nothing to record. Opens no
    /// file. The expected event counts where the payload names none.
    pub parse: for<'a> fn(&mut Payload<'a>, Option<IncomingKind>) -> Result<Incoming<'a>, Skip>,
    /// Reads one line of a transcript. `None` if the client's transcripts are not read.
    pub transcript_line: Option<ReadLine>,
    /// Reads one line of a transcript for what is said in its turn. `None` if nothing but the last messages
    /// is read.
    pub turn_row: Option<fn(&[u8]) -> TurnRow>,
    /// Whether the client means a tool of our MCP server by this name.
    pub is_our_tool: fn(&str) -> bool,
    /// Events whose response carries memory.
    pub context_at: &'static [IncomingKind],
    /// Renders a response in the client's own form, as written to stdout.
    pub respond: fn(&Response) -> String,
    /// Hooks that `claude-mem install` registers.
    pub hooks: &'static [Registration],
}

/// Reads one line of a transcript that is searched for the last messages of this scope.
pub type ReadLine = fn(&[u8], StopScope) -> Option<Message>;

/// All clients.
pub static CLIENTS: &[&Client] = &[
    &CLAUDE_CODE,
    #[cfg(test)]
    &example::EXAMPLE,
];

/// What a payload says about its session, whatever the event.
#[derive(Debug, Default)]
pub struct SessionFields<'a> {
    /// `None` if absent or empty.
    pub id: Option<Cow<'a, str>>,
    /// `None` if absent or empty: then the hook's own working directory is meant.
    pub cwd: Option<Cow<'a, str>>,
}

/// What a hook tells its client.
#[derive(Debug, Default)]
pub struct Response {
    /// Memory for the model. `None` if the event takes none, empty if there is none.
    pub context: Option<String>,
    /// A message for the user.
    pub notice: Option<String>,
    /// The event that it responds to.
    pub event: Option<IncomingKind>,
}

/// One hook in the client's configuration.
#[derive(Debug)]
pub struct Registration {
    /// The client's name of the event.
    pub event: &'static str,
    /// Which tools; `None` for events without tools.
    pub matcher: Option<&'static str>,
    /// Our command, without the program.
    pub command: &'static str,
    pub timeout_seconds: u32,
    /// The first version of the client that knows the event; `None` if all versions do.
    pub since: Option<Version>,
}

/// A version of a client, as `major.minor.patch`.
pub type Version = [u32; 3];

impl Registration {
    /// Whether this version of the client knows the event. An unknown version counts as the oldest.
    pub fn is_known_to(&self, version: Option<Version>) -> bool {
        self.since.is_none_or(|since| version.is_some_and(|version| version >= since))
    }
}

/// The command that serves every client: `claude-mem hook --client NAME`.
pub const HOOK: &str = "hook";

/// A hook command as called by a client.
#[derive(Debug, Clone, Copy)]
pub struct HookCommand {
    /// `hook`, or an alias such as `save`.
    pub name: &'static str,
    pub client: &'static Client,
    /// The event that an alias is registered for.
    pub expected: Option<IncomingKind>,
}

impl HookCommand {
    /// `claude-mem hook --client NAME`.
    pub fn of(client: &'static Client) -> Self {
        Self { name: HOOK, client, expected: None }
    }

    /// One of Claude Code's commands from before there was `hook`.
    pub fn alias(name: &str) -> Option<Self> {
        let (name, kind) = claude_code::ALIASES.into_iter().find(|(alias, _)| *alias == name)?;
        Some(Self { name, client: &CLAUDE_CODE, expected: Some(kind) })
    }
}

/// The client of this name.
pub fn find(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().copied().find(|client| client.name == name)
}

/// Whether any client means a tool of our MCP server by this name. Memory that was just read must not be
/// recorded as something new.
pub fn is_our_tool(name: &str) -> bool {
    CLIENTS.iter().any(|client| (client.is_our_tool)(name))
}

/// The session that this process was started in by a client, if it was.
pub fn session_of_process(environment: &Environment) -> Option<String> {
    let mut variables = CLIENTS.iter().filter_map(|client| client.session_variable);
    variables.find_map(|variable| environment.text(variable))
}

/// The directory in which a client started the session of this process, if one did.
pub fn project_dir_of_process(environment: &Environment) -> Option<OsString> {
    let mut variables = CLIENTS.iter().filter_map(|client| client.project_variable);
    variables.find_map(|variable| environment.get(variable))
}
