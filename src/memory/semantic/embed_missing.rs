//! Embeds memories that lack a vector, newest first.

use std::collections::HashSet;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_embed::Role;
use claude_mem_projections::{Store, search::MemoryId};
use claude_mem_vectors::{Digest, MemoryKey, Put, VectorWriter, Window, directory, erase};

use super::{EmbeddingModel, VectorCounts, current_digests, key, open_model, windows};

/// How closely to look for missing vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Memories that have no vector at all: a fraction of a second for 100,000 memories.
    Rows,
    /// Also memories whose texts changed since, by a rebuild or on another machine. Reads all texts.
    Texts,
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Embedded {
    /// Memories that got their vectors.
    pub embedded: usize,
    /// What there is now.
    pub counts: VectorCounts,
    /// Whether another process embeds at the moment.
    pub is_claimed: bool,
}

/// Embeds what is missing, and erases vectors of memories that are no longer visible. `None` without a model.
///
/// Before each memory, `go_on` gets the number of memories done and to do in this run, and the counts; it can wait, or end the run
/// with `false`. A run also ends when the database or the vector file is replaced; the next one does the rest.
pub fn embed_missing(
    app: &App,
    store: &Store,
    depth: Depth,
    mut go_on: impl FnMut(usize, usize, VectorCounts) -> bool,
) -> Result<Option<Embedded>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(None) };
    let path = claude_mem_vectors::file(&app.paths.data, &model.id().0);
    let opened =
        VectorWriter::open(&path, model.id().0, &model.center()).map_err(|error| failed(&error))?;
    let Some(mut writer) = opened else {
        let counts = super::count(app, store)?.unwrap_or_default();
        return Ok(Some(Embedded { counts, is_claimed: true, ..Embedded::default() }));
    };
    let names = store.embeddable_memories()?;
    erase_others(app, &writer, &names)?;
    let missing = missing(model, store, &writer, &names, depth)?;
    let mut done = Embedded {
        counts: VectorCounts { memories: names.len(), missing: missing.len() },
        ..Embedded::default()
    };
    for (at, name) in missing.iter().enumerate() {
        if !go_on(at, missing.len(), done.counts) || store.is_replaced() {
            break;
        }
        match embed(model, store, &mut writer, *name)? {
            Put::Done => done.embedded += 1,
            Put::Outdated => {}
            Put::Replaced => break,
        }
        done.counts.missing -= 1;
    }
    Ok(Some(done))
}

/// Gives a memory its vectors.
fn embed(
    model: &EmbeddingModel,
    store: &Store,
    writer: &mut VectorWriter,
    name: MemoryId,
) -> Result<Put, Failure> {
    let Some(texts) = store.embedding_texts(name)? else { return Ok(Put::Outdated) };
    let known: Vec<Digest> = writer.vectors().digests(key(name)).collect();
    let windows: Vec<Window> = windows(model, &texts)
        .into_iter()
        .map(|(digest, text)| {
            let vector = (!known.contains(&digest)).then(|| model.embed(text, Role::Memory));
            Window { digest, vector }
        })
        .collect();
    // Asked under the lock of the file: it may have been forgotten meanwhile.
    let is_current = || store.embedding_texts(name).is_ok_and(|now| now.as_ref() == Some(&texts));
    writer.put(key(name), &windows, is_current).map_err(|error| failed(&error))
}

fn missing(
    model: &EmbeddingModel,
    store: &Store,
    writer: &VectorWriter,
    names: &[MemoryId],
    depth: Depth,
) -> Result<Vec<MemoryId>, Failure> {
    let vectors = writer.vectors();
    let mut missing = Vec::new();
    for name in names {
        let is_missing = match depth {
            Depth::Rows => !vectors.has(key(*name)),
            Depth::Texts => {
                let current: HashSet<Digest> =
                    current_digests(model, store, *name)?.into_iter().collect();
                current != vectors.digests(key(*name)).collect()
            }
        };
        if is_missing {
            missing.push(*name);
        }
    }
    Ok(missing)
}

/// Erases vectors of memories that are gone or hidden.
fn erase_others(app: &App, writer: &VectorWriter, names: &[MemoryId]) -> Result<(), Failure> {
    let visible: HashSet<MemoryKey> = names.iter().map(|name| key(*name)).collect();
    if writer.vectors().keys().any(|key| !visible.contains(&key)) {
        let dir = directory(&app.paths.data);
        erase(&dir, |_, record| !visible.contains(&record.key()))
            .map_err(|error| failed(&error))?;
    }
    Ok(())
}

fn failed(error: &std::io::Error) -> Failure {
    Failure::new(format!("vectors/ cannot be written: {error}"))
        .meaning("memories without a vector are found by their words")
}
