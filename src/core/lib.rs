//! The basis of all other crates: paths, environment, clock, settings, failures, diagnostics, and
//! the operating system. Nothing above this crate reads the environment.

pub mod app;
pub mod clock;
pub mod diagnostics;
pub mod environment;
pub mod failure;
pub mod format;
pub mod json_edit;
pub mod os;
pub mod pager;
pub mod paths;
pub mod progress;
pub mod safe_text;
pub mod settings;
pub mod time_arg;
pub mod user_file;
pub mod worker_process;
pub mod wrap;

/// The name of this program, and of its MCP server in a client's configuration.
pub const NAME: &str = "claude-mem";
/// The version of this program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
