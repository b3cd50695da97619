//! What the tests of claude-mem stand on: a scripted model server and the real Claude Code client.

pub mod client;
pub mod model;
