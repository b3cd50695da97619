//! `remember`: a memory that the user wants kept.

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional, required},
    tools::{Effect, Tool},
};
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    remember::{Note, note_scope, remember},
    store,
};

const PARAMETERS: &[Parameter] = &[
    required("text", ParameterType::Text, "A few sentences that stand alone"),
    optional("title", ParameterType::Text, "Title"),
    optional("type", ParameterType::Text, "decision, discovery, bugfix, ... (default note)"),
    optional("concepts", ParameterType::List, "To find it by"),
    optional("files", ParameterType::List, "Related files"),
    optional("project", ParameterType::Text, "Default: this one"),
    optional(
        "scope",
        ParameterType::Choice(&["project", "global"]),
        "global: for all projects; only if the user asks for that",
    ),
    optional("tree", ParameterType::Text, "For all projects in this folder"),
];

pub(super) static REMEMBER: Tool = Tool {
    name: "remember",
    title: "Remember",
    description: "Save a memory when the user asks for it: new sessions in this project see it \
        first. Sessions are recorded anyway: do not log your work.",
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
        scope: note_scope(arguments.text("scope") == Some("global"), arguments.text("tree"))?,
    };
    let mut store = store::open_folded(server.app)?;
    let remembered = remember(server.app, &mut store, &note)?;
    let name = remembered.name.map(|name| format!(" as {name}")).unwrap_or_default();
    let redacted = match remembered.is_redacted {
        true => ". Private text or secrets were removed",
        false => "",
    };
    Ok(format!("Remembered{name} in {}{redacted}.", remembered.place))
}
