//! What the tests of claude-mem stand on: a scripted model server, the real Claude Code client, and a storm of
//! killed processes.

pub mod client;
pub mod crash;
pub mod model;
