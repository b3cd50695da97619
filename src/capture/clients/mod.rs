//! The coding agents whose sessions are recorded: one file each, and one line in [`CLIENTS`].

pub mod claude_code;
mod cline;
mod codex;
pub mod config;
mod context_max;
mod copilot;
mod cursor;
mod droid;
pub(crate) mod evidence;
mod gemini;
mod json_values;
mod kimi;
pub(crate) mod normalize;
mod opencode;
pub mod past;
mod qwen;
mod respond;

use std::{borrow::Cow, ffi::OsString, time::Duration};

use claude_mem_events::StopScope;

use crate::PLUGIN;
use crate::{
    incoming::{Incoming, IncomingKind, Skip},
    payload::Payload,
    transcript::{Message, TurnRow},
};
pub use claude_code::CLAUDE_CODE;
use claude_mem_core::environment::Environment;
pub use codex::CODEX;
use config::{Config, Dir, HooksForm};
pub use context_max::ContextMax;
pub use evidence::Evidence;
pub(crate) use normalize::command_result;
pub use normalize::patched_files;
use past::PastSessions;

/// One coding agent whose sessions are recorded.
#[derive(Debug)]
pub struct Client {
    /// Stored with every event: `claude-code`.
    pub name: &'static str,
    /// For people: `Claude Code`.
    pub title: &'static str,
    /// True if claude-mem was tested with the real client; false if it follows the documentation.
    pub is_tested: bool,
    pub evidence: Evidence,
    /// Environment variable with the session id, set for hooks and for programs the assistant runs.
    pub session_variable: Option<&'static str>,
    /// Environment variable with the directory in which the session was started. It determines the
    /// project, because the working directory changes with every `cd` of the model.
    pub project_variable: Option<&'static str>,
    /// Takes the session id and the working directory from a payload. Also called for a payload
    /// with damaged later fields, because exclusions apply to it, too.
    pub session: for<'a> fn(&mut Payload<'a>) -> SessionFields<'a>,
    /// Parses the event in the payload, or returns why there is nothing to record. Opens no file.
    /// The expected event is used if the payload names none.
    pub parse: for<'a> fn(&mut Payload<'a>, Option<IncomingKind>) -> Result<Incoming<'a>, Skip>,
    /// The path of a session's transcript below the client's directory, from the session id and the
    /// working directory. `None` if payloads name it.
    pub transcript_place: Option<fn(&str, &str) -> String>,
    /// Reads one line of a transcript. `None` if the client's transcripts are not read.
    pub transcript_line: Option<ReadLine>,
    /// Parses one line of a transcript into parts of its turn. `None` if only the last messages are
    /// read.
    pub turn_row: Option<fn(&[u8]) -> TurnRow>,
    /// Maximum delay between the stop event and the last answer in the transcript.
    pub transcript_lag: Duration,
    /// Whether no hook reports tools that fail. They are then read from the transcript by the next
    /// hook, with `turn_row`.
    pub hides_failures: bool,
    /// Finds the exit code of a tool use in a line of the transcript that is written before the
    /// hook runs, if the hook does not report it.
    pub exit_code: Option<FindExitCode>,
    /// The client's prefix of our MCP server's tool names; empty if its model sees the bare names.
    pub tool_prefix: &'static str,
    /// Events whose response can contain memory, each with the client's size limit. If they include
    /// prompts but not the start of a session, the memory of the start is sent with the first
    /// prompt.
    pub context_at: &'static [(IncomingKind, ContextMax)],
    /// Renders a response in the client's own form, as written to stdout.
    pub respond: fn(&Response) -> String,
    /// Hooks that `claude-mem install` registers.
    pub hooks: &'static [Registration],
    pub config: Config,
    /// Its records of past sessions. `None` if they are unknown, or if they have a separate
    /// importer, as for Claude Code.
    pub past: Option<PastSessions>,
}

impl Client {
    /// The command of a hook, without the program: `hook --client codex`, or an alias.
    pub fn hook_command(&self, hook: &Registration) -> Cow<'static, str> {
        let owner = self.config.registered_as.unwrap_or(self.name);
        hook.alias.map_or_else(|| format!("{HOOK} --client {owner}").into(), Cow::Borrowed)
    }

    /// Size limit of the memory in the response to an event; `None` if the response can contain
    /// none.
    pub fn context_max(&self, event: IncomingKind) -> Option<ContextMax> {
        self.context_at.iter().find(|(at, _)| *at == event).map(|(_, max)| *max)
    }

    /// Whether the memory of a session's start is sent with its first prompt.
    pub(crate) fn starts_with_prompt(&self) -> bool {
        self.context_max(IncomingKind::Prompt).is_some()
            && self.context_max(IncomingKind::SessionStart).is_none()
    }
}

/// The defaults of most clients: Claude Code's field names, and no output without memory.
const BASE: Client = Client {
    name: "",
    title: "",
    is_tested: true,
    evidence: Evidence::NONE,
    session_variable: None,
    project_variable: None,
    session: claude_code::session,
    parse: claude_code::parse_relative,
    transcript_place: None,
    transcript_line: None,
    turn_row: None,
    transcript_lag: Duration::ZERO,
    hides_failures: false,
    exit_code: None,
    tool_prefix: "mcp__claude-mem__",
    context_at: &[
        (IncomingKind::SessionStart, ContextMax::Unlimited),
        (IncomingKind::Prompt, ContextMax::Unlimited),
    ],
    respond: respond::nested,
    hooks: &[],
    config: Config {
        dir: Dir::of_home(""),
        signs: &[],
        hooks: HooksForm::Scripts { dir: "" },
        registered_as: None,
        server: None,
        after: "",
    },
    past: None,
};

/// Finds the exit code of the tool use with this id in one line of a transcript.
pub type FindExitCode = fn(&[u8], &str) -> Option<i64>;

/// Reads one line of a transcript that is searched for the last messages of this scope.
pub type ReadLine = fn(&[u8], StopScope) -> Option<Message>;

/// All clients. If two match the same payload, the first one is used.
pub static CLIENTS: &[&Client] = &[
    &CLAUDE_CODE,
    &codex::CODEX,
    &cursor::CURSOR,
    &cline::CLINE,
    &copilot::COPILOT,
    &copilot::VSCODE,
    &qwen::QWEN,
    &droid::DROID,
    &gemini::ANTIGRAVITY,
    &gemini::GEMINI,
    &kimi::KIMI,
    &opencode::OPENCODE,
];

/// The fields of a payload about its session, for every event.
#[derive(Debug, Default)]
pub struct SessionFields<'a> {
    /// `None` if absent or empty.
    pub id: Option<Cow<'a, str>>,
    /// `None` if absent or empty: the hook's own working directory is used.
    pub cwd: Option<Cow<'a, str>>,
}

/// The response of a hook to its client.
#[derive(Debug, Default)]
pub struct Response {
    /// Memory for the model. `None` if the event accepts none, empty if there is none.
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
    /// A command of versions without `hook`, without the program.
    pub alias: Option<&'static str>,
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

/// A hook for an event without tools.
const fn for_event(event: &'static str, timeout_seconds: u32) -> Registration {
    Registration { event, matcher: None, alias: None, timeout_seconds, since: None }
}

/// A hook for an event of all tools.
const fn for_all_tools(event: &'static str, timeout_seconds: u32) -> Registration {
    Registration { matcher: Some("*"), ..for_event(event, timeout_seconds) }
}

/// Hooks of clients that have Claude Code's events.
const CLAUDE_CODE_EVENTS: &[Registration] = &[
    for_event("SessionStart", 10),
    for_event("UserPromptSubmit", 5),
    for_all_tools("PostToolUse", 5),
    for_all_tools("PostToolUseFailure", 5),
    for_event("Stop", 10),
    for_event("SubagentStop", 10),
    for_event("SessionEnd", 5),
];

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

    /// One of Claude Code's commands from versions without `hook`.
    pub fn alias(name: &str) -> Option<Self> {
        let (name, kind) = claude_code::ALIASES.into_iter().find(|(alias, _)| *alias == name)?;
        Some(Self { name, client: &CLAUDE_CODE, expected: Some(kind) })
    }
}

/// The client of this name.
pub fn find(name: &str) -> Option<&'static Client> {
    CLIENTS.iter().copied().find(|client| client.name == name)
}

/// Whether a client means a tool of our MCP server by this name. Memory that was just read must not
/// be recorded as something new. Each client joins the server's name and the tool's name in a
/// different way: `mcp__claude-mem__search`, `mcp__claude_mem__search`, `mcp_claude-mem_search`,
/// `claude-mem-search`, `claude-mem_search`, `claude-mem__search`, `claude-mem___search`, and for a
/// plugin `mcp__plugin_mem_claude-mem__search`.
pub fn is_our_tool(name: &str) -> bool {
    let separated = |name: &str| name.starts_with(['_', '-']);
    let rest = name.strip_prefix("mcp").filter(|rest| separated(rest)).unwrap_or(name);
    let rest = rest.trim_start_matches('_');
    let rest = rest.strip_prefix(&format!("plugin_{PLUGIN}_")).unwrap_or(rest);
    let tool = ["claude-mem", "claude_mem"].iter().find_map(|server| rest.strip_prefix(server));
    // A longer name belongs to a different server.
    tool.filter(|tool| separated(tool))
        .is_some_and(|tool| OUR_TOOLS.contains(&tool.trim_start_matches(['_', '-'])))
}

/// The tools of our MCP server.
const OUR_TOOLS: [&str; 7] = [
    "search",
    "timeline",
    "get_observations",
    "remember",
    "revise",
    "forget",
    "session_start_context",
];

/// The session that this process was started in by a client, if it was.
pub fn session_of_process(environment: &Environment) -> Option<String> {
    let mut variables = CLIENTS.iter().filter_map(|client| client.session_variable);
    variables.find_map(|variable| environment.text(variable))
}

/// The directory in which a client started the session of this process, if one did.
pub(crate) fn project_dir_of_process(environment: &Environment) -> Option<OsString> {
    let mut variables = CLIENTS.iter().filter_map(|client| client.project_variable);
    variables.find_map(|variable| environment.get(variable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tools_are_recognized_in_the_spelling_of_every_client() {
        for client in CLIENTS {
            for tool in OUR_TOOLS {
                let name = format!("{}{tool}", client.tool_prefix);
                assert!(is_our_tool(&name) || client.tool_prefix.is_empty(), "{name}");
            }
        }
        for name in ["mcp__plugin_mem_claude-mem__get_observations", "claude-mem___search"] {
            assert!(is_our_tool(name), "{name}");
        }
        for name in [
            "search",
            "mcp__mem__search",
            "mcp__claude-mem-two__search",
            "Bash",
            "mcp__claude-mem",
            "claude-memsearch",
            "claude-mem-status",
        ] {
            assert!(!is_our_tool(name), "{name}");
        }
    }
}
