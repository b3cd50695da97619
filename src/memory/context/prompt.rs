//! The memories that are added to a prompt.

use claude_mem_core::settings::{Settings, table::CONTEXT_PROMPT_TOKENS_MAX};
use claude_mem_projections::{
    Result, Store,
    search::{Kind, MemoryId, Recall},
};

use super::added::{AddedContext, Recipient, compose, lines};

/// Maximum number of memories for one prompt.
const MEMORIES_MAX: usize = 5;

const HEADING: &str = "Notes from earlier sessions that may concern this prompt.";

/// The observations that a prompt is about, best first: the one ranking, of hooks, of the command line,
/// and of the worker, which hooks ask first.
pub fn rank(store: &Store, recall: &Recall<'_>) -> Result<Vec<i64>> {
    store.recall(recall)
}

/// The memories that a prompt is about, ranked by `ranking`; `None` if there are none.
pub fn for_prompt(
    store: &Store,
    settings: &Settings,
    recipient: &Recipient<'_>,
    prompt: &str,
    ranking: impl FnOnce(&Recall<'_>) -> Result<Vec<i64>>,
) -> Result<Option<AddedContext>> {
    let tokens_max = settings.get(&CONTEXT_PROMPT_TOKENS_MAX);
    if tokens_max == 0 {
        return Ok(None);
    }
    let ids = ranking(&Recall {
        prompt,
        project: recipient.project,
        root: recipient.root,
        until_us: recipient.now_us(),
        session: recipient.session,
        limit: usize::MAX,
    })?;
    let new = recipient.only_new(store, ids, MEMORIES_MAX, |id| *id)?;
    let name = |id| MemoryId { kind: Kind::Observation, id };
    let names: Vec<MemoryId> = new.into_iter().map(name).collect();
    Ok(compose(HEADING, &lines(HEADING, &store.list_rows(&names)?, tokens_max)))
}
