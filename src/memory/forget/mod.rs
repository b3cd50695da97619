//! Forgetting memories by name or by what they are about, and taking that back, for the command line, MCP and
//! whoever else is asked to.
//!
//! A forgetting is a fact like any other: the tables lose what it names at once, and it can be taken back until
//! the log is compacted.

mod conditions;

pub use conditions::{Condition, forget_meant, select};

use claude_mem_events::{Event, Forgotten, Id};
use claude_mem_projections::{
    MemorySource, Store,
    search::{Kind, MemoryId},
};

use crate::{
    remember::{record, session},
    store,
};
use claude_mem_capture::{project::ProjectId, redaction};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_privacy::clean_text;

/// What a forgetting would take away.
#[derive(Debug)]
pub struct Taken {
    /// The memories that were named.
    pub named: Vec<MemorySource>,
    /// What goes with them, because it was made of one of them.
    pub also: Vec<MemorySource>,
}

/// Finds what these names stand for, and what goes with it.
pub fn find(store: &Store, ids: &[MemoryId]) -> Result<Taken, Failure> {
    let mut named = Vec::new();
    let mut missing = Vec::new();
    for id in ids {
        match store.memory_source(*id)? {
            Some(memory) => named.push(memory),
            None => missing.push(id.to_string()),
        }
    }
    if !missing.is_empty() {
        return Err(Failure::new(format!("there is no memory {}", missing.join(", ")))
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
    Ok(Taken { named, also })
}

/// Forgets them. Gives the forgetting, by which it can be taken back.
pub fn forget(
    app: &mut App,
    store: &mut Store,
    taken: &Taken,
    reason: &str,
) -> Result<Id, Failure> {
    // What an agent said is one of several things in its reply. All else is forgotten with its event, so
    // that the bytes of it can be removed later.
    let (parts, wholes): (Vec<_>, Vec<_>) =
        taken.named.iter().partition(|memory| memory.number.is_some());
    let address =
        |memory: &&MemorySource| memory.number.map(|number| format!("{}/{number}", memory.event));
    let forgotten = Forgotten {
        events: wholes.iter().map(|memory| *memory.event.as_bytes()).collect(),
        rows: parts.iter().filter_map(address).collect(),
        reason: clean_text(reason, redaction::policy(&app.settings)).text,
        ..Forgotten::default()
    };
    let id = append(app, &project_of(store, &taken.named)?, forgotten)?;
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    Ok(id)
}

/// Takes the forgetting back whose id is this or begins like this; without an id, the last one that still can
/// be. Gives how many memories are there again.
pub fn undo(app: &mut App, store: &mut Store, id: &str) -> Result<u64, Failure> {
    let mut found = store.forgettings(id)?;
    found.retain(|forgetting| !forgetting.is_undoing);
    if id.is_empty() {
        found.retain(|forgetting| !forgetting.is_void && !forgetting.is_final);
        found.truncate(1);
        if found.is_empty() {
            return Err(Failure::new("there is nothing to take back")
                .meaning("nothing was forgotten, or it was taken back or compacted since"));
        }
    }
    let list = "see all with `claude-mem log --kind Forgotten`";
    let [forgetting] = &found[..] else {
        let many = if found.is_empty() { "no" } else { "more than one" };
        return Err(Failure::new(format!("there is {many} forgetting `{id}`")).remedy(list));
    };
    if forgetting.is_void {
        return Err(Failure::new("that was taken back before").meaning("nothing was changed"));
    }
    if forgetting.is_final {
        return Err(Failure::new("that was removed for good by a compaction since")
            .meaning("nothing was changed"));
    }
    let (undoes, memories) = (Some(*forgetting.event.as_bytes()), forgetting.memories);
    let project = known(store.project_of_event(forgetting.event)?);
    append(app, &project, Forgotten { undoes, ..Forgotten::default() })?;
    // What was removed is only in the log: everything is drawn again, however long that takes.
    let log = store::open_log(app)?;
    store::fold(store, &log)?;
    Ok(memories)
}

fn append(app: &App, project: &ProjectId, forgotten: Forgotten) -> Result<Id, Failure> {
    record(app, project, session(app), &Event::from(forgotten))
}

/// The project that all of these are of, wherever one stands while one forgets them; none, if there are several.
fn project_of(store: &Store, memories: &[MemorySource]) -> Result<ProjectId, Failure> {
    let mut projects = Vec::new();
    for memory in memories {
        projects.push(store.project_of_event(memory.event)?);
    }
    projects.dedup();
    let is_one = projects.len() == 1;
    Ok(known(projects.pop().flatten().filter(|_| is_one)))
}

fn known(found: Option<(String, String, String)>) -> ProjectId {
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
