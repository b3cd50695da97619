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
    about: "What a hook costs a session. Every turn starts a process, gives it its input through a pipe, reads \
            its answer and waits for its end, as Claude Code does. Beside it stands a Rust program that does \
            nothing, linked statically, started and fed in the same way.",
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
