//! `claude-mem statusline`: one line about memory, for the status line of a client.

use std::{
    borrow::Cow,
    env,
    io::{self, IsTerminal, Write as _},
    panic,
    path::Path,
    process,
};

use clap::Args;
use serde::Deserialize;

use claude_mem_capture::{
    project::{ProjectId, identify},
    read_input,
};
use claude_mem_core::{
    app::App,
    environment::Environment,
    paths::{Paths, data_dir},
    safe_text::clean,
};
use claude_mem_distill::{setup, status};
use claude_mem_memory::status_line::{StatusLineRequest, status_line};
use claude_mem_projections::Store;

pub(crate) const NAME: &str = claude_mem_install::STATUS_LINE;

/// Print one line about memory, for Claude Code's status line
///
/// Shows the memories of the project, how many of them this session was given, pending events, and
/// a problem if there is one. Reads JSON on stdin as Claude Code sends it; without it, the current
/// directory counts. Changes nothing. If anything is wrong, the line is empty. Switch it on with
/// `claude-mem install --statusline`.
#[derive(Debug, Args)]
pub(crate) struct Statusline {}

/// The fields of Claude Code's input that are used here.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Input<'a> {
    #[serde(borrow)]
    session_id: Cow<'a, str>,
    #[serde(borrow)]
    cwd: Cow<'a, str>,
    #[serde(borrow)]
    workspace: Workspace<'a>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Workspace<'a> {
    #[serde(borrow)]
    project_dir: Cow<'a, str>,
}

/// Prints the line. In any case, the exit code is 0 and stderr stays empty.
pub(crate) fn run() -> u8 {
    panic::set_hook(Box::new(|_| {
        print("");
        process::exit(0);
    }));
    print(&clean(&line().unwrap_or_default()));
    0
}

fn print(line: &str) {
    // If stdout is closed, the error cannot be reported.
    let _ = io::stdout().write_all(format!("{line}\n").as_bytes());
}

fn line() -> Option<String> {
    let environment = Environment::of_process();
    let paths = Paths::find(&environment).ok()?;
    data_dir::check(&paths).ok()?;
    let read = (!io::stdin().is_terminal()).then(read_input);
    let bytes = read.as_ref().map_or(&[][..], |read| read.bytes());
    let input = match bytes.trim_ascii() {
        [] => Input::default(),
        json => serde_json::from_slice(json).ok()?,
    };
    let here = env::current_dir().unwrap_or_default();
    let cwd = if input.cwd.is_empty() { here.to_string_lossy() } else { input.cwd };
    let project = match input.workspace.project_dir.as_ref() {
        "" => identify(&cwd, &environment),
        dir => ProjectId::of(Path::new(dir)),
    };
    let app = App::new(environment, paths);
    let memory = app.paths.memory();
    // Opening a database that does not exist would create its lock file.
    let store = match memory.exists() {
        true => Some(Store::open_snapshot(&memory).ok()??),
        false => None,
    };
    let request = StatusLineRequest {
        session: &input.session_id,
        project: &project,
        cwd: Path::new(cwd.as_ref()),
    };
    let mut line = status_line(&app, store.as_ref(), &request).ok()?;
    if let (None, Some(store)) = (&line.problem, &store) {
        line.problem = status::short_notice(store, &setup(&app)).ok()?;
    }
    // The process exits now, which is faster than closing the database first.
    std::mem::forget(store);
    Some(line.to_string())
}
