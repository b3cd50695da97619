//! Projects by name: list, rename, merge, and undo a merge.
//!
//! A merge is an event. Memories keep the project they were recorded under, and queries follow the
//! merge, so an undo loses nothing. A merge applies on every machine, and to everything recorded
//! later.

use std::path::Path;

use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_events::{Event, ProjectMerged};
use claude_mem_projections::{ProjectAlias, ProjectStats, Store};

use crate::{
    remember::{record, session},
    resolve, store,
};

/// Longer names do not fit in lists.
const LABEL_CHARS_MAX: usize = 100;

/// A project with its totals, and the keys that were merged into it.
#[derive(Debug)]
pub struct ListedProject {
    pub stats: ProjectStats,
    pub aliases: Vec<ProjectAlias>,
}

/// All projects with sessions or memories, the most recently used first.
pub fn list(store: &Store) -> Result<Vec<ListedProject>, Failure> {
    let aliases = store.project_aliases()?;
    let is_used = |stats: &ProjectStats| stats.sessions + stats.observations + stats.summaries > 0;
    let listed = store.project_stats(0)?.into_iter().filter(is_used).map(|stats| {
        let aliases = aliases.iter().filter(|alias| alias.owner == stats.key).cloned().collect();
        ListedProject { stats, aliases }
    });
    Ok(listed.collect())
}

/// Gives a project another name. Returns its key.
pub fn rename(app: &App, store: &mut Store, name: &str, label: &str) -> Result<String, Failure> {
    let key = resolve::only_project(store, name)?;
    let label = label.trim();
    if label.is_empty() || label.chars().count() > LABEL_CHARS_MAX {
        return Err(Failure::usage(format!("a name has 1 to {LABEL_CHARS_MAX} characters")));
    }
    append(
        app,
        store,
        ProjectMerged { from: key.clone(), into: key.clone(), label: label.into() },
    )?;
    Ok(key)
}

/// Merges a project into another one, for everything recorded in it now and later. Returns both
/// keys.
pub fn merge(
    app: &App,
    store: &mut Store,
    from: &str,
    into: &str,
) -> Result<(String, String), Failure> {
    let from = resolve::only_project(store, from)?;
    join(app, store, from, into)
}

/// Like [`merge`], for a folder or key without recorded events.
pub fn alias(
    app: &App,
    store: &mut Store,
    from: &str,
    into: &str,
) -> Result<(String, String), Failure> {
    let folder = Path::new(from);
    let from = match std::path::absolute(folder) {
        Ok(folder) if folder.is_dir() => ProjectId::of(&folder).key,
        _ => from.to_owned(),
    };
    join(app, store, from, into)
}

fn join(
    app: &App,
    store: &mut Store,
    from: String,
    into: &str,
) -> Result<(String, String), Failure> {
    // The target is never a merged project: the event would undo that merge.
    let into = resolve::only_project(store, into)?;
    if store.project_keys_named(&from)?.contains(&into) {
        return Err(Failure::usage("these are already one project"));
    }
    let merged = ProjectMerged { from: from.clone(), into: into.clone(), label: String::new() };
    append(app, store, merged)?;
    Ok((from, into))
}

/// Undoes the merge of a project into another one. Returns its key.
pub fn split(app: &App, store: &mut Store, name: &str) -> Result<String, Failure> {
    let folder = std::path::absolute(name).ok().filter(|folder| folder.is_dir());
    let key_of_folder = folder.map(|folder| ProjectId::of(&folder).key);
    let is_meant = |alias: &ProjectAlias| {
        alias.key == name || alias.label == name || Some(&alias.key) == key_of_folder.as_ref()
    };
    let mut found = store.project_aliases()?;
    found.retain(is_meant);
    let key = match &found[..] {
        [only] => only.key.clone(),
        [] => {
            return Err(Failure::usage(format!("`{name}` is not merged into another project"))
                .remedy("list merged projects with `claude-mem projects`"));
        }
        several => {
            let keys: Vec<&str> = several.iter().map(|alias| alias.key.as_str()).collect();
            let what = format!("`{name}` is the name of several projects");
            return Err(Failure::ambiguous(what, &keys));
        }
    };
    append(
        app,
        store,
        ProjectMerged { from: key.clone(), into: key.clone(), ..Default::default() },
    )?;
    Ok(key)
}

fn append(app: &App, store: &mut Store, merged: ProjectMerged) -> Result<(), Failure> {
    record(app, &ProjectId::of_session(), session(app), &Event::from(merged))?;
    // A merge can change the order in which events apply, so the database may have to be rebuilt.
    store::fold(store, &store::open_log(app)?)?;
    Ok(())
}
