//! Memories that are added to the error of a command: how earlier failures of the same kind were
//! resolved.

use claude_mem_core::settings::{Settings, table::CONTEXT_FAILURE_TOKENS_MAX};
use claude_mem_projections::{
    Result, Store,
    search::{FailureRecall, Kind, MemoryId},
};

use super::added::{AddedContext, Recipient};

/// Maximum number of memories for one failure.
const MEMORIES_MAX: usize = 2;

const HEADING: &str = "Notes from earlier sessions about failures like this one.";

/// The memories about failures like this one; `None` if there are none.
///
/// The same failure always has the same memories, so a repeated command adds no others.
pub fn for_failure(
    store: &Store,
    settings: &Settings,
    recipient: &Recipient<'_>,
    (command, error): (&str, &str),
) -> Result<Option<AddedContext>> {
    let tokens_max = settings.get(&CONTEXT_FAILURE_TOKENS_MAX);
    if tokens_max == 0 {
        return Ok(None);
    }
    let ids = store.recall_failure(&FailureRecall {
        command,
        error,
        project: recipient.project,
        until_us: recipient.now_us(),
        session: recipient.session,
        limit: MEMORIES_MAX,
    })?;
    let name = |id| MemoryId { kind: Kind::Observation, id };
    let names: Vec<MemoryId> = ids.into_iter().map(name).collect();
    let lines = recipient.lines(HEADING, &store.list_rows(&names)?, tokens_max, error);
    let new = recipient.only_new(store, lines, MEMORIES_MAX, |line| line.id)?;
    Ok(recipient.compose(HEADING, &new))
}
