//! `claude-mem mcp`: the MCP server.

use clap::Args;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_server::mcp;

/// Serve memory to Claude Code over MCP
///
/// Claude Code starts this by itself once `claude-mem install` has registered it. It reads requests from stdin,
/// one to a line, answers on stdout, and ends with its client.
#[derive(Debug, Args)]
pub(crate) struct Mcp {}

impl Mcp {
    /// Serves until the client is gone.
    #[expect(clippy::unused_self, reason = "it has no flags")]
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        mcp::serve(app)
    }
}
