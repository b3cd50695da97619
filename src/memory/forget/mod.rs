//! Forgets memories by id or by condition, and undoes it, for every front end.
//!
//! `Forgotten` is an event: rows disappear at once, and it can be undone until the log is
//! compacted.

mod conditions;
mod forgotten;

pub use conditions::{Condition, forget_matches, select};
pub use forgotten::forgotten_titles;

use claude_mem_events::{Event, Forgotten, Id};
use claude_mem_projections::{
    MemorySource, Store,
    search::{Kind, MemoryId},
};

use crate::{
    remember::{record, session},
    semantic::erase_hidden,
    store,
};
use claude_mem_capture::{project::ProjectId, redaction};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::redact_text;

/// What would be forgotten.
#[derive(Debug)]
pub struct ForgetSelection {
    /// The memories named by the user.
    pub named: Vec<MemorySource>,
    /// Memories derived from them, forgotten as well.
    pub also: Vec<MemorySource>,
}

/// Resolves ids, and finds the memories derived from them.
pub fn find(store: &Store, ids: &[MemoryId]) -> Result<ForgetSelection, Failure> {
    let mut named = Vec::new();
    let mut missing = Vec::new();
    for id in ids {
        match store.memory_source(*id)? {
            Some(memory) => named.push(memory),
            None => missing.push(id.to_string()),
        }
    }
    if !missing.is_empty() {
        return Err(Failure::usage(format!("there is no memory {}", missing.join(", ")))
            .meaning("nothing was forgotten")
            .remedy("find its ID with `claude-mem search`"));
    }
    let mut also = Vec::new();
    for memory in named.iter().filter(|memory| memory.number.is_none()) {
        for name in store.memories_of_event(memory.event)? {
            let is_new =
                !ids.contains(&name) && also.iter().all(|other: &MemorySource| other.name != name);
            also.extend(if is_new { store.memory_source(name)? } else { None });
        }
    }
    Ok(ForgetSelection { named, also })
}

/// Forgets memories. Returns the id of the `Forgotten` event, for undo.
pub fn forget(
    app: &mut App,
    store: &mut Store,
    selection: &ForgetSelection,
    reason: &str,
) -> Result<Id, Failure> {
    // An observation is one of several in a response. Everything else is forgotten with its event,
    // so that its bytes can be removed later.
    let (parts, wholes): (Vec<_>, Vec<_>) =
        selection.named.iter().partition(|memory| memory.number.is_some());
    let address =
        |memory: &&MemorySource| memory.number.map(|number| format!("{}/{number}", memory.event));
    let forgotten = Forgotten {
        events: wholes.iter().map(|memory| *memory.event.as_bytes()).collect(),
        rows: parts.iter().filter_map(address).collect(),
        reason: redact_text(reason, redaction::policy(&app.settings)).text,
        ..Forgotten::default()
    };
    let id = append(app, &project_of(store, &selection.named)?, forgotten)?;
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    erase_hidden(app, store)?;
    Ok(id)
}

/// Undoes the forgetting with this id or prefix; without an id, the last one that can be undone.
/// Returns the number of restored memories.
pub fn undo(app: &mut App, store: &mut Store, id: &str) -> Result<u64, Failure> {
    let mut found = store.forgettings(id)?;
    found.retain(|forgetting| !forgetting.is_undoing);
    if id.is_empty() {
        found.retain(|forgetting| !forgetting.is_void && !forgetting.is_final);
        found.truncate(1);
        if found.is_empty() {
            return Err(Failure::new("there is nothing to undo")
                .meaning("nothing was forgotten, or it was undone or compacted since"));
        }
    }
    let list = "see all with `claude-mem log --kind Forgotten`";
    let [forgetting] = &found[..] else {
        let many = if found.is_empty() { "no" } else { "more than one" };
        return Err(Failure::usage(format!("there is {many} forget operation `{id}`")).remedy(list));
    };
    if forgetting.is_void {
        return Err(Failure::new("it was already undone").meaning("nothing was changed"));
    }
    if forgetting.is_final {
        return Err(
            Failure::new("a compaction has deleted it permanently").meaning("nothing was changed")
        );
    }
    let (undoes, memories) = (Some(*forgetting.event.as_bytes()), forgetting.memories);
    let project = known_project(store.project_of_event(forgetting.event)?);
    append(app, &project, Forgotten { undoes, ..Forgotten::default() })?;
    // Removed rows exist only in the log, so the database is rebuilt.
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    Ok(memories)
}

fn append(app: &App, project: &ProjectId, forgotten: Forgotten) -> Result<Id, Failure> {
    record(app, project, session(app), &Event::from(forgotten))
}

/// The common project of these memories; none if there are several.
fn project_of(store: &Store, memories: &[MemorySource]) -> Result<ProjectId, Failure> {
    let mut projects = Vec::new();
    for memory in memories {
        projects.push(store.project_of_event(memory.event)?);
    }
    projects.dedup();
    let is_one = projects.len() == 1;
    Ok(known_project(projects.pop().flatten().filter(|_| is_one)))
}

/// A project of the database; one without a name if it is unknown.
pub(crate) fn known_project(found: Option<(String, String, String)>) -> ProjectId {
    match found {
        Some((key, label, root)) => {
            ProjectId { key, label, root: root.into(), ..ProjectId::of_session() }
        }
        None => ProjectId::of_session(),
    }
}

/// One line for each memory: ID, type, title.
pub fn lines(memories: &[MemorySource]) -> impl Iterator<Item = String> {
    memories.iter().map(|memory| {
        let MemorySource { name, type_, title, project, .. } = memory;
        let type_ = if name.kind == Kind::Prompt { "prompt" } else { type_ };
        format!("{name} | {type_} | {project} | {title}")
    })
}
