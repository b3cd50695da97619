//! The figures of the hooks.

mod added;
mod context;
mod memory;
mod private;
mod save;
mod world;

pub(super) use added::ADDED;

use super::Group;

pub(super) const HOOKS: Group = Group {
    name: "hooks",
    about: "The cost of a hook for a session. Each turn starts a process, pipes the input to it, \
            reads its answer and waits for its exit, as Claude Code does. The baseline is a \
            static Rust program that does nothing, started and fed in the same way.",
    figures: &[
        ("save", save::measure_save),
        ("memory", memory::measure_memory),
        ("private", private::measure_private),
        ("context", context::measure_context),
    ],
};
