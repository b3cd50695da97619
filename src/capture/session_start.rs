//! A session begins, or goes on.

use claude_mem_events::SessionStarted;

use super::recorder::{Call, Fact};

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
