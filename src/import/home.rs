//! The project and host of imported events, and whether they may be stored.

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

/// The settings of one import.
#[derive(Debug)]
pub(super) struct Home<'a> {
    pub(super) app: &'a App,
    pub(super) policy: Policy,
    /// Projects by folder; `None` for excluded ones.
    folders: HashMap<String, Option<Project>>,
}

impl<'a> Home<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        Self { app, policy: redaction::policy(&app.settings), folders: HashMap::new() }
    }

    /// The project of a session that began in this folder; `None` if it is excluded.
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

/// The directory of Claude Code's transcripts.
pub(crate) fn transcripts_dir(app: &App) -> Option<PathBuf> {
    let dir = claude_code::config_dir(&app.environment, app.paths.home.as_deref())?;
    Some(dir.join("projects"))
}
