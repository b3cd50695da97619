//! `forget`: in two steps, so that the user can refuse.

use std::fmt::Write as _;

use claude_mem_projections::MemorySource;
use sha2::{Digest, Sha256};

use super::{
    Server,
    arguments::{Arguments, Parameter, ParameterType, optional, required},
    tools::{Effect, Tool},
};
use claude_mem_core::{failure::Failure, format};
use claude_mem_memory::{
    forget::{ForgetSelection, find, forget, lines},
    store,
};

const PARAMETERS: &[Parameter] = &[
    required("ids", ParameterType::Ids, "[12, \"S3\", \"P9\"]"),
    optional("confirm", ParameterType::Text, "From the first call, once the user has agreed"),
    optional("reason", ParameterType::Text, "Why, in the user's words"),
];

pub(super) static FORGET: Tool = Tool {
    name: "forget",
    title: "Forget",
    description: "Forget memories when the user asks for it. The first call forgets nothing: it \
        lists what would be forgotten and returns a confirmation. Show that to the user; if they \
        agree, call again with ids and confirm.",
    parameters: PARAMETERS,
    effect: Effect::Removes,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let mut store = store::open_folded(server.app)?;
    let selection = find(&store, &arguments.ids("ids"))?;
    let count = format::count(selection.named.len() + selection.also.len(), "memory");
    let expected = confirmation(server.secret, &selection);
    match arguments.text("confirm") {
        Some(given) if given == expected => {
            let reason = arguments.text("reason").unwrap_or_default();
            let id = forget(server.app, &mut store, &selection, reason)?;
            Ok(format!(
                "Forgot {count}. The user can undo it with `claude-mem forget --undo {id}`."
            ))
        }
        given => {
            let mut text = match given {
                Some(_) => "The confirmation does not match the current memories. ".to_owned(),
                None => String::new(),
            };
            let _ = writeln!(text, "Nothing is forgotten yet. This would be forgotten:");
            for line in lines(&selection.named).chain(lines(&selection.also)) {
                let _ = writeln!(text, "{line}");
            }
            let _ = writeln!(
                text,
                "If the user agrees to forget {count}, call forget with the same ids and \
                 confirm=\"{expected}\"."
            );
            Ok(text)
        }
    }
}

/// Valid for exactly these memories with their current text, until this process ends.
fn confirmation(secret: [u8; 16], selection: &ForgetSelection) -> String {
    let mut hash = Sha256::new_with_prefix(secret);
    for MemorySource { name, event, text, .. } in selection.named.iter().chain(&selection.also) {
        hash.update(format!("{name} {event} {}\n", text.len()));
        hash.update(text);
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
