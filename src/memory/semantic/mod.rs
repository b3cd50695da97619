//! Vectors of memories: the model that computes them, missing ones, and ones to erase.
//!
//! Vectors are a cache ([`claude_mem_vectors`]). If `vectors/` is deleted, they are computed again.

mod check;
mod embed_missing;
mod endpoint;
mod erase;
mod model;
mod nearness;
mod related;

pub use check::{CheckedVectors, check_vectors};
pub use embed_missing::{Depth, Embedded, embed_missing};
pub(crate) use erase::erase_memory;
pub use erase::{erase_changed, erase_hidden};
pub use model::{EmbeddingModel, endpoint_failure, open_model};
pub use nearness::Ranking;
pub(crate) use nearness::{QUERY_WORDS_MAX, with_meaning};
pub use related::{RelatedMemory, related};

use std::{collections::HashSet, io, path::PathBuf};

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_projections::{Store, search::MemoryId};
use claude_mem_vectors::{Digest, MemoryKey, Vectors, digest, directory};
use serde::Serialize;

/// Number of observations, summaries and prompts with and without a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct VectorCounts {
    /// Those that should have one.
    pub total: usize,
    /// Those without one.
    pub missing: usize,
}

/// Where vectors are kept.
pub fn vectors_directory(app: &App) -> PathBuf {
    directory(&app.paths.data)
}

/// The key of a memory in vector files.
pub fn key(name: MemoryId) -> MemoryKey {
    MemoryKey { kind: name.kind.number(), row: name.id }
}

/// The texts that are embedded for a memory, with their digests: the windows of all its texts.
pub fn windows<'t>(model: &EmbeddingModel, texts: &'t [String]) -> Vec<(Digest, &'t str)> {
    let id = model.id();
    let mut seen = HashSet::new();
    let windows = texts.iter().flat_map(|text| claude_mem_embed::windows(text));
    let digests = windows.map(|window| (digest(&id, window), window));
    digests.filter(|(digest, _)| seen.insert(*digest)).collect()
}

/// The digests of a memory's current texts. A vector with another digest is outdated.
pub(crate) fn current_digests(
    model: &EmbeddingModel,
    store: &Store,
    name: MemoryId,
) -> Result<Vec<Digest>, claude_mem_projections::Error> {
    let texts = store.embedding_texts(name)?.unwrap_or_default();
    Ok(windows(model, &texts).into_iter().map(|(digest, _)| digest).collect())
}

/// Opens the vector file of a model for searching. `None` if there is none yet.
pub(crate) fn open_vectors(app: &App, model: &EmbeddingModel) -> Result<Option<Vectors>, Failure> {
    let path = claude_mem_vectors::file(&app.paths.data, &model.id());
    Vectors::open(&path, model.id(), &model.center())
        .map_err(|error| unreadable(app, model, &error))
}

/// The vector file cannot be read, for example because another program truncates it.
fn unreadable(app: &App, model: &EmbeddingModel, error: &io::Error) -> Failure {
    let path = claude_mem_vectors::file(&app.paths.data, &model.id());
    Failure::new(format!("{} cannot be read: {error}", path.display()))
        .meaning("search uses words only")
}

/// Counts vectors. `None` without a model.
pub fn count(app: &App, store: &Store) -> Result<Option<VectorCounts>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(None) };
    let names = store.embeddable_memories()?;
    let vectors = open_vectors(app, model)?;
    let has = |name: &&MemoryId| vectors.as_ref().is_some_and(|vectors| vectors.has(key(**name)));
    let embedded = names.iter().filter(has).count();
    Ok(Some(VectorCounts { total: names.len(), missing: names.len() - embedded }))
}
