//! The worker process with its HTTP API and viewer, and the MCP server.

mod hit_table;
mod http;
pub mod instance;
pub mod mcp;
pub mod shared;
mod viewer;
pub mod worker;
