//! Records which memories the assistant fetched.

use claude_mem_core::{
    app::App,
    diagnostics::{self, Level},
    failure::Failure,
};
use claude_mem_events::{InjectionMoment, MemoryInjected};
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId},
};

use crate::{
    remember::{admit, record, session},
    resolve::current_project,
};

/// Bytes per token, roughly.
const TOKEN_BYTES: usize = 4;

/// Records the observations that the assistant fetched in full, and the size of their text. If
/// recording fails, the fetch still succeeds.
pub fn record_fetch(app: &App, store: &Store, fetched: &[MemoryId], text_bytes: usize) {
    if let Err(failure) = try_record(app, store, fetched, text_bytes) {
        let message = format!("fetch: not recorded: {}", failure.render(false).trim_end());
        diagnostics::record(&app.paths.data, Level::Warn, message);
    }
}

fn try_record(
    app: &App,
    store: &Store,
    fetched: &[MemoryId],
    text_bytes: usize,
) -> Result<(), Failure> {
    let ids = fetched.iter().filter(|name| name.kind == Kind::Observation).map(|name| name.id);
    let observations = store.observation_refs(&ids.collect::<Vec<_>>())?;
    let (project, session) = (current_project(app), session(app));
    // Where recording is excluded, fetches are not recorded either.
    if observations.is_empty() || admit(app, &project, &session).is_err() {
        return Ok(());
    }
    let tokens = u32::try_from(text_bytes / TOKEN_BYTES).unwrap_or(u32::MAX);
    let injected = MemoryInjected { moment: InjectionMoment::Fetch, observations, tokens };
    record(app, &project, session, &injected.into())?;
    Ok(())
}
