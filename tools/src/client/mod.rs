//! The real Claude Code client, and other coding agents, run against a model server in an isolated
//! environment.
//!
//! The client is the published npm package, installed once (see [`executable`]). It runs with a new
//! home directory, a dummy key and none of the caller's environment but `PATH`, connects only to
//! the given server, and has a time limit.

mod agents;
mod client_process;
pub(crate) mod install;
mod more_agents;
mod schemathesis;
mod turn;

pub use agents::{AGENTS, Agent, Work};
pub use client_process::{Client, Outcome};
pub use install::{
    ClientError, VERSION, axe, azurite, esbuild, executable, executable_of, mcp_sdk, playwright,
};
pub use more_agents::MORE_AGENTS;
pub use schemathesis::schemathesis;
pub use turn::{AFTER, BEFORE};
