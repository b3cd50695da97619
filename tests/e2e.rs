//! Black box: runs the built binary as a user would.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod agent;
mod auto;
mod bad_input;
mod broken_settings;
mod browser;
mod by_hand;
mod client;
mod command_line;
mod compact;
mod concurrency;
mod context;
mod credentials;
mod database;
mod demo;
mod doctor;
mod full_disk;
mod google;
mod hooks;
mod http;
mod import;
mod install;
mod log;
mod machines;
mod mcp;
mod model;
mod output_files;
mod oversized;
mod permissions;
mod plugin;
mod project;
mod projects_apart;
mod readme;
mod recall;
mod replay;
mod sandbox;
mod secrets;
mod serving;
mod session;
mod settings;
mod ship;
mod soak;
mod tls;
mod verify;
mod worker;
