//! The memories that are added to a prompt.

use claude_mem_core::{
    app::App,
    settings::{Settings, table::CONTEXT_PROMPT_TOKENS_MAX},
};
use claude_mem_projections::{
    Result, Store,
    search::{Kind, MemoryId, Recall},
};

use super::added::{AddedContext, Recipient};
use crate::semantic::with_meaning;

/// Maximum number of memories for one prompt.
const MEMORIES_MAX: usize = 5;

/// Maximum number of words of a prompt to embed, because the session waits for it.
const PROMPT_WORDS_MAX: usize = 20;

const HEADING: &str = "Notes from earlier sessions that may concern this prompt.";

/// The observations relevant to a prompt, best first, by words alone: for hooks, which open no
/// model.
pub fn rank(store: &Store, recall: &Recall<'_>) -> Result<Vec<i64>> {
    store.recall(recall, None)
}

/// The observations relevant to a prompt, best first, by words and meaning: for the worker's
/// response to hooks, and for the command line.
pub fn rank_by_meaning(app: &App, store: &Store, recall: &Recall<'_>) -> Result<Vec<i64>> {
    let words_max = PROMPT_WORDS_MAX;
    with_meaning(app, store, recall.prompt, words_max, |meaning| store.recall(recall, meaning)).0
}

/// The memories relevant to a prompt, ranked by `ranking`; `None` if there are none.
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
    let lines = recipient.lines(HEADING, &store.list_rows(&names)?, tokens_max, prompt);
    Ok(recipient.compose(HEADING, &lines))
}
