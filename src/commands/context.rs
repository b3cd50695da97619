//! `claude-mem context`: what a session in this project would be told.

use clap::Args;
use serde_json::json;

use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_memory::{
    context::{Page, Request, compose},
    resolve, store,
};

/// Show what Claude is told when a session begins; also the hook of `SessionStart`
///
/// Claude Code runs this without arguments and with its own JSON on stdin: then the session is recorded and
/// the memory that fits it is the answer. Typed by hand, or with any of the flags, it shows that memory and
/// records nothing.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// Of another project: its name or key, or a folder [default: this folder's]
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
        let store = store::read_folded(app)?;
        let project = resolve::project(app, &store, self.project.as_deref())?;
        let now = app.clock.now();
        let now = self.as_of.as_ref().map_or(now, |when| when.end(now));
        let request = Request { project: &project, now, resumed: None, budget: self.budget };
        let page = compose(&store, &app.settings, &request)?;
        if self.json {
            return app.output.json(&object(&project, page.as_ref()));
        }
        let Some(page) = page else {
            app.output.say(format_args!("nothing is remembered of {} yet", project.label));
            return Ok(());
        };
        app.output.line(app.output.page(&page.text))
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
