//! Identifies the project of a session by reading a few files, without running `git`.

mod config;
mod head;
mod remote;
mod worktree_path;

pub use head::GitHead;

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use config::GitConfig;

use crate::clients;
use claude_mem_core::{
    environment::Environment,
    os::{self, OpenOptionsExt as _},
};
use claude_mem_privacy::{Policy, redact_text};

/// A `.git` file or a configuration that is longer than this was not written by git.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// The project of a session without any folder.
const UNKNOWN: &str = "unknown-project";

/// The identity of a project. Two sessions with the same `key` share their memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectId {
    /// The remote of the repository (`github.com/owner/name`, in lower case), or else the path of
    /// the main checkout or folder. The same on every machine with a clone.
    pub key: String,
    /// For display: the name of the top-level folder, or of the parent's in a worktree.
    pub label: String,
    /// The top-level folder this session works in.
    pub root: PathBuf,
    /// `github.com/Owner/Name`: without protocol, user or password.
    pub remote: Option<String>,
    /// Git's own directory, shared by all worktrees.
    pub common_dir: Option<PathBuf>,
    /// The directory with this worktree's own `HEAD`.
    pub git_dir: Option<PathBuf>,
}

/// The project of a command that runs in `cwd`. In a client's session, the directory in which the
/// session was started is used instead, because `cwd` changes with every `cd` of the model.
pub fn identify(cwd: &str, environment: &Environment) -> ProjectId {
    match clients::project_dir_of_process(environment) {
        Some(dir) => ProjectId::of(Path::new(&dir)),
        None => ProjectId::of(Path::new(cwd)),
    }
}

impl ProjectId {
    /// The project of this folder, which need not exist. Never fails.
    pub fn of(dir: &Path) -> Self {
        if !dir.is_absolute() {
            return Self::of_foreign(&dir.to_string_lossy());
        }
        let dir = resolved(dir);
        match Repository::around(&dir) {
            Some(repository) => Self::of_repository(repository),
            None => Self::of_folder(dir),
        }
    }

    /// The project of a worktree that was removed.
    fn of_removed_worktree(dir: &Path) -> Option<Self> {
        let repository = worktree_path::repository_of(&dir.to_string_lossy())?;
        let is_removed = !dir.is_dir();
        is_removed.then(|| Self {
            root: dir.into(),
            git_dir: None,
            ..Self::of(repository.as_ref())
        })
    }

    /// The project of this folder, determined only from its name, without disk access. For folders
    /// named by programs, which must not make us open files.
    ///
    /// The name is redacted first: after splitting, the last part of a URL no longer shows that it
    /// contains a password.
    pub fn unseen(dir: &str) -> Self {
        Self::of_foreign(&redact_text(dir, Policy::default()).text)
    }

    /// A placeholder: the event belongs to the project of its session.
    pub fn of_session() -> Self {
        let (key, label, root) = (String::new(), String::new(), PathBuf::new());
        Self { key, label, root, remote: None, common_dir: None, git_dir: None }
    }

    /// The branch and commit that are checked out now. Empty outside of a repository.
    pub fn head(&self) -> GitHead {
        match (&self.git_dir, &self.common_dir) {
            (Some(git_dir), Some(common_dir)) => GitHead::read(git_dir, common_dir),
            _ => GitHead::default(),
        }
    }

    fn of_repository(repository: Repository) -> Self {
        let config = GitConfig::parse(
            &read_small(&repository.common_dir.join("config")).unwrap_or_default(),
        );
        let label = repository.label(&config);
        let checkout = main_checkout(&repository.common_dir);
        let remote = config.remote_url().and_then(|url| remote::normalised_remote(url, &checkout));
        let key = remote.as_deref().map_or_else(|| shown(&checkout), str::to_lowercase);
        // Local remotes are paths, and letter case matters in those.
        let key = match &remote {
            Some(local) if local.starts_with('/') => local.clone(),
            _ => key,
        };
        let Repository { root, common_dir, git_dir, .. } = repository;
        Self { key, label, root, remote, common_dir: Some(common_dir), git_dir: Some(git_dir) }
    }

    fn of_folder(dir: PathBuf) -> Self {
        if let Some(project) = Self::of_removed_worktree(&dir) {
            return project;
        }
        let label = name(&dir).unwrap_or_else(|| shown(&dir));
        Self { key: shown(&dir), label, root: dir, remote: None, common_dir: None, git_dir: None }
    }

    /// A path of another system, such as `C:\Users\ada\shop`, in imported data. It cannot be looked
    /// up here.
    fn of_foreign(path: &str) -> Self {
        let key = path.trim().replace('\\', "/");
        let key = key.trim_end_matches('/');
        if let Some(repository) = worktree_path::repository_of(key) {
            return Self { root: path.into(), ..Self::of_foreign(&repository) };
        }
        let label = match key.rsplit('/').find(|part| !part.is_empty()) {
            None => UNKNOWN.into(),
            Some(drive) if drive.len() == 2 && drive.ends_with(':') => {
                format!("drive-{}", &drive[..1])
            }
            Some(name) => name.to_owned(),
        };
        let key = if key.is_empty() { UNKNOWN } else { key };
        let (key, root) = (key.into(), path.into());
        Self { key, label, root, remote: None, common_dir: None, git_dir: None }
    }
}

/// A repository as found on disk.
#[derive(Debug)]
struct Repository {
    root: PathBuf,
    common_dir: PathBuf,
    git_dir: PathBuf,
    is_worktree: bool,
}

impl Repository {
    /// The repository that contains this folder. A bare one counts only outside of all checkouts:
    /// inside of one it may be content that its author made up, with the remote of another project.
    /// Git has `safe.bareRepository` for the same reason.
    fn around(dir: &Path) -> Option<Self> {
        let bare = || {
            let is_bare = |dir: &&Path| is_git_dir(dir) && dir.join("objects").is_dir();
            dir.ancestors().find(is_bare).map(Self::bare)
        };
        dir.ancestors().find_map(Self::at).or_else(bare)
    }

    /// The repository whose top level is exactly this folder.
    fn at(dir: &Path) -> Option<Self> {
        let git = dir.join(".git");
        match fs::metadata(&git) {
            Ok(found) if found.is_dir() => is_git_dir(&git).then(|| Self::main(dir, git)),
            Ok(found) if found.is_file() => Self::linked(dir, &git),
            _ => None,
        }
    }

    fn main(dir: &Path, git: PathBuf) -> Self {
        Self { root: dir.into(), common_dir: git.clone(), git_dir: git, is_worktree: false }
    }

    /// A repository without a working tree.
    fn bare(dir: &Path) -> Self {
        let root = main_checkout(dir);
        Self { root, common_dir: dir.into(), git_dir: dir.into(), is_worktree: false }
    }

    /// `.git` is a file that names the real directory: a worktree or a submodule.
    ///
    /// Any archive can contain such a file. So the directory has to name this folder, too, or be
    /// below it.
    fn linked(dir: &Path, git: &Path) -> Option<Self> {
        let named =
            |file: &Path| Some(String::from_utf8(read_small(file)?).ok()?.trim().to_owned());
        let git_dir = resolved(&dir.join(named(git)?.strip_prefix("gitdir:")?.trim()));
        let (common_dir, is_worktree, is_mutual) = match named(&git_dir.join("commondir")) {
            Some(common) => {
                let back = named(&git_dir.join("gitdir"));
                let is_mutual = back.is_some_and(|back| {
                    let back = git_dir.join(back);
                    // In a container, or after a move, the folder that it names does not exist.
                    resolved(&back) == resolved(git) || !back.exists()
                });
                let common_dir = resolved(&git_dir.join(common));
                if !git_dir.starts_with(&common_dir) {
                    return None;
                }
                (common_dir, true, is_mutual)
            }
            None if is_git_dir(&git_dir) => {
                let config = read_small(&git_dir.join("config")).unwrap_or_default();
                let config = GitConfig::parse(&config);
                let names_us = |folder: &str| resolved(&git_dir.join(folder)) == dir;
                (git_dir.clone(), false, config.worktree().is_some_and(names_us))
            }
            // A pruned worktree, or one seen from inside a container: the name of its parent is in
            // the path.
            None => {
                let parent = git_dir.parent().filter(|parent| parent.ends_with("worktrees"))?;
                let common_dir = parent.parent()?;
                (common_dir.into(), true, !is_git_dir(common_dir))
            }
        };
        let is_ours = is_mutual
            || git_dir.starts_with(dir)
            || is_worktree && dir.starts_with(main_checkout(&common_dir));
        is_ours.then(|| Self { root: dir.into(), common_dir, git_dir, is_worktree })
    }

    fn label(&self, config: &GitConfig) -> String {
        let labelled = match (self.is_worktree, config.worktree()) {
            (false, _) => self.root.clone(),
            // The parent is itself a submodule, whose directory is inside another repository.
            (true, Some(checkout)) => resolved(&self.common_dir.join(checkout)),
            (true, None) => main_checkout(&self.common_dir),
        };
        let name = name(&labelled).unwrap_or_else(|| shown(&labelled));
        match name.strip_suffix(".git") {
            Some(stem) if !stem.is_empty() => stem.into(),
            _ => name,
        }
    }
}

/// The folder of a git directory: `shop` for `shop/.git` and `shop/.bare`, itself for `shop.git`.
fn main_checkout(common_dir: &Path) -> PathBuf {
    let is_hidden = name(common_dir).is_some_and(|name| name.starts_with('.'));
    match common_dir.parent() {
        Some(parent) if is_hidden => parent.into(),
        _ => common_dir.into(),
    }
}

/// `HEAD` may be a symbolic link to a branch that has no commit yet.
fn is_git_dir(dir: &Path) -> bool {
    fs::symlink_metadata(dir.join("HEAD")).is_ok_and(|head| !head.is_dir())
}

/// The path without links and dots. Of a missing folder, the existing part is resolved.
pub(crate) fn resolved(path: &Path) -> PathBuf {
    let mut missing = Vec::new();
    for existing in path.ancestors() {
        if let Ok(found) = os::canonicalize(existing) {
            return missing.into_iter().rev().fold(found, |path, name| match name {
                std::path::Component::ParentDir => {
                    path.parent().map_or(path.clone(), Path::to_path_buf)
                }
                name => path.join(name),
            });
        }
        missing.extend(existing.components().next_back());
    }
    path.to_path_buf()
}

/// Reads a short regular file. Does not block on a pipe or device in its place.
fn read_small(file: &Path) -> Option<Vec<u8>> {
    let opened = fs::OpenOptions::new().read(true).no_wait().open(file).ok()?;
    let found = opened.metadata().ok()?;
    if !found.is_file() || found.len() > FILE_BYTES_MAX {
        return None;
    }
    let mut bytes = Vec::with_capacity(found.len() as usize + 1);
    opened.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn name(path: &Path) -> Option<String> {
    path.file_name().map(|name| name.to_string_lossy().into_owned())
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
