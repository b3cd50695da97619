//! `claude-mem new`: a prompt was submitted.

use claude_mem_events::{PromptSubmitted, Submitter};

use crate::recorder::{Call, Fact, Problem};
use claude_mem_privacy::{clean_text, is_only_task_notification};

/// What stands for a prompt without words.
pub const MEDIA: &str = "[media prompt]";

/// A prompt was submitted. One that is wholly private makes the whole turn private; the mark is made
/// before anything is recorded, so that no tool of this turn can come before it.
pub(super) fn fact(call: &mut Call<'_>) -> Result<Fact, Problem> {
    let text = call.payload.take_text("prompt").unwrap_or_default();
    let prompt_id = call.text("prompt_id");
    let cleaned = clean_text(&text, call.policy());
    let submitter = match text.trim() {
        "" => Submitter::UserMedia,
        text if is_only_task_notification(text) => Submitter::TaskNotification,
        _ => Submitter::User,
    };
    let is_private = match (submitter, cleaned.wholly_private) {
        // What comes of a private turn is private, also when the client tells it by itself.
        (Submitter::TaskNotification, _) => call.turn.is_on(),
        (_, true) => {
            call.turn.begin(&prompt_id).map_err(Problem::Mark)?;
            true
        }
        (_, false) => {
            // A prompt queued into a running turn shares its id and its fate, but its words are public.
            let is_same_turn = |turn: String| !turn.is_empty() && turn == prompt_id;
            if !call.turn.prompt_id().is_some_and(is_same_turn) {
                call.turn.end();
            }
            false
        }
    };
    let prompt = match submitter {
        _ if is_private => String::new(),
        Submitter::UserMedia => MEDIA.into(),
        _ => cleaned.text,
    };
    let cwd = std::mem::take(&mut call.cwd);
    let extra = if is_private { String::new() } else { call.extra() };
    let event = PromptSubmitted { prompt, is_private, submitter, prompt_id, cwd, extra };
    Ok(Fact::Synced(event.into()))
}
