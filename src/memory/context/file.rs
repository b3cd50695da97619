//! Memories that are added before a file is read or written: decisions, rules, notes and pitfalls.

use std::path::{Path, PathBuf};

use claude_mem_core::{
    os,
    settings::{Settings, table::CONTEXT_FILE_TOKENS_MAX},
};
use claude_mem_projections::{FileQuery, ListRow, Result, Store};

use super::added::{AddedContext, Recipient};

/// Maximum number of memories for one file.
const MEMORIES_MAX: usize = 3;
/// Number of the latest candidates.
const LOOKED_AT_MAX: usize = 30;
/// A memory about more files is not specific to any of them, unless its text names the file.
const FILES_MAX: usize = 2;

/// A file that is about to be read or written.
#[derive(Debug, Clone, Copy)]
pub struct FileOfProject<'a> {
    /// As the client names it.
    pub path: &'a str,
    /// The folder that a relative path refers to.
    pub cwd: &'a str,
    /// The folder of the project.
    pub root: &'a str,
}

/// The memories about a file; `None` if there are none.
///
/// The memories of a file do not change during a session, so a session receives them once.
pub fn for_file(
    store: &Store,
    settings: &Settings,
    recipient: &Recipient<'_>,
    file: &FileOfProject<'_>,
) -> Result<Option<AddedContext>> {
    let tokens_max = settings.get(&CONTEXT_FILE_TOKENS_MAX);
    if tokens_max == 0 {
        return Ok(None);
    }
    let mut rows = about(store, recipient, file)?;
    if rows.is_empty()
        && let Some(path) = real_path(file)
    {
        rows = about(store, recipient, &FileOfProject { path: &path.to_string_lossy(), ..*file })?;
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let name = file_name(file.path);
    let heading = format!("Notes from earlier sessions about {name}.");
    let lines = recipient.lines(&heading, &rows, tokens_max, name);
    let new = recipient.only_new(store, lines, MEMORIES_MAX, |line| line.id)?;
    Ok(recipient.compose(&heading, &new))
}

fn about(
    store: &Store,
    recipient: &Recipient<'_>,
    file: &FileOfProject<'_>,
) -> Result<Vec<ListRow>> {
    let names = store.observations_of_file(&FileQuery {
        path: file.path,
        cwd: file.cwd,
        project: recipient.project,
        root: file.root,
        until_us: recipient.now_us(),
        session: recipient.session,
        limit: LOOKED_AT_MAX,
    })?;
    let mut rows = store.list_rows(&names)?;
    let name = file_name(file.path);
    rows.retain(|row| files(row) <= FILES_MAX || is_named(row, name));
    // The sort is stable: among equals, the latest comes first.
    rows.sort_by_key(|row| !is_named(row, name));
    rows.truncate(MEMORIES_MAX);
    Ok(rows)
}

fn file_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

/// Number of files of a memory.
fn files(row: &ListRow) -> usize {
    row.body.observation().map_or(0, |body| body.files_read.len() + body.files_modified.len())
}

/// Whether the text of a memory names the file.
fn is_named(row: &ListRow, file: &str) -> bool {
    let Some(body) = row.body.observation() else { return false };
    let texts = [&body.title, &body.subtitle, &body.narrative];
    let texts = texts.into_iter().flatten().chain(&body.facts);
    texts.into_iter().any(|text| text.contains(file))
}

/// The path with links resolved, if it leads into the project from outside. The file need not
/// exist.
fn real_path(file: &FileOfProject<'_>) -> Option<PathBuf> {
    let path = Path::new(file.cwd).join(file.path);
    if path.starts_with(file.root) {
        return None;
    }
    let folder = os::canonicalize(path.parent()?).ok()?;
    Some(folder.join(path.file_name()?)).filter(|real| real.starts_with(file.root))
}
