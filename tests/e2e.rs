//! Black box: runs the built binary as a user would.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod command_line;
mod install;
mod plugin;
mod sandbox;
mod settings;
