//! `forget`: in two steps, so that the user can say no.

use std::fmt::Write as _;

use claude_mem_projections::MemorySource;
use sha2::{Digest, Sha256};

use super::{
    Server,
    arguments::{Arguments, Parameter, Takes, optional, required},
    tools::{Effect, Tool},
};
use claude_mem_core::{failure::Failure, format};
use claude_mem_memory::{
    forget::{Taken, find, forget, lines},
    store,
};

const PARAMETERS: &[Parameter] = &[
    required("ids", Takes::Ids, "IDs of what to forget: [12, \"S3\", \"P9\"]"),
    optional("confirm", Takes::Text, "What the first call gave, once the user has agreed"),
    optional("reason", Takes::Text, "Why, in the user's words"),
];

pub(super) static TOOL: Tool = Tool {
    name: "forget",
    title: "Forget",
    description: "Take memories away, when the user asks to. The first call forgets nothing: it shows what would \
                  be gone and gives a confirmation. Show that to the user; if they agree, call again with the \
                  same ids and confirm.",
    parameters: PARAMETERS,
    effect: Effect::Removes,
    run,
};

fn run(server: &mut Server<'_>, arguments: &Arguments) -> Result<String, Failure> {
    let mut store = store::open_folded(server.app)?;
    let taken = find(&store, &arguments.ids("ids"))?;
    let count = format::count(taken.named.len() + taken.also.len(), "memory");
    let expected = confirmation(server.secret, &taken);
    match arguments.text("confirm") {
        Some(given) if given == expected => {
            let reason = arguments.text("reason").unwrap_or_default();
            let id = forget(server.app, &mut store, &taken, reason)?;
            Ok(format!(
                "Forgot {count}. The user can take it back with `claude-mem forget --undo {id}`."
            ))
        }
        given => {
            let mut text = match given {
                Some(_) => {
                    "That confirmation is not for these memories as they are now. ".to_owned()
                }
                None => String::new(),
            };
            let _ = writeln!(text, "Nothing is forgotten yet. This would be gone:");
            for line in lines(&taken.named).chain(lines(&taken.also)) {
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

/// Good for exactly these memories, as long as they say the same and this process lives.
fn confirmation(secret: [u8; 16], taken: &Taken) -> String {
    let mut hash = Sha256::new_with_prefix(secret);
    for MemorySource { name, event, text, .. } in taken.named.iter().chain(&taken.also) {
        hash.update(format!("{name} {event} {}\n", text.len()));
        hash.update(text);
    }
    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect()
}
