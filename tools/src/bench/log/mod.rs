//! The figures of the log.

mod append;
mod compression;
mod memory;
mod peers;
mod processes;
mod read;
mod sample;
mod space;
mod sqlite;

use super::{Group, Outcome};

pub(super) const GROUP: Group = Group {
    name: "log",
    about: "The goals of the log. Unless stated otherwise, payloads are 1 KB (1024 bytes) of \
        noise and are not compressed, and files are in the page cache.",
    figures: &[
        ("append", append::measure),
        ("read", read::measure),
        ("space", space::measure),
        ("memory", memory::measure),
        ("compression", compression::measure),
        ("processes", processes::measure),
    ],
};

/// Work for a child process.
pub(super) fn child(words: &[&str]) -> Outcome<()> {
    match *words {
        ["append", dir, records, sync] => processes::append(dir.as_ref(), records.parse()?, sync),
        ["compress", level, file] => {
            let level = level.trim_start_matches('=').parse()?;
            compression::compress_once(level, file.as_ref())
        }
        ["read", dir] => memory::read(dir.as_ref()),
        _ => Err("unknown work for a child".into()),
    }
}
