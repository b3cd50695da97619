//! `session_start_context`: the context of a new session.

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional},
    tools::{Effect, Tool},
};
use claude_mem_capture::ContextMax;
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    context::{ContextMoment, Request, compose},
    resolve, store,
};

const PARAMETERS: &[Parameter] = &[
    optional("project", ParameterType::Text, "Name (default: this one)"),
    optional(
        "budget",
        ParameterType::Number(100, 100_000),
        "Maximum tokens (default: the setting)",
    ),
];

pub(super) static SESSION_START_CONTEXT: Tool = Tool {
    name: "session_start_context",
    title: "Context of a new session",
    description: "The overview a new session receives: notes, recent sessions, useful \
        observations. For another project, or when the original is no longer in context.",
    parameters: PARAMETERS,
    effect: Effect::Reads,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let store = store::read_folded(server.app)?;
    let project = resolve::named_project(server.app, &store, arguments.text("project"))?;
    let now = server.app.clock.now();
    let budget = arguments.number("budget");
    let request = Request {
        project: &project,
        now,
        moment: ContextMoment::Start,
        client: None,
        reads_auto_memory: false,
        budget,
        size_max: ContextMax::Unlimited,
    };
    let page = compose(&store, &server.app.settings, &request)?;
    Ok(page.map_or_else(
        || format!("There are no memories of {} yet", project.label),
        |page| page.text,
    ))
}
