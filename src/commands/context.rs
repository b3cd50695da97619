//! `claude-mem context`: the context that a new session receives.

use clap::Args;
use serde_json::json;

use claude_mem_capture::project::ProjectId;
use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_memory::{
    context::{Moment, Page, PromptContext, PromptRequest, Request, compose, for_prompt},
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
    /// Also show the memories that are added to this prompt, if it is the first one of the session
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
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
        let request =
            Request { project: &project, now, moment: Moment::Start, budget: self.budget };
        let page = compose(&store, &app.settings, &request)?;
        let given = store.observation_refs(page.as_ref().map_or(&[], |page| &page.given))?;
        let with_prompt = match &self.prompt {
            None => None,
            Some(prompt) => {
                let key = &project.key;
                let request =
                    PromptRequest { project: key, prompt, now, session: "", given: &given };
                for_prompt(&store, &app.settings, &request)?
            }
        };
        if self.json {
            return app.output.json(&to_json(&project, page.as_ref(), with_prompt.as_ref()));
        }
        if page.is_none() && with_prompt.is_none() {
            app.output.say(format_args!("no memories of {} yet", project.label));
            return Ok(());
        }
        let texts = [page.map(|page| page.text), with_prompt.map(|context| context.text)];
        let texts: Vec<String> = texts.into_iter().flatten().collect();
        app.output.line(app.output.page(&texts.join("\n\n")))
    }
}

fn to_json(
    project: &ProjectId,
    page: Option<&Page>,
    with_prompt: Option<&PromptContext>,
) -> serde_json::Value {
    json!({
        "project": project.label,
        "key": project.key,
        "text": page.map_or("", |page| &page.text),
        "tokens": page.map_or(0, |page| page.tokens),
        "tokens_max": page.map_or(0, |page| page.tokens_max),
        "observations": page.map_or(0, |page| page.observations),
        "observations_total": page.map_or(0, |page| page.observations_total),
        "with_prompt": with_prompt.map(|context| json!({
            "text": context.text,
            "tokens": context.tokens,
            "observations": context.observations.iter().map(i64::to_string).collect::<Vec<_>>(),
        })),
    })
}
