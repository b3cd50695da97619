//! The figures of the worker: latency, and resources when idle.

mod latency;
mod memory;
mod serving;

use super::Group;

pub(super) const WORKER: Group = Group {
    name: "worker",
    about: "The real worker in its own process and home, with programs and hooks that connect to \
            it. The provider is the built-in rules or a scripted model.",
    figures: &[("latency", latency::measure_latency), ("memory", memory::measure_memory)],
};
