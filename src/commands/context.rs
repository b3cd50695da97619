//! `claude-mem context`: the context that a new session receives.

use std::cell::RefCell;

use clap::Args;
use serde_json::json;

use claude_mem_capture::{clients::claude_code::CONTEXT_MAX, project::ProjectId};
use claude_mem_core::{app::App, failure::Failure, time_arg::When};
use claude_mem_memory::{
    context::{
        AddedContext, ContextMoment, FileOfProject, Page, Recipient, Request, compose, for_failure,
        for_file, for_prompt, rank_by_meaning,
    },
    resolve, store,
};

/// Show the context that a session receives at its start
///
/// Claude Code runs this without arguments and with JSON on stdin: then it records the session and
/// responds with its context. On a terminal, or with any option, it prints the context and records
/// nothing.
#[derive(Debug, Args)]
pub(crate) struct Context {
    /// Project name, key or folder [default: the project of this folder]
    #[arg(long, value_name = "PROJECT")]
    project: Option<String>,
    /// Show the context as of this time, such as `2026-03-01` or `3d`
    #[arg(long, value_name = "WHEN")]
    as_of: Option<When>,
    /// Only memories of sessions of this client, such as `codex`
    #[arg(long, value_name = "NAME")]
    client: Option<String>,
    /// Maximum number of tokens [default: `CLAUDE_MEM_CONTEXT_TOKENS_MAX`]
    #[arg(long, value_name = "TOKENS")]
    budget: Option<usize>,
    /// Also show the memories that are added to this prompt, if it is the first one of the session
    #[arg(long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Also show the memories that are added when this file is first read or written
    #[arg(long, value_name = "PATH")]
    file: Option<String>,
    /// Also show the memories that are added when this command fails
    #[arg(long, value_name = "COMMAND")]
    failure: Option<String>,
    /// What the command prints when it fails
    #[arg(
        long,
        value_name = "TEXT",
        requires = "failure",
        default_value = "",
        hide_default_value = true
    )]
    error: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Context {
    pub(crate) fn run(self, app: &mut App) -> Result<(), Failure> {
        let store = store::read_folded(app)?;
        let project = resolve::named_project(app, &store, self.project.as_deref())?;
        let now = app.clock.now();
        let now = self.as_of.as_ref().map_or(now, |when| when.end(now));
        let request = Request {
            project: &project,
            now,
            moment: ContextMoment::Start,
            client: self.client.as_deref(),
            reads_auto_memory: true,
            budget: self.budget,
            size_max: CONTEXT_MAX,
        };
        let page = compose(&store, &app.settings, &request)?;
        let root = project.root.to_string_lossy();
        let given = RefCell::new(page.as_ref().map_or_else(Vec::new, |page| page.given.clone()));
        let recipient = Recipient {
            project: &project.key,
            root: &root,
            session: "",
            now,
            size_max: CONTEXT_MAX,
            given: &|| {
                let mut known = store.observation_refs(&given.borrow())?;
                let notes = store.auto_memory_notes()?;
                known.extend(notes.into_iter().map(|note| note.observation));
                Ok(known)
            },
        };
        // In the order of a session: what comes first is not repeated.
        let keep = |added: Option<AddedContext>| {
            given.borrow_mut().extend(added.iter().flat_map(|added| &added.observations));
            added
        };
        let settings = &app.settings;
        let mut added = [("prompt", None), ("file", None), ("failure", None)];
        if let Some(prompt) = &self.prompt {
            added[0].1 = keep(for_prompt(&store, settings, &recipient, prompt, |recall| {
                rank_by_meaning(app, &store, recall)
            })?);
        }
        if let Some(path) = &self.file {
            let cwd = std::env::current_dir().unwrap_or_default();
            let file = FileOfProject { path, cwd: &cwd.to_string_lossy(), root: &root };
            added[1].1 = keep(for_file(&store, settings, &recipient, &file)?);
        }
        if let Some(command) = &self.failure {
            let failure = (command.as_str(), self.error.as_str());
            added[2].1 = keep(for_failure(&store, settings, &recipient, failure)?);
        }
        if self.json {
            return app.output.json(&to_json(&project, page.as_ref(), &added));
        }
        let added = added.into_iter().filter_map(|(_, added)| added.map(|added| added.text));
        let texts: Vec<String> = page.map(|page| page.text).into_iter().chain(added).collect();
        if texts.is_empty() {
            app.output.say(format_args!("no memories of {} yet", project.label));
            return Ok(());
        }
        app.output.line(app.output.page(&texts.join("\n\n")))
    }
}

fn to_json(
    project: &ProjectId,
    page: Option<&Page>,
    added: &[(&str, Option<AddedContext>)],
) -> serde_json::Value {
    let mut object = json!({
        "project": project.label,
        "key": project.key,
        "text": page.map_or("", |page| &page.text),
        "tokens": page.map_or(0, |page| page.tokens),
        "tokens_max": page.map_or(0, |page| page.tokens_max),
        "observations": page.map_or(0, |page| page.observations),
        "observations_total": page.map_or(0, |page| page.observations_total),
    });
    for (moment, added) in added {
        object[format!("with_{moment}")] = json!(added.as_ref().map(|added| json!({
            "text": added.text,
            "tokens": added.tokens,
            "observations": added.observations.iter().map(i64::to_string).collect::<Vec<_>>(),
        })));
    }
    object
}
