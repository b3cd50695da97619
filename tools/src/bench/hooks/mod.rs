//! The figures of the hooks.

mod added;
mod clients;
mod context;
mod memory;
mod parallel;
mod private;
mod save;
mod world;

use super::{Group, Outcome};

pub(super) const ADDED: Group = added::GROUP;

pub(super) const GROUP: Group = Group {
    name: "hooks",
    about: "The cost of a hook for a session. Each turn starts a process, pipes the input to it, \
            reads its answer and waits for its exit, as Claude Code does. The baseline is a \
            static Rust program that does nothing, started and fed in the same way.",
    figures: &[
        ("save", save::measure),
        ("parallel", parallel::measure),
        ("memory", memory::measure),
        ("private", private::measure),
        ("context", context::measure),
        ("clients", clients::measure),
    ],
};

pub(super) fn child(words: &[&str]) -> Outcome<()> {
    match *words {
        [home] => parallel::session(home.as_ref()),
        _ => Err("unknown work for a session".into()),
    }
}
