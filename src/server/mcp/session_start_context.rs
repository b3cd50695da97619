//! `session_start_context`: what a session is told when it begins.

use super::{
    Server,
    arguments::{Arguments, Parameter, Takes, optional},
    tools::{Effect, Tool},
};
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    context::{Request, compose},
    resolve, store,
};

const PARAMETERS: &[Parameter] = &[
    optional("project", Takes::Text, "Name of a project (default: this one)"),
    optional("budget", Takes::Number(100, 100_000), "Tokens it may cost (default: as configured)"),
];

pub(super) static TOOL: Tool = Tool {
    name: "session_start_context",
    title: "What a session is told when it begins",
    description: "The overview that a session gets when it begins: notes written by hand, recent sessions, the \
                  most useful observations. For another project, or when the one from the beginning is gone.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let project = resolve::project(server.app, &store, arguments.text("project"))?;
    let now = server.app.clock.now();
    let budget = arguments.number("budget");
    let request = Request { project: &project, now, resumed: None, budget };
    let page = compose(&store, &server.app.settings, &request)?;
    Ok(page.map_or_else(
        || format!("Nothing is remembered of {} yet", project.label),
        |page| page.text,
    ))
}
