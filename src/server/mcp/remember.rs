//! `remember`: a memory that the user wants kept.

use super::{
    Server,
    arguments::{Arguments, Parameter, Takes, optional, required},
    tools::{Effect, Tool},
};
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    remember::{Note, remember},
    store,
};

const PARAMETERS: &[Parameter] = &[
    required("text", Takes::Text, "What to remember, in one or a few sentences that stand alone"),
    optional("title", Takes::Text, "A line that names it"),
    optional("type", Takes::Text, "Such as decision, discovery or bugfix (default note)"),
    optional("concepts", Takes::List, "Words to find it by"),
    optional("files", Takes::List, "Files that it is about"),
    optional("project", Takes::Text, "Name of another project (default: this one)"),
];

pub(super) static TOOL: Tool = Tool {
    name: "remember",
    title: "Remember",
    description: "Keep something for later sessions, when the user asks to. It is shown first whenever a session \
                  begins in this project. Sessions are recorded anyway: do not use it for a diary of the work.",
    parameters: PARAMETERS,
    effect: Effect::Adds,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let text = |name| arguments.text(name).unwrap_or_default().to_owned();
    let note = Note {
        title: text("title"),
        text: text("text"),
        type_: text("type"),
        concepts: arguments.list("concepts"),
        files: arguments.list("files"),
        project: arguments.text("project").map(Into::into),
        via: "mcp",
    };
    let mut store = store::open_folded(server.app)?;
    let remembered = remember(server.app, &mut store, &note)?;
    let name = remembered.name.map(|name| format!(" as {name}")).unwrap_or_default();
    let redacted = match remembered.is_redacted {
        true => ". What is private or looks like a secret was left out",
        false => "",
    };
    Ok(format!("Remembered{name} in {}{redacted}.", remembered.project))
}
