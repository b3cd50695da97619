//! Embeds a sample of memories again and compares the vectors, because a checksum cannot show that
//! a vector belongs to its text.

use std::io;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_embed::Role;
use claude_mem_projections::{
    Store,
    search::{Kind, MemoryId},
};

use super::{EmbeddingModel, open_model, open_vectors, unreadable, windows};

/// Memories that are embedded again: about a second of one core.
const SAMPLE: usize = 8;

/// The result of the comparison.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckedVectors {
    /// Number of memories that were embedded again.
    pub checked: usize,
    /// Memories with a vector that does not match its text.
    pub wrong: Vec<MemoryId>,
}

/// Checks the vectors of a sample of memories. `None` without a model or vectors. Also `None` with
/// an endpoint: it may not return the same bits twice.
pub fn check_vectors(app: &App, store: &Store) -> Result<Option<CheckedVectors>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(None) };
    if matches!(model, EmbeddingModel::Endpoint(_)) {
        return Ok(None);
    }
    let Some(vectors) = open_vectors(app, model)?.filter(|found| !found.is_empty()) else {
        return Ok(None);
    };
    let failed = |error: io::Error| unreadable(app, model, &error);
    let mut done = CheckedVectors::default();
    for key in vectors.keys().step_by(vectors.len().div_ceil(SAMPLE)) {
        let name = Kind::of_number(key.kind).map(|kind| MemoryId { kind, id: key.row });
        let Some(name) = name else { continue };
        // A memory that was hidden or changed meanwhile has vectors of other texts.
        let texts = store.embedding_texts(name)?.unwrap_or_default();
        let known = vectors.digests(key).map_err(failed)?;
        let (digests, texts): (Vec<_>, Vec<_>) =
            windows(model, &texts).into_iter().filter(|(digest, _)| known.contains(digest)).unzip();
        let found = model.embed_all(&texts, Role::Memory)?;
        done.checked += usize::from(!found.is_empty());
        for (digest, vector) in digests.iter().zip(&found) {
            if !vectors.is_vector_of(key, digest, vector).map_err(failed)? {
                done.wrong.push(name);
                break;
            }
        }
    }
    Ok(Some(done))
}
