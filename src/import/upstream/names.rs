//! Maps project names (the name of a folder) to projects.

use std::{collections::HashMap, fs, path::PathBuf};

use claude_mem_events::Project;
use claude_mem_projections::Store;

use crate::{
    home::{Home, transcripts_dir},
    transcripts::begin_of,
};
use claude_mem_core::{app::App, failure::Failure};

/// The project of rows without one.
const UNKNOWN: &str = "unknown-project";

/// Project names, and their resolved projects.
#[derive(Debug)]
pub(super) struct Names {
    /// The client's transcripts by session. They contain the folder of a session.
    transcripts: HashMap<String, PathBuf>,
    folders: HashMap<String, String>,
    /// `None` for projects that are excluded.
    projects: HashMap<String, Option<Project>>,
}

impl Names {
    pub(super) fn new(app: &App) -> Self {
        let mut transcripts = HashMap::new();
        let dirs = transcripts_dir(app).and_then(|dir| fs::read_dir(dir).ok());
        for dir in dirs.into_iter().flatten().flatten() {
            for file in fs::read_dir(dir.path()).into_iter().flatten().flatten() {
                let path = file.path();
                if path.extension().is_some_and(|end| end == "jsonl")
                    && let Some(session) = path.file_stem()
                {
                    transcripts.insert(session.to_string_lossy().into_owned(), path);
                }
            }
        }
        Self { transcripts, folders: HashMap::new(), projects: HashMap::new() }
    }

    /// Adds a session of this project: its transcript may contain the folder.
    pub(super) fn learn_session(&mut self, name: &str, session: &str) {
        if self.folders.contains_key(name) {
            return;
        }
        let begin = self.transcripts.get(session).and_then(|file| begin_of(file));
        if let Some(begin) = begin {
            self.learn_folder(name, &begin.cwd);
        }
    }

    /// Adds a folder where something of this project happened.
    pub(super) fn learn_folder(&mut self, name: &str, cwd: &str) {
        if !cwd.is_empty() && !name.is_empty() {
            self.folders.entry(name.into()).or_insert_with(|| cwd.into());
        }
    }

    /// The project of this name: by its folder, else the only known project with this name, else a
    /// new one of that name. `None` if it is excluded.
    pub(super) fn project(
        &mut self,
        name: &str,
        home: &mut Home<'_>,
        store: &Store,
    ) -> Result<Option<Project>, Failure> {
        let name = if name.is_empty() { UNKNOWN } else { name };
        if let Some(known) = self.projects.get(name) {
            return Ok(known.clone());
        }
        let found = match self.folders.get(name) {
            Some(cwd) => home.project_in(cwd),
            None => Some(known_by_name(name, store)?),
        };
        self.projects.insert(name.into(), found.clone());
        Ok(found)
    }
}

fn known_by_name(name: &str, store: &Store) -> Result<Project, Failure> {
    let is_only_one = store.project_keys_named(name)?.len() == 1;
    let found = if is_only_one { store.project_named(name)? } else { None };
    Ok(match found {
        Some((key, label, root)) => Project { key, label, root },
        None => Project { key: name.into(), label: name.into(), root: String::new() },
    })
}
