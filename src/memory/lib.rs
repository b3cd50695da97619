//! The memory service: what the command line, HTTP and MCP offer, each capability once.
//!
//! A front end parses its own arguments into a request, calls one function here, and renders the
//! response.

pub mod context;
pub mod event_subject;
pub mod fetches;
pub mod forget;
pub mod git;
pub mod log_progress;
pub mod memory_json;
pub mod modes;
pub mod projects;
pub mod remember;
pub mod report;
pub mod resolve;
pub mod revise;
pub mod search;
pub mod semantic;
pub mod shell_commits;
pub mod status_line;
pub mod store;
pub mod timeline;
pub mod why;
