//! Black box: runs the built binary as a user would.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod agent;
mod auto;
mod backup;
mod bad_input;
mod broken_settings;
mod browser;
mod by_hand;
mod channels;
mod client;
mod command_line;
mod compact;
mod concurrency;
mod context;
mod credentials;
mod database;
mod demo;
mod distill;
mod doctor;
mod documentation;
mod eval;
mod full_disk;
mod google;
mod hooks;
mod hostile_text;
mod http;
mod import;
mod install;
mod json_shape;
mod log;
mod machines;
mod mcp;
mod model;
mod output_files;
mod oversized;
mod past;
mod permissions;
mod plugin;

mod projects_apart;
mod recall;
mod replay;
mod repository;
mod sandbox;
mod secrets;
mod serving;
mod session;
mod settings;
mod ship;
mod soak;
mod statusline;
mod tls;
mod verify;
mod words;
mod worker;
