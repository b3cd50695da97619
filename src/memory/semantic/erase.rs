//! Erases vectors of forgotten and changed memories. Call it after the row of a memory is hidden.

use std::collections::HashSet;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId},
};
use claude_mem_vectors::{Digest, MemoryKey, directory, erase};

use super::{current_digests, key, open_model};

/// Erases the vectors of all memories that are no longer visible.
pub fn erase_hidden(app: &App, store: &Store) -> Result<u64, Failure> {
    let dir = directory(&app.paths.data);
    if !dir.is_dir() {
        return Ok(0);
    }
    let visible: HashSet<MemoryKey> = store.embeddable_memories()?.into_iter().map(key).collect();
    erase(&dir, |_, record| !visible.contains(&record.key())).map_err(|error| failed(app, &error))
}

/// Erases the vectors of one memory, whose text changed.
pub(crate) fn erase_memory(app: &App, name: MemoryId) -> Result<u64, Failure> {
    let (dir, changed) = (directory(&app.paths.data), key(name));
    erase(&dir, |_, record| record.key() == changed).map_err(|error| failed(app, &error))
}

/// Erases all vectors that do not match the current texts of a memory. Vectors of other models are
/// erased, too: only their model could verify them.
pub fn erase_changed(app: &App, store: &Store) -> Result<u64, Failure> {
    let dir = directory(&app.paths.data);
    if !dir.is_dir() {
        return Ok(0);
    }
    // Without a usable model, all vectors are erased.
    let model = open_model(app).unwrap_or_default();
    let mut last: Option<(MemoryKey, Vec<Digest>)> = None;
    let mut problem = None;
    let mut digests_of = |wanted: MemoryKey| -> Vec<Digest> {
        if let Some((known, digests)) = &last
            && *known == wanted
        {
            return digests.clone();
        }
        let name = Kind::of_number(wanted.kind).map(|kind| MemoryId { kind, id: wanted.row });
        let found = model.zip(name).map(|(model, name)| current_digests(model, store, name));
        let digests = match found.transpose() {
            Ok(digests) => digests.unwrap_or_default(),
            Err(error) => {
                problem = Some(error);
                Vec::new()
            }
        };
        last = Some((wanted, digests.clone()));
        digests
    };
    let erased = erase(&dir, |header, record| {
        model.is_none_or(|model| header.model != model.id())
            || !digests_of(record.key()).contains(&record.digest())
    });
    match problem {
        Some(error) => Err(error.into()),
        None => erased.map_err(|error| failed(app, &error)),
    }
}

fn failed(app: &App, error: &std::io::Error) -> Failure {
    let dir = directory(&app.paths.data);
    Failure::new(format!("vectors cannot be erased: {error}"))
        .meaning("the texts are deleted, but some of their vectors may remain")
        .remedy(format!("delete them all with `rm -r '{}'`; they are made again", dir.display()))
}
