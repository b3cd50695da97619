//! Explains a file or a line: joins `git blame` with the recorded edits, to find the turn that made
//! them.

mod blame;
mod line_match;

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure, os::canonicalize, time_arg::rfc3339};
use claude_mem_events::{Event, Recorded};
use claude_mem_projections::{
    Store,
    file_edits::{FileNames, TurnMemory, TurnToolUse},
};
use serde::Serialize;

use crate::{shell_commits::made_commit, store};
use blame::BlamedLine;
use line_match::wrote_line;

/// Git records whole seconds.
const SECOND_US: u64 = 1_000_000;
/// Maximum time between a commit and the end of the tool use that made it.
const COMMIT_TIME_MAX_US: u64 = 3600 * SECOND_US;
/// Maximum number of tool uses after a commit that are searched.
const COMMIT_USES_MAX: u32 = 500;

/// A file on disk or in the log.
#[derive(Debug)]
pub struct WhyFile {
    /// As the user typed it.
    shown: String,
    path: PathBuf,
    project: ProjectId,
    names: FileNames,
}

/// A line and its origin.
#[derive(Debug, Serialize)]
pub struct WhyLine {
    pub file: String,
    pub line: usize,
    pub text: String,
    /// The commit that added it; `None` if it is not committed or unknown to git.
    pub commit: Option<CommitOfLine>,
    /// Why git could not find the line.
    pub git_problem: Option<String>,
    pub turn: Option<Turn>,
}

/// The commit of a line, by `git blame`.
#[derive(Debug, Serialize)]
pub struct CommitOfLine {
    pub id: String,
    pub author: String,
    pub subject: String,
    pub created_at: String,
    pub at_us: u64,
}

/// A turn that edited the file.
#[derive(Debug, Serialize)]
pub struct Turn {
    /// `edit`: an edit in this turn wrote it. `commit`: this turn made the commit.
    pub found_by: &'static str,
    /// The time of the last edit, or of the commit.
    pub created_at: String,
    pub at_us: u64,
    pub session: String,
    pub project: String,
    pub branch: Option<String>,
    pub prompt: Option<PromptOfTurn>,
    /// Number of edits of the file.
    pub edits: usize,
    pub memories: Vec<MemoryOfTurn>,
}

/// The prompt that began a turn.
#[derive(Debug, Serialize)]
pub struct PromptOfTurn {
    pub id: String,
    /// `None` if it is private.
    pub text: Option<String>,
}

/// A memory distilled from the edits.
#[derive(Debug, Serialize)]
pub struct MemoryOfTurn {
    pub id: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The title with its marks, or the completed work of the summary.
    pub title: String,
}

/// Splits `FILE:LINE`. A file whose name ends like that is treated as a file.
pub fn split_line(typed: &str) -> (&str, Option<usize>) {
    match typed.rsplit_once(':') {
        Some((file, line)) if !file.is_empty() && !Path::new(typed).exists() => {
            match line.parse() {
                Ok(line) => (file, Some(line)),
                Err(_) => (typed, None),
            }
        }
        _ => (typed, None),
    }
}

impl WhyFile {
    /// Finds the project of a file, which need not exist.
    pub fn find(typed: &str) -> Self {
        let path = std::path::absolute(typed).unwrap_or_else(|_| PathBuf::from(typed));
        let folder = path.parent().unwrap_or(&path);
        let real_folder = canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let real =
            path.file_name().map_or_else(|| real_folder.clone(), |name| real_folder.join(name));
        let project = ProjectId::of(&real_folder);
        let relative = real.strip_prefix(&project.root).ok().map(recorded_name);
        let mut absolute = vec![recorded_name(&real), recorded_name(&path)];
        absolute.dedup();
        let names = FileNames {
            project: project.key.clone(),
            relative: relative.into_iter().collect(),
            absolute,
        };
        Self { shown: typed.to_owned(), path: real, project, names }
    }

    /// The turns that edited the file, newest first, at most `turns_max`.
    pub fn turns(&self, store: &Store, turns_max: usize) -> Result<Vec<Turn>, Failure> {
        let edits = store.file_edits(&self.names)?;
        if edits.is_empty() {
            return Err(self.no_edit());
        }
        let mut turns: Vec<Vec<TurnToolUse>> = Vec::new();
        let mut places: HashMap<(i64, u32), usize> = HashMap::new();
        for edit in edits {
            let at = *places.entry((edit.session, edit.turn)).or_insert(turns.len());
            match turns.get_mut(at) {
                Some(turn) => turn.push(edit),
                None => turns.push(vec![edit]),
            }
        }
        turns.truncate(turns_max);
        let turns = turns.iter().map(|edits| turn_of(store, edits, "edit"));
        Ok(turns.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    fn no_edit(&self) -> Failure {
        let file = &self.shown;
        if !self.path.exists() {
            return Failure::usage(format!(
                "there is no file {file}, and no edit of it is recorded"
            ))
            .remedy("name a file of the current directory, or a whole path");
        }
        Failure::new(format!("no edit of {file} is recorded"))
            .meaning("edits by hand and by shell commands are not recorded as edits of a file")
            .remedy("search for its name with `claude-mem search`")
    }

    /// Finds the origin of a line.
    pub fn line(&self, app: &App, store: &Store, line: usize) -> Result<WhyLine, Failure> {
        let text = self.text_of(line)?;
        let blamed = blame::blame(&app.environment, &self.project, &self.path, line);
        let (blamed, git_problem) = match blamed {
            Ok(blamed) => (Some(blamed), None),
            Err(problem) => (None, Some(problem)),
        };
        let turn = self.turn_of_line(app, store, &text, blamed.as_ref())?;
        let commit = blamed.and_then(|blamed| blamed.commit).map(|commit| CommitOfLine {
            id: commit.id,
            author: commit.author,
            subject: commit.subject,
            created_at: rfc3339(commit.committed_us),
            at_us: commit.committed_us,
        });
        Ok(WhyLine { file: self.shown.clone(), line, text, commit, git_problem, turn })
    }

    fn text_of(&self, line: usize) -> Result<String, Failure> {
        let file = &self.shown;
        let bytes = std::fs::read(&self.path)
            .map_err(|error| Failure::new(format!("{file} cannot be read: {error}")))?;
        let text = String::from_utf8_lossy(&bytes);
        let found = line.checked_sub(1).and_then(|at| text.lines().nth(at));
        found.map(str::to_owned).ok_or_else(|| {
            let lines = claude_mem_core::format::count(text.lines().count(), "line");
            Failure::usage(format!("{file} has no line {line}")).meaning(format!("it has {lines}"))
        })
    }

    /// The newest edit that wrote this exact line, before the commit if it is committed. Otherwise
    /// the turn that made the commit: a formatter or a shell command wrote the line.
    fn turn_of_line(
        &self,
        app: &App,
        store: &Store,
        text: &str,
        blamed: Option<&BlamedLine>,
    ) -> Result<Option<Turn>, Failure> {
        let mut names = self.names.clone();
        // The file may have had another name then.
        names.relative.extend(blamed.map(|blamed| blamed.path.clone()));
        let commit = blamed.and_then(|blamed| blamed.commit.as_ref());
        let until_us = commit.map_or(u64::MAX, |commit| commit.committed_us + SECOND_US);
        // A blank line does not identify its author.
        if !text.trim().is_empty() {
            for edit in store.file_edits(&names)?.iter().filter(|edit| edit.at_us < until_us) {
                if let Some(Recorded { event: Event::ToolUsed(used), .. }) = event(app, edit)?
                    && wrote_line(&used, text)
                {
                    return turn_of(store, &[*edit], "edit");
                }
            }
        }
        let Some(commit) = commit else { return Ok(None) };
        let (since_us, key) = (commit.committed_us, &self.project.key);
        let until_us = since_us + COMMIT_TIME_MAX_US;
        for used in store.tool_uses_between(key, since_us, until_us, COMMIT_USES_MAX)? {
            if let Some(Recorded { envelope, event: Event::ToolUsed(body), .. }) =
                event(app, &used)?
                && made_commit(&body, &envelope, &commit.id)
            {
                return turn_of(store, &[used], "commit");
            }
        }
        Ok(None)
    }
}

fn event(app: &App, used: &TurnToolUse) -> Result<Option<Recorded>, Failure> {
    store::event_at(&store::open_log_of(app, used.seq)?, used.seq)
}

fn turn_of(
    store: &Store,
    uses: &[TurnToolUse],
    found_by: &'static str,
) -> Result<Option<Turn>, Failure> {
    let (Some(view), Some(newest)) = (store.turn_view(uses)?, uses.first()) else {
        return Ok(None);
    };
    let memory = |memory: TurnMemory| MemoryOfTurn {
        id: memory.name.to_string(),
        type_: memory.type_,
        title: memory.title,
    };
    Ok(Some(Turn {
        found_by,
        created_at: rfc3339(newest.at_us),
        at_us: newest.at_us,
        session: view.session,
        project: view.project,
        branch: view.branch,
        prompt: view.prompt.map(|(id, text)| PromptOfTurn { id: id.to_string(), text }),
        edits: if found_by == "edit" { uses.len() } else { 0 },
        memories: view.memories.into_iter().map(memory).collect(),
    }))
}

/// A path as the tables have it.
fn recorded_name(path: &Path) -> String {
    let name = path.to_string_lossy();
    if cfg!(windows) { name.replace('\\', "/") } else { name.into_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_follows_the_last_colon() {
        let table = [
            ("src/a.rs:42", ("src/a.rs", Some(42))),
            ("src/a.rs", ("src/a.rs", None)),
            ("a:b:7", ("a:b", Some(7))),
            ("src/a.rs:x", ("src/a.rs:x", None)),
            (":7", (":7", None)),
            ("a.rs:-1", ("a.rs:-1", None)),
        ];
        for (typed, parts) in table {
            assert_eq!(split_line(typed), parts, "{typed}");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a:7");
        std::fs::write(&file, "").unwrap();
        let file = file.to_str().unwrap();
        assert_eq!(split_line(file), (file, None));
    }
}
