//! Where something imported belongs: on this machine, to which project, if it may be remembered at all.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use claude_mem_events::{Envelope, Project};

use claude_mem_capture::excluded_by;
use claude_mem_capture::{PLATFORM, is_internal, project::ProjectId, redaction};
use claude_mem_core::{app::App, os};
use claude_mem_privacy::Policy;

/// What is the same for everything in one import.
#[derive(Debug)]
pub(super) struct Home<'a> {
    pub(super) app: &'a App,
    pub(super) policy: Policy,
    host: String,
    /// Projects by folder; nothing for those that must not be remembered.
    folders: HashMap<String, Option<Project>>,
}

impl<'a> Home<'a> {
    pub(super) fn new(app: &'a App) -> Self {
        let host = os::host_name();
        Self { app, policy: redaction::policy(&app.settings), host, folders: HashMap::new() }
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
        let project = (!is_internal && excluded.is_none()).then(|| Project {
            key: found.key,
            label: found.label,
            root: found.root.to_string_lossy().into_owned(),
        });
        self.folders.insert(cwd.into(), project.clone());
        project
    }

    /// Who and where, for something that this program's hooks would have recorded.
    pub(super) fn envelope(
        &self,
        platform: Option<&str>,
        session: &str,
        project: Project,
    ) -> Envelope {
        Envelope {
            host: self.host.clone(),
            platform: platform.unwrap_or(PLATFORM).into(),
            session: session.into(),
            project,
        }
    }
}

/// Where Claude Code keeps its records of past sessions.
pub fn transcripts_dir(app: &App) -> Option<PathBuf> {
    let chosen = app.environment.get("CLAUDE_CONFIG_DIR").map(PathBuf::from);
    let dir = chosen.or_else(|| Some(app.paths.home.as_ref()?.join(".claude")))?;
    Some(dir.join("projects"))
}
