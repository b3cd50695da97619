//! Runs git for a command. Hooks read git's files themselves.
//!
//! The configuration of a repository can name programs, and its remotes can be commands. So git
//! never reads it: git gets a directory of our own without configuration, which has the commit of
//! the repository, its objects and its index. Nothing that a repository contains can then name a
//! program. Missing objects are not fetched.

use std::{
    ffi::OsStr,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use claude_mem_capture::project::ProjectId;
use claude_mem_core::environment::Environment;

/// Variables of every run. The first two repeat what the lack of configuration does.
const VARIABLES: [(&str, &str); 7] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", if cfg!(windows) { "NUL" } else { "/dev/null" }),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("LC_ALL", "C"),
];

/// Settings of every run. A checkout may have CR LF where the commit has LF.
const SETTINGS: [&str; 2] = ["core.quotePath=false", "core.autocrlf=input"];

/// Runs `git` in a folder of a repository and returns what it prints. The error is for the user, in
/// one line.
pub fn git(
    environment: &Environment,
    project: &ProjectId,
    folder: &Path,
    arguments: &[&OsStr],
) -> Result<String, String> {
    let (Some(git_dir), Some(common_dir)) = (&project.git_dir, &project.common_dir) else {
        return Err("not in a git repository".into());
    };
    let commit = project.head().commit;
    if commit.is_empty() {
        return Err("the repository has no commit".into());
    }
    let unusable = |error| format!("no temporary folder for git: {error}");
    let own = own_git_dir(&commit).map_err(unusable)?;
    let mut git = Command::new("git");
    git.env_clear().envs(environment.own()).envs(VARIABLES);
    git.env("GIT_DIR", own.path()).env("GIT_WORK_TREE", &project.root);
    git.env("GIT_OBJECT_DIRECTORY", common_dir.join("objects"));
    git.env("GIT_INDEX_FILE", git_dir.join("index"));
    let shallow = common_dir.join("shallow");
    if shallow.exists() {
        git.env("GIT_SHALLOW_FILE", shallow);
    }
    git.args(SETTINGS.iter().flat_map(|setting| ["-c", setting])).arg("--no-pager");
    git.args(arguments).current_dir(folder).stdin(Stdio::null());
    let output = git.output().map_err(|error| format!("git cannot be run: {error}"))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(message.lines().next().unwrap_or("git failed").to_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A git directory with this commit checked out, and nothing else.
fn own_git_dir(commit: &str) -> std::io::Result<tempfile::TempDir> {
    let own = tempfile::Builder::new().prefix("claude-mem-git-").tempdir()?;
    fs::create_dir(own.path().join("refs"))?;
    fs::write(own.path().join("HEAD"), format!("{commit}\n"))?;
    if commit.len() == 64 {
        let config = "[core]\nrepositoryformatversion = 1\n[extensions]\nobjectFormat = sha256\n";
        fs::write(own.path().join("config"), config)?;
    }
    Ok(own)
}
