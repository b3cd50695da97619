//! Turns a client's hook payload into an event in the log: finds its session and project, checks
//! whether it may be recorded, and redacts it.

mod build_event;
pub mod clients;
mod dropped;
mod envelope;
mod exclusion;
pub mod external;
mod glob;
mod incoming;
mod input;
mod occasion;
mod payload;
mod private_turn;
pub mod project;
mod record_hook;
mod recorder;
mod recorder_cache;
pub mod redaction;
pub mod registration;
mod remarks;
mod session_file;
mod transcript;
pub mod transcript_rows;
mod unreadable;

pub use build_event::{MEDIA, submitter};
pub use clients::{CLAUDE_CODE, CODEX, Client, ContextMax, HookCommand, Response};
pub use dropped::Dropped;
pub use envelope::{bounded, envelope};
pub use exclusion::excluded_by;
pub use incoming::{
    Answer, FileUse, Incoming, IncomingKind, LastMessages, Prompt, SessionEnd, SessionStart, Skip,
    Stop, ToolUse,
};
pub use input::{Input, read as read_input};
pub use occasion::{Occasion, Subject};
pub use payload::{Payload, text as json_text};
pub use private_turn::{is_turn_private, sweep as sweep_private_turns};
pub use record_hook::{HookOutcome, SessionBegun, record_hook};
pub use recorder::{Access, Captured, Problem, Recorder, Source, is_internal};
pub use recorder_cache::RecorderCache;
pub use remarks::{Refusal, Remarks};
pub use session_file::sweep as sweep_session_files;
pub use transcript::{Message as TranscriptMessage, Speaker, TurnPart, TurnRow};

/// Our plugin name in Claude Code, where names that start with `claude-` are reserved.
pub const PLUGIN: &str = "mem";
