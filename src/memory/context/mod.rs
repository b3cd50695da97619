//! What a session is told when it begins: chosen by usefulness, marked where it may be out of date, and
//! never more than the client takes.

mod choice;
mod freshness;
mod page;

use std::path::Path;

use claude_mem_projections::{ContextQuery, Store};

pub use freshness::FileState;
pub use page::Page;

use claude_mem_capture::project::ProjectId;
use claude_mem_core::settings::{
    Settings,
    table::{
        CONTEXT_FULL_COUNT, CONTEXT_OBSERVATION_CONCEPTS, CONTEXT_OBSERVATION_TYPES,
        CONTEXT_OBSERVATIONS, CONTEXT_SESSION_COUNT, CONTEXT_TOKENS_MAX,
    },
};
use freshness::Files;

/// How many of the latest observations are looked at to find the useful ones.
const LOOKED_AT_MAX: u32 = 200;

/// What is asked for.
#[derive(Debug)]
pub struct Request<'a> {
    pub project: &'a ProjectId,
    /// Now, or the moment that the past is to be seen from.
    pub now: jiff::Timestamp,
    /// Only what is new since this session was last seen; it has been told the rest.
    pub resumed: Option<&'a str>,
    /// Tokens the text may cost; the setting's, if not given.
    pub budget: Option<usize>,
}

/// The text for a session, and what went into it; `None` if there is nothing to tell.
pub fn compose(
    store: &Store,
    settings: &Settings,
    request: &Request<'_>,
) -> claude_mem_projections::Result<Option<Page>> {
    let now_us = u64::try_from(request.now.as_microsecond()).unwrap_or(0);
    let since = match request.resumed {
        None => None,
        Some(session) => match store.last_seen_us(session, now_us)? {
            // Somebody else's session: nothing that it could have been told before.
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
    let tokens_max = request.budget.unwrap_or_else(|| settings.get(&CONTEXT_TOKENS_MAX));
    let layout = page::Layout {
        label: &request.project.label,
        now: request.now,
        is_update: since.is_some(),
        full_count: settings.get(&CONTEXT_FULL_COUNT),
        tokens_max,
    };
    Ok(Some(page::write(&layout, &material, &chosen)))
}

/// What became of files of a project since a moment, as far as can be told in a few milliseconds.
pub fn file_states(root: &Path, files: &[String], at_us: u64) -> Vec<FileState> {
    let git = root.join(".git");
    let looked_at = Files::of(root, Some(&git));
    files.iter().map(|file| looked_at.state(file, at_us)).collect()
}
