//! `claude-mem context`: the context that a new session receives.

use clap::Args;
use serde_json::json;

use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_memory::{
    context::{Page, Request, compose},
    resolve, store,
};

/// Show the context that Claude receives at session start; also the `SessionStart` hook
///
/// Claude Code runs this without arguments and with JSON on stdin: then it records the session and responds with
/// its context. On a terminal, or with any option, it prints the context and records nothing.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// Project name, key or folder [default: the project of this folder]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Show the context as of this time, such as `2026-03-01` or `3d`
    #[arg(long, value_name = "WHEN")]
    as_of: Option<When>,
    /// Maximum number of tokens [default: `CLAUDE_MEM_CONTEXT_TOKENS_MAX`]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Context {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let project = resolve::project(app, &store, self.project.as_deref())?;
        let now = app.clock.now();
        let now = self.as_of.as_ref().map_or(now, |when| when.end(now));
        let request = Request { project: &project, now, resumed: None, budget: self.budget };
        let page = compose(&store, &app.settings, &request)?;
        if self.json {
            return app.output.json(&to_json(&project, page.as_ref()));
        }
        let Some(page) = page else {
            app.output.say(format_args!("no memories of {} yet", project.label));
            return Ok(());
        };
        app.output.line(app.output.page(&page.text))
    }
}

fn to_json(project: &ProjectId, page: Option<&Page>) -> serde_json::Value {
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
