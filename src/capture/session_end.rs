//! `claude-mem cleanup`: a session ended.

use claude_mem_events::SessionEnded;

use crate::recorder::{Call, Fact};

/// A session ended, and with it a private turn.
pub(super) fn fact(call: &mut Call<'_>) -> Fact {
    call.turn.end();
    let event = SessionEnded { reason: call.text("reason"), extra: call.extra() };
    Fact::Synced(event.into())
}
