//! The context for a new session: selected by usefulness, marked where it may be outdated, and
//! within the client's size limit.

mod choice;
mod freshness;
mod page;
mod prompt;
mod text;

use std::path::Path;

use claude_mem_projections::{ContextQuery, Store};

pub use freshness::FileState;
pub use page::Page;
pub use prompt::{PromptContext, PromptRequest, for_prompt};

use claude_mem_capture::project::ProjectId;
use claude_mem_core::settings::{
    Settings,
    table::{
        CONTEXT_FULL_COUNT, CONTEXT_OBSERVATION_CONCEPTS, CONTEXT_OBSERVATION_TYPES,
        CONTEXT_OBSERVATIONS, CONTEXT_SESSION_COUNT, CONTEXT_TOKENS_MAX,
    },
};
use freshness::Files;

/// Number of recent observations considered.
const LOOKED_AT_MAX: u32 = 200;

/// Request for a context.
#[derive(Debug)]
pub struct Request<'a> {
    pub project: &'a ProjectId,
    /// Now, or an earlier time to reconstruct the context of.
    pub now: jiff::Timestamp,
    /// For a resumed session: only what is new since it was last seen.
    pub resumed: Option<&'a str>,
    /// Token limit; `None` for the setting.
    pub budget: Option<usize>,
}

/// The context of a session and its statistics; `None` if it would be empty.
pub fn compose(
    store: &Store,
    settings: &Settings,
    request: &Request<'_>,
) -> claude_mem_projections::Result<Option<Page>> {
    let tokens_max = request.budget.unwrap_or_else(|| settings.get(&CONTEXT_TOKENS_MAX));
    if tokens_max == 0 {
        return Ok(None);
    }
    let now_us = u64::try_from(request.now.as_microsecond()).unwrap_or(0);
    let since = match request.resumed {
        None => None,
        Some(session) => match store.last_seen_us(session, now_us)? {
            // A resumed session that we never recorded: it got no context before, and gets none
            // now.
            None => return Ok(None),
            Some(seen_us) => Some((seen_us, session)),
        },
    };
    let types = settings.get(&CONTEXT_OBSERVATION_TYPES);
    let concepts = settings.get(&CONTEXT_OBSERVATION_CONCEPTS);
    let material = store.context_material(&ContextQuery {
        project: &request.project.key,
        until_us: now_us,
        since,
        types: &types,
        concepts: &concepts,
        observations_max: LOOKED_AT_MAX,
        summaries_max: settings.get(&CONTEXT_SESSION_COUNT),
    })?;
    if material.observations.is_empty()
        && material.summaries.is_empty()
        && material.by_hand.is_empty()
        && material.noted.is_empty()
    {
        return Ok(None);
    }
    let files = Files::of(&request.project.root, request.project.common_dir.as_deref());
    let chosen = choice::choose(&material, &files, now_us, settings.get(&CONTEXT_OBSERVATIONS));
    let layout = page::Layout {
        label: &request.project.label,
        now: request.now,
        is_update: since.is_some(),
        full_count: settings.get(&CONTEXT_FULL_COUNT),
        tokens_max,
    };
    Ok(Some(page::write(&layout, &material, &chosen)))
}

/// States of files compared with an earlier time, within a few milliseconds.
pub fn file_states(root: &Path, files: &[String], at_us: u64) -> Vec<FileState> {
    let git = root.join(".git");
    let looked_at = Files::of(root, Some(&git));
    files.iter().map(|file| looked_at.state(file, at_us)).collect()
}
