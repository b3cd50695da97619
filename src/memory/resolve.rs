//! Resolves the name of a project or session.
//!
//! A project is named by its key, by its label, or by a folder in it. Several projects can share a
//! label: that is an error which lists the keys, for reading too. Otherwise a session in one folder
//! `api` would be told about another one.

use std::path::{Path, PathBuf};

use claude_mem_capture::project::{ProjectId, identify};
use claude_mem_core::{app::App, failure::Failure};
use claude_mem_projections::{Result as StoreResult, Store};

/// The project in the working directory.
pub fn current_project(app: &App) -> ProjectId {
    let here = std::env::current_dir().unwrap_or_default();
    identify(&here.to_string_lossy(), &app.environment)
}

/// The project to read from: the one of this name, the one in this folder, or the current one
/// without a name.
pub fn project(app: &App, store: &Store, name: Option<&str>) -> Result<ProjectId, Failure> {
    let Some(name) = name else { return Ok(current_project(app)) };
    if let Some(key) = only_recorded_project(store, name)?
        && let Some(row) = store.project_named(&key)?
    {
        return Ok(from_row(row));
    }
    let folder = std::env::current_dir().unwrap_or_default().join(name);
    if folder.is_dir() {
        return Ok(ProjectId::of(&folder));
    }
    Err(unknown_project(name))
}

/// The same project, with its current name: the user may have renamed or merged it. Events keep the
/// name of their folder.
pub fn named_project(app: &App, store: &Store, name: Option<&str>) -> Result<ProjectId, Failure> {
    let project = project(app, store, name)?;
    let known = store.project_named(&project.key)?.map(|(_, label, _)| label);
    Ok(match known.filter(|label| !label.is_empty()) {
        Some(label) => ProjectId { label, ..project },
        None => project,
    })
}

/// The key of the only project of this name, or in this folder.
pub fn only_project(store: &Store, name: &str) -> Result<String, Failure> {
    if let Some(key) = only_recorded_project(store, name)? {
        return Ok(key);
    }
    let folder = Path::new(name);
    if folder.is_dir()
        && let Ok(folder) = std::path::absolute(folder)
    {
        let key = ProjectId::of(&folder).key;
        if !store.project_keys_named(&key)?.is_empty() {
            return Ok(key);
        }
    }
    Err(unknown_project(name))
}

/// The only project with this key or label, or the innermost one around this absolute path.
/// Identifies no folder, so an HTTP request may name it.
pub fn recorded_project(store: &Store, name: &str) -> Result<Option<ProjectId>, Failure> {
    let known = match only_recorded_project(store, name)? {
        Some(key) => store.project_named(&key)?,
        None if Path::new(name).is_absolute() => store.project_around(name)?,
        None => None,
    };
    Ok(known.map(from_row))
}

/// The key of the only project with this key or label. Accesses no folder.
pub fn only_recorded_project(store: &Store, name: &str) -> Result<Option<String>, Failure> {
    match &store.project_keys_named(name)?[..] {
        [] => Ok(None),
        [key] => Ok(Some(key.clone())),
        keys => Err(Failure::ambiguous(format!("`{name}` is the name of several projects"), keys)),
    }
}

/// Refuses a filter that names no project: an empty answer would hide the mistake.
pub fn check_filter(store: &Store, name: Option<&str>) -> Result<(), Failure> {
    match name {
        Some(name) if store.project_keys_named(name)?.is_empty() => Err(unknown_project(name)),
        _ => Ok(()),
    }
}

/// The project of an external event: by folder, by name, or by its session. Opens no folder.
pub fn reported_project(
    store: &Store,
    folder: &str,
    name: &str,
    session: &str,
) -> StoreResult<ProjectId> {
    let mut known = None;
    if !folder.is_empty() {
        known = store.project_around(folder)?;
    }
    if known.is_none() && !name.is_empty() {
        known = store.project_named(name)?;
    }
    if known.is_none() && folder.is_empty() && name.is_empty() {
        known = store.project_of(session)?;
    }
    let reported = if folder.is_empty() { name } else { folder };
    let unseen = || ProjectId { root: PathBuf::new(), ..ProjectId::unseen(reported) };
    Ok(known.map_or_else(unseen, |(key, label, root)| ProjectId {
        key,
        label,
        root: root.into(),
        ..ProjectId::unseen("")
    }))
}

/// The error for a project without recorded events.
pub fn unknown_project(name: &str) -> Failure {
    Failure::usage(format!("there is no recorded project `{name}`"))
        .remedy("name its folder, or one of the projects that `claude-mem projects` lists")
}

/// The session with this id, or the only one whose id has this prefix.
pub fn session(store: &Store, name: &str) -> Result<String, Failure> {
    let ids = store.session_ids_starting(name)?;
    match &ids[..] {
        [only] => Ok(only.clone()),
        [exact, ..] if exact == name => Ok(exact.clone()),
        [] => Err(Failure::usage(format!("there is no recorded session `{name}`")).remedy(
            "find sessions with `claude-mem log`, and memories, such as `12` or `S3`, with \
             `claude-mem search`",
        )),
        several => {
            Err(Failure::ambiguous(format!("several session IDs start with `{name}`"), several))
        }
    }
}

fn from_row((key, label, root): (String, String, String)) -> ProjectId {
    ProjectId { key, label, ..ProjectId::of(root.as_ref()) }
}
