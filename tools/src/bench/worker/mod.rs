//! The figures of the worker: throughput, latency, and resources when idle.

mod append;
mod latency;
mod memory;
mod serving;

use super::Group;

pub(super) const GROUP: Group = Group {
    name: "worker",
    about: "The real worker in its own process and home, with programs and hooks that connect to \
            it. The provider is the built-in rules or a scripted model.",
    figures: &[
        ("append", append::measure),
        ("latency", latency::measure),
        ("memory", memory::measure),
    ],
};
