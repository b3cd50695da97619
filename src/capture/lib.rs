//! From a hook payload to an event in the log: which client sent it, which project it belongs to, whether it may
//! be recorded, and what is removed from it first.

mod dropped;
mod exclusion;
pub mod external;
mod glob;
mod input;
mod payload;
mod payload_fast;
mod private_turn;
pub mod project;
mod prompt;
mod recorder;
pub mod redaction;
mod session_end;
mod session_start;
mod stop;
mod tool_use;
mod transcript;

pub use dropped::Dropped;
pub use exclusion::excluded_by;
pub use input::{Input, read as read_input};
pub use payload::text as json_text;
pub use private_turn::{is_turn_private, sweep as sweep_private_turns};
pub use prompt::MEDIA;
pub use recorder::{Begun, PLATFORM, Problem, World, is_internal};
pub use tool_use::is_our_tool;

/// The hook commands, as Claude Code's settings name them.
pub const NAMES: [&str; 5] = ["context", "new", "save", "summary", "cleanup"];
/// Our name among Claude Code's plugins, where names that begin with `claude-` are reserved.
pub const PLUGIN: &str = "mem";
