//! Where something imported belongs: on this machine, to which project, if it may be remembered at all.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use claude_mem_events::Project;

use claude_mem_capture::{
    clients::claude_code, excluded_by, is_internal, project::ProjectId, redaction,
};
use claude_mem_core::app::App;
use claude_mem_privacy::Policy;

/// What is the same for everything in one import.
#[derive(Debug)]
pub(super) struct Home<'a> {
    pub(super) app: &'a App,
    pub(super) policy: Policy,
    /// Projects by folder; nothing for those that must not be remembered.
    folders: HashMap<String, Option<Project>>,
}

impl<'a> Home<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        Self { app, policy: redaction::policy(&app.settings), folders: HashMap::new() }
    }

    /// The project of a session that began in this folder; nothing if the user wants nothing of it stored.
    pub(super) fn project_in(&mut self, cwd: &str) -> Option<Project> {
        if let Some(known) = self.folders.get(cwd) {
            return known.clone();
        }
        let found = ProjectId::of(Path::new(cwd));
        let dirs = [Path::new(cwd), &found.root];
        let is_internal = dirs.into_iter().any(|dir| is_internal(&self.app.paths.data, dir));
        let home = self.app.paths.home.as_deref();
        let excluded = excluded_by(&self.app.settings, &found, Path::new(cwd), home);
        let project = (!is_internal && excluded.is_none()).then(|| found.into());
        self.folders.insert(cwd.into(), project.clone());
        project
    }
}

/// Where Claude Code keeps the transcripts of past sessions.
pub(crate) fn transcripts_dir(app: &App) -> Option<PathBuf> {
    let dir = claude_code::config_dir(&app.environment, app.paths.home.as_deref())?;
    Some(dir.join("projects"))
}
