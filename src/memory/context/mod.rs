//! The context for a new session: selected by usefulness, marked where it may be outdated, and
//! within the client's size limit.

mod added;
mod choice;
mod commands;
mod failed_command;
mod failure;
mod file;
mod freshness;
mod knowledge;
mod names;
mod page;
mod prompt;
mod sheet;
mod text;
mod turns;

use std::path::Path;

use claude_mem_log::Log;
use claude_mem_projections::{ContextMaterial, ContextQuery, SessionState, Store};

pub use added::{AddedContext, Recipient};
pub use commands::WORKS_HERE;
pub use failure::for_failure;
pub use file::{FileOfProject, for_file};
pub use freshness::FileState;
pub use prompt::{for_prompt, rank, rank_by_meaning};
pub use sheet::Page;

use claude_mem_capture::{ContextMax, project::ProjectId};
use claude_mem_core::settings::{
    Settings,
    table::{
        CONTEXT_FULL_COUNT, CONTEXT_OBSERVATION_CONCEPTS, CONTEXT_OBSERVATION_TYPES,
        CONTEXT_OBSERVATIONS, CONTEXT_SESSION_COUNT, CONTEXT_TOKENS_MAX,
    },
};
use freshness::Files;
use sheet::Layout;

/// Number of recent observations considered.
const LOOKED_AT_MAX: u32 = 200;

/// Request for a context.
#[derive(Debug)]
pub struct Request<'a> {
    pub project: &'a ProjectId,
    /// Now, or an earlier time to reconstruct the context of.
    pub now: jiff::Timestamp,
    pub moment: ContextMoment<'a>,
    /// Only memories of sessions of this client.
    pub client: Option<&'a str>,
    /// Whether the client reads the files of Claude Code's auto memory itself.
    pub reads_auto_memory: bool,
    /// Token limit; `None` for the setting.
    pub budget: Option<usize>,
    /// The client's size limit.
    pub size_max: ContextMax,
}

/// The occasion on which a session gets its context.
#[derive(Debug, Clone, Copy)]
pub enum ContextMoment<'a> {
    /// At its start: everything.
    Start,
    /// When it is resumed: only memories since its last event. Contains the client's session id.
    Resumed(&'a str),
    /// After its history was compacted: its current state.
    Compacted { session: &'a str, log: &'a Log },
}

/// The context of a session and its statistics; `None` if it would be empty.
pub fn compose(
    store: &Store,
    settings: &Settings,
    request: &Request<'_>,
) -> claude_mem_projections::Result<Option<Page>> {
    let tokens_max = request.budget.unwrap_or_else(|| settings.get(&CONTEXT_TOKENS_MAX));
    let tokens_max = tokens_max.min(request.size_max.tokens());
    if tokens_max == 0 {
        return Ok(None);
    }
    let now_us = u64::try_from(request.now.as_microsecond()).unwrap_or(0);
    let since = match request.moment {
        ContextMoment::Start | ContextMoment::Compacted { .. } => None,
        ContextMoment::Resumed(session) => match store.last_seen_us(session, now_us)? {
            // A resumed session that was never recorded got no context before, and gets none now.
            None => return Ok(None),
            Some(seen_us) => Some((seen_us, session)),
        },
    };
    let types = settings.get(&CONTEXT_OBSERVATION_TYPES);
    let concepts = settings.get(&CONTEXT_OBSERVATION_CONCEPTS);
    let material = store.context_material(&ContextQuery {
        project: &request.project.key,
        root: &request.project.root.to_string_lossy(),
        until_us: now_us,
        since,
        client: request.client,
        reads_auto_memory: request.reads_auto_memory,
        types: &types,
        concepts: &concepts,
        observations_max: LOOKED_AT_MAX,
        sessions_max: settings.get(&CONTEXT_SESSION_COUNT),
    })?;
    let layout = Layout {
        label: match material.project_name.as_str() {
            "" => &request.project.label,
            name => name,
        },
        now: request.now,
        what: if since.is_some() { "what is new since" } else { "memory" },
        observations_max: settings.get(&CONTEXT_OBSERVATIONS),
        full_count: settings.get(&CONTEXT_FULL_COUNT),
        tokens_max,
    };
    if let ContextMoment::Compacted { session, log } = request.moment
        && let Some(state) = store.session_state(session, now_us)?
        && state != SessionState::default()
    {
        let failed = failed_command::last_failed(log, &state)?;
        let layout = Layout { what: "after the compaction", ..layout };
        return Ok(Some(page::write_compacted(&layout, &material, &state, failed.as_ref())));
    }
    if is_empty(&material) {
        return Ok(None);
    }
    let files = Files::of(&request.project.root, request.project.common_dir.as_deref());
    Ok(Some(page::write_page(&layout, &material, &files)))
}

fn is_empty(material: &ContextMaterial) -> bool {
    let ContextMaterial { pinned, by_hand, noted, wide, rules, observations, sessions, .. } =
        material;
    pinned.is_empty()
        && [by_hand, rules, observations].iter().all(|memories| memories.is_empty())
        && noted.is_empty()
        && wide.is_empty()
        && sessions.is_empty()
}

/// States of files compared with an earlier time, within a few milliseconds.
pub fn file_states(root: &Path, files: &[String], at_us: u64) -> Vec<FileState> {
    let git = root.join(".git");
    let looked_at = Files::of(root, Some(&git));
    files.iter().map(|file| looked_at.state(file, at_us)).collect()
}
