//! `claude-mem summary`: the assistant stopped.

use std::path::Path;

use claude_mem_events::{StopScope, SummaryRequested};

use crate::{
    recorder::{Call, Fact},
    transcript::{self, LastWords},
};

/// The assistant stopped. Nothing, if the turn is private.
pub(super) fn fact(call: &mut Call<'_>) -> Option<Fact> {
    if call.turn.is_on() {
        return None;
    }
    let agent_type = call.payload.take_text("agent_type");
    let scope = match (call.event_name.as_str(), agent_type.as_deref()) {
        // Compaction runs as a hidden fork of no type, which no SubagentStart has announced. Older
        // clients name no type at all, and those are ordinary subagents.
        ("SubagentStop", Some("")) => StopScope::Compaction,
        ("SubagentStop", _) => StopScope::Subagent,
        _ => StopScope::Turn,
    };
    let agent_type = call.clean(&agent_type.unwrap_or_default());
    let words = last_words(call, scope);
    let event = SummaryRequested {
        scope,
        last_user_message: call.clean(&words.user),
        last_assistant_message: call.clean(&words.assistant),
        is_stop_hook_active: call.payload.take_flag("stop_hook_active"),
        background_tasks: call.payload.count("background_tasks") as u32,
        agent_id: call.text("agent_id"),
        agent_type,
        prompt_id: call.text("prompt_id"),
        cwd: std::mem::take(&mut call.cwd),
        extra: call.extra(),
    };
    Some(Fact::Synced(event.into()))
}

/// What the client says was said last. The transcript lags behind at this moment, so it is only asked
/// where an older client says nothing.
fn last_words(call: &mut Call<'_>, scope: StopScope) -> LastWords {
    if let Some(assistant) = call.payload.take_text("last_assistant_message") {
        let user = call.payload.take_text("last_user_message").unwrap_or_default();
        return LastWords { assistant: assistant.into_owned(), user: user.into_owned() };
    }
    let path = match scope {
        StopScope::Turn => call.payload.peek_text("transcript_path"),
        StopScope::Subagent | StopScope::Compaction => {
            call.payload.peek_text("agent_transcript_path")
        }
    };
    path.map(|path| transcript::last_words(Path::new(path.as_ref()), scope)).unwrap_or_default()
}
