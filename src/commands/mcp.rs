//! `claude-mem mcp`: the MCP server.

use clap::Args;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_server::mcp;

/// Serve memory to coding agents over MCP
///
/// A client starts this once `claude-mem install` has registered it. It reads one request per line
/// from stdin, responds on stdout, and exits when stdin closes.
#[derive(Debug, Args)]
pub(crate) struct Mcp {}

impl Mcp {
    #[expect(clippy::unused_self, reason = "it has no flags")]
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        mcp::serve(app)
    }
}
