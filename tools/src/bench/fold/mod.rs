//! The figures of folding: time and memory of a rebuild.

mod memory;
mod rebuild;
pub(super) mod sample;

use super::{BenchResult, Group};

pub(super) const FOLD: Group = Group {
    name: "fold",
    about: "Rebuilding the database from the log. The log is generated: turns of a prompt, eight \
            tool uses of about 1 KB, a stop, and a reply with two observations and a summary. \
            Words are distributed as in a natural language.",
    figures: &[("rebuild", rebuild::measure_rebuild), ("memory", memory::measure_memory)],
};

/// Work for a child process.
pub(super) fn child(words: &[&str]) -> BenchResult<()> {
    match *words {
        ["rebuild", log, database] => memory::rebuild(log.as_ref(), database.as_ref()),
        _ => Err("unknown work for a child".into()),
    }
}
