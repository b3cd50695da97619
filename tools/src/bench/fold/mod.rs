//! The figures of folding: time and memory of a rebuild.

mod memory;
mod rebuild;
pub(super) mod sample;

use super::{Group, Outcome};

pub(super) const GROUP: Group = Group {
    name: "fold",
    about: "Drawing the tables from the log. The log is made up: turns of a prompt, eight tool uses of about \
            1 KB, a stop, and a reply with two observations and a summary in words of an uneven vocabulary.",
    figures: &[("rebuild", rebuild::measure), ("memory", memory::measure)],
};

/// Work for a child process.
pub(super) fn child(words: &[&str]) -> Outcome<()> {
    match *words {
        ["rebuild", log, database] => memory::rebuild(log.as_ref(), database.as_ref()),
        _ => Err("unknown work for a child".into()),
    }
}
