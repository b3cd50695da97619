//! The figures of the worker: throughput, latency, and resources when idle.

mod append;
mod latency;
mod memory;
mod serving;

use super::Group;

pub(super) const GROUP: Group = Group {
    name: "worker",
    about: "The real worker in a process of its own, in a home of its own, and programs and hooks that talk to \
            it. Its agent is the rules that need no model, or a model that is played by a script.",
    figures: &[
        ("append", append::measure),
        ("latency", latency::measure),
        ("memory", memory::measure),
    ],
};
