//! The figures of the log.

mod append;
mod memory;
mod read;
mod sample;
mod sqlite;

use super::{BenchResult, Group};

pub(super) const LOG: Group = Group {
    name: "log",
    about: "The goals of the log. Unless stated otherwise, payloads are 1 KB (1024 bytes) of \
        noise and are not compressed, and files are in the page cache.",
    figures: &[
        ("append", append::measure_append),
        ("read", read::measure_read),
        ("memory", memory::measure_memory),
    ],
};

/// Work for a child process.
pub(super) fn child(words: &[&str]) -> BenchResult<()> {
    match *words {
        ["read", dir] => memory::read(dir.as_ref()),
        _ => Err("unknown work for a child".into()),
    }
}
