//! `claude-mem save`: a tool was used, or failed.

use claude_mem_events::ToolUsed;

use crate::PLUGIN;
use crate::recorder::{Call, Fact};
use claude_mem_core::NAME;
use claude_mem_core::settings::table::SKIP_TOOLS;

/// A tool was used. Nothing, if it is one that is skipped, or the turn is private, or it is one of ours:
/// what memory said must not come back as news.
pub(super) fn fact(call: &mut Call<'_>) -> Option<Fact> {
    let tool = call.text("tool_name");
    let settings = &call.world.settings;
    if settings.is_doubtful(&SKIP_TOOLS) || settings.get(&SKIP_TOOLS).contains(&tool) {
        return None;
    }
    if is_our_tool(&tool) || call.turn.is_on() {
        return None;
    }
    let input = call.json("tool_input");
    let output = call.json("tool_response");
    let error = call.text("error");
    let event = ToolUsed {
        has_failed: call.event_name == "PostToolUseFailure" || !error.is_empty(),
        tool,
        input,
        output,
        error,
        is_interrupt: call.payload.take_flag("is_interrupt"),
        tool_use_id: call.text("tool_use_id"),
        cwd: std::mem::take(&mut call.cwd),
        agent_id: call.text("agent_id"),
        agent_type: call.text("agent_type"),
        prompt_id: call.text("prompt_id"),
        duration_ms: call.payload.take_number("duration_ms"),
        extra: call.extra(),
    };
    Some(Fact::Plain(event.into()))
}

/// Whether the client means a tool of our MCP server by this name, as installed or as a plugin.
pub fn is_our_tool(name: &str) -> bool {
    let rest = name.strip_prefix("mcp__");
    let server = rest.and_then(|rest| rest.rsplit_once("__")).map(|(server, _)| server);
    server.is_some_and(|server| server == NAME || server == format!("plugin_{PLUGIN}_{NAME}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tools_are_known_by_both_of_their_names() {
        for name in ["mcp__claude-mem__search", "mcp__plugin_mem_claude-mem__get_observations"] {
            assert!(is_our_tool(name), "{name}");
        }
        for name in
            ["search", "mcp__mem__search", "mcp__claude-mem-two__search", "Bash", "mcp__claude-mem"]
        {
            assert!(!is_our_tool(name), "{name}");
        }
    }
}
