//! Events as clients report them, before redaction, in a format shared by all clients.

use std::borrow::Cow;

use claude_mem_events::StopScope;

/// The kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncomingKind {
    SessionStart,
    Prompt,
    /// Not recorded: the client asks for context.
    FileUse,
    ToolUse,
    /// Not recorded: kept until the turn stops.
    Answer,
    Stop,
    SessionEnd,
}

/// One event, as a client reported it. Texts and JSON are empty where the client sends none.
#[derive(Debug)]
pub enum Incoming<'a> {
    SessionStart(SessionStart<'a>),
    Prompt(Prompt<'a>),
    FileUse(FileUse<'a>),
    ToolUse(ToolUse<'a>),
    Answer(Answer<'a>),
    Stop(Stop<'a>),
    SessionEnd(SessionEnd<'a>),
}

impl Incoming<'_> {
    pub fn kind(&self) -> IncomingKind {
        match self {
            Self::SessionStart(_) => IncomingKind::SessionStart,
            Self::Prompt(_) => IncomingKind::Prompt,
            Self::FileUse(_) => IncomingKind::FileUse,
            Self::ToolUse(_) => IncomingKind::ToolUse,
            Self::Answer(_) => IncomingKind::Answer,
            Self::Stop(_) => IncomingKind::Stop,
            Self::SessionEnd(_) => IncomingKind::SessionEnd,
        }
    }
}

/// A session was started or resumed.
#[derive(Debug, Default)]
pub struct SessionStart<'a> {
    /// `startup`, `resume`, `clear`, `compact`, `fork`.
    pub source: Cow<'a, str>,
    pub model: Cow<'a, str>,
    pub transcript_path: Cow<'a, str>,
}

/// A prompt was submitted.
#[derive(Debug, Default)]
pub struct Prompt<'a> {
    pub text: Cow<'a, str>,
    /// The client's id of the turn.
    pub prompt_id: Cow<'a, str>,
}

/// A file is about to be read or written.
#[derive(Debug, Default)]
pub struct FileUse<'a> {
    /// As given to the tool.
    pub path: Cow<'a, str>,
}

/// A tool was used, or failed.
#[derive(Debug, Default)]
pub struct ToolUse<'a> {
    pub tool: Cow<'a, str>,
    /// JSON.
    pub input: Cow<'a, str>,
    /// JSON.
    pub output: Cow<'a, str>,
    pub error: Cow<'a, str>,
    pub has_failed: bool,
    pub is_interrupt: bool,
    pub tool_use_id: Cow<'a, str>,
    /// The subagent that used it.
    pub agent_id: Cow<'a, str>,
    pub agent_type: Cow<'a, str>,
    pub prompt_id: Cow<'a, str>,
    pub duration_ms: Option<u64>,
}

/// A message of the assistant, which may be the last one of the turn.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    pub text: Cow<'a, str>,
    pub prompt_id: Cow<'a, str>,
}

/// The assistant stopped.
#[derive(Debug, Default)]
pub struct Stop<'a> {
    pub scope: StopScope,
    pub last_messages: LastMessages<'a>,
    /// The error of the model's API that ended the turn; empty if there is none.
    pub api_error: Cow<'a, str>,
    /// The transcript of the main conversation, if there is one.
    pub transcript: Option<Cow<'a, str>>,
    pub is_stop_hook_active: bool,
    pub background_tasks: u32,
    pub agent_id: Cow<'a, str>,
    pub agent_type: Cow<'a, str>,
    pub prompt_id: Cow<'a, str>,
}

/// The last message of each side.
#[derive(Debug)]
pub enum LastMessages<'a> {
    Given {
        user: Cow<'a, str>,
        assistant: Cow<'a, str>,
    },
    /// To be read from the end of this transcript once the event is known to be recorded, unless an
    /// [`Answer`] of the turn is available.
    InTranscript(Option<Cow<'a, str>>),
    /// Given as all texts of the turn joined, with changed white space. The last one is in the
    /// transcript as written.
    Joined {
        user: Cow<'a, str>,
        assistant: Cow<'a, str>,
        transcript: Option<Cow<'a, str>>,
    },
}

impl Default for LastMessages<'_> {
    fn default() -> Self {
        Self::Given { user: Cow::Borrowed(""), assistant: Cow::Borrowed("") }
    }
}

/// A session ended.
#[derive(Debug, Default)]
pub struct SessionEnd<'a> {
    pub reason: Cow<'a, str>,
}

/// Why nothing is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// The prompt, or the turn, is private.
    Private,
    /// A setting excludes the project.
    Project,
    /// A setting excludes the tool.
    Tool,
    /// The tool is one of ours.
    OurTool,
    /// The session is one of the agent that distills.
    OurAgent,
    /// The event is not recorded.
    NotForUs,
    /// The client has no such event. A hook keeps the payload as `InputUnreadable`.
    UnknownEvent(String),
}

impl Skip {
    /// A short identifier for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Project => "project_excluded",
            Self::Tool => "tool_excluded",
            Self::OurTool => "session_memory_meta",
            Self::OurAgent => "internal",
            Self::NotForUs => "not_recorded",
            Self::UnknownEvent(_) => "unknown_event",
        }
    }
}
