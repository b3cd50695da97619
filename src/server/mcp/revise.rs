//! `revise`: corrects an observation.

use claude_mem_projections::search::MemoryId;

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional, required},
    tools::{Effect, Tool},
};
use claude_mem_core::failure::Failure;
use claude_mem_memory::{
    revise::{Change, Edit, revise},
    store,
};

const ACTIONS: &[&str] = &["edit", "pin", "unpin", "wrong", "supersede", "restore"];

const PARAMETERS: &[Parameter] = &[
    required("ids", ParameterType::Ids, "IDs of the observations: [12]"),
    required(
        "action",
        ParameterType::Choice(ACTIONS),
        "What to do; restore undoes wrong and supersede",
    ),
    optional("title", ParameterType::Text, "edit: the new title"),
    optional("text", ParameterType::Text, "edit: the new text"),
    optional("type", ParameterType::Text, "edit: the new type, such as decision"),
    optional("because", ParameterType::Text, "wrong: why, in one sentence"),
    optional("by", ParameterType::Ids, "supersede: ID of the observation that replaces it: [14]"),
];

pub(super) static REVISE: Tool = Tool {
    name: "revise",
    title: "Revise a memory",
    description: "Correct an observation when the user says that it is wrong, outdated or \
        important: edit its text, pin it, mark it as wrong, or name the one that supersedes it. \
        What is wrong or superseded is found with a mark, and given to no session.",
    parameters: PARAMETERS,
    effect: Effect::Removes,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let text = |name| arguments.text(name).map(ToOwned::to_owned);
    let change = match arguments.text("action").unwrap_or_default() {
        "edit" => {
            let (title, text, type_) = (text("title"), text("text"), text("type"));
            Change::Edit(Edit { title, text, type_ })
        }
        "pin" => Change::Pin,
        "unpin" => Change::Unpin,
        "wrong" => Change::Wrong(text("because").unwrap_or_default()),
        "supersede" => Change::Supersede(superseding(arguments)?),
        _ => Change::Restore,
    };
    let mut store = store::open_folded(server.app)?;
    let mut done = Vec::new();
    for id in arguments.ids("ids") {
        let revised = revise(server.app, &mut store, id, &change, "mcp")?;
        let redacted = match revised.is_redacted {
            true => " Private text or secrets were removed.",
            false => "",
        };
        done.push(format!("Revised {id} {}.{redacted}", revised.title));
    }
    Ok(done.join("\n"))
}

fn superseding(arguments: &Arguments) -> Result<MemoryId, Failure> {
    arguments.ids("by").first().copied().ok_or_else(|| {
        Failure::usage("`by` is missing").remedy("pass the ID of the observation that replaces it")
    })
}
