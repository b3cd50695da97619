//! `claude-mem context`: what a session in this project would be told.

use std::time::Duration;

use clap::Args;
use claude_mem_projections::Store;
use serde_json::json;

use crate::{
    app::App,
    context::{Page, Request, compose},
    failure::Failure,
    memory,
    project::{self, ProjectId},
    when::When,
};

/// How long a person may be kept waiting for the tables to catch up.
const FOLD_TIME_MAX: Duration = Duration::from_secs(2);

/// Show what Claude is told when a session begins; also the hook of `SessionStart`
///
/// Claude Code runs this without arguments and with its own JSON on stdin: then the session is recorded and
/// the memory that fits it is the answer. Typed by hand, or with any of the flags, it shows that memory and
/// records nothing.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// Of another project: a folder, or its name or key [default: this folder's]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// As it would have been at this moment, such as `2026-03-01` or `3d`
    #[arg(long, value_name = "WHEN")]
    as_of: Option<When>,
    /// Tokens it may cost [default: `CLAUDE_MEM_CONTEXT_TOKENS_MAX`]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Context {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let log = memory::open_log(app)?;
        let mut store = memory::open(app)?;
        memory::fold_for(&mut store, &log, FOLD_TIME_MAX)?;
        let project = self.project(app, &store)?;
        let now = app.clock.now();
        let now = self.as_of.as_ref().map_or(now, |when| when.end(now));
        let request = Request { project: &project, now, resumed: None, budget: self.budget };
        let page = compose(&store, &app.settings, &request)?;
        if self.json {
            return app.output.json(&object(&project, page.as_ref()));
        }
        match page {
            Some(page) => app.output.line(app.output.page(&page.text)),
            None => {
                let label = &project.label;
                app.output.say(format_args!("nothing is remembered of {label} yet"));
                Ok(())
            }
        }
    }

    /// The project meant: a folder if it is one, else what is remembered under that name.
    fn project(&self, app: &App, store: &Store) -> Result<ProjectId, Failure> {
        let here = std::env::current_dir().unwrap_or_default();
        let Some(name) = &self.project else {
            return Ok(project::identify(&here.to_string_lossy(), &app.environment));
        };
        let dir = here.join(name);
        if dir.is_dir() {
            return Ok(ProjectId::of(&dir));
        }
        match store.project_named(name)? {
            Some((key, label, root)) => {
                let found = ProjectId::of(root.as_ref());
                Ok(ProjectId { key, label, ..found })
            }
            None => Err(Failure::new(format!("nothing is remembered of a project `{name}`"))
                .remedy("give its folder, or one of the names in `claude-mem status --json`")),
        }
    }
}

fn object(project: &ProjectId, page: Option<&Page>) -> serde_json::Value {
    json!({
        "project": project.label,
        "key": project.key,
        "text": page.map_or("", |page| &page.text),
        "tokens": page.map_or(0, |page| page.tokens),
        "tokens_max": page.map_or(0, |page| page.tokens_max),
        "observations": page.map_or(0, |page| page.observations),
        "observations_total": page.map_or(0, |page| page.observations_total),
    })
}
