//! `claude-mem context`: a session begins, or goes on, and is given what is remembered.

use claude_mem_events::SessionStarted;
use serde_json::json;

use super::capture::{Call, Fact};

/// A session began.
pub(super) fn fact(call: &mut Call<'_>) -> Fact {
    let event = SessionStarted {
        source: call.text("source"),
        cwd: std::mem::take(&mut call.cwd),
        model: call.text("model"),
        transcript_path: call.text("transcript_path"),
        extra: call.extra(),
    };
    Fact::Plain(event.into())
}

/// What Claude is told at the beginning of a session, in the client's own form.
pub(super) fn answer() -> String {
    let output = json!({"hookEventName": "SessionStart", "additionalContext": memory()});
    let answer = json!({"continue": true, "suppressOutput": true, "hookSpecificOutput": output});
    format!("{answer}\n")
}

/// The memory that fits this session. There is none before anything has been distilled.
fn memory() -> String {
    String::new()
}
