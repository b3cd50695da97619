//! Finds memories about the same subject as another one.

use std::io;

use claude_mem_core::{app::App, failure::Failure};
use claude_mem_projections::{
    Error, Store,
    details::MemoryBody,
    search::{Kind, MemoryId},
};
use claude_mem_vectors::{MemoryKey, Vectors};
use serde::Serialize;
use utoipa::ToSchema;

use super::{EmbeddingModel, key, nearness::opened, open_model, unreadable, windows};

const RELATED_MAX: usize = 5;
/// Number of nearest memories by cosine. The most similar ones are related.
const CANDIDATES: usize = 40;
/// Of pairs of notes about different subjects, one in a thousand has more than 0.34. Notes about
/// the same subject have 0.38 to 0.8.
const SIMILARITY_MIN: f32 = 0.4;

/// A memory that is related to another one.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RelatedMemory {
    /// `12`, `S3`.
    pub id: String,
    /// `observation`, `summary`.
    pub kind: &'static str,
    /// The title after its marks, or the summarized request.
    pub title: String,
    /// Similarity: 1 for the same text, about 0 for unrelated texts.
    pub similarity: f32,
}

/// The observations and summaries of a memory's project that are most similar to it, in descending
/// order.
///
/// None without a model, or until the memory has a vector. The first windows are compared: title
/// and narrative, or request and completed work of a summary.
pub fn related(
    app: &App,
    store: &Store,
    name: MemoryId,
    project: &str,
) -> Result<Vec<RelatedMemory>, Failure> {
    let Some(model) = open_model(app)? else { return Ok(Vec::new()) };
    let Some(vectors) = opened(app, model)? else { return Ok(Vec::new()) };
    let Some(own) = first_vector(model, &vectors, store, name)? else { return Ok(Vec::new()) };
    let projects = store.projects_named(project)?;
    let is_candidate = |key: MemoryKey| {
        memory(key).is_some_and(|other| {
            other != name
                && other.kind != Kind::Prompt
                && store.is_memory_of(other, &projects).unwrap_or(false)
        })
    };
    let failed = |error: io::Error| unreadable(app, model, &error);
    let near = vectors.query(&own).map_err(failed)?.best_of(CANDIDATES, is_candidate);
    let center = model.ordinary(&vectors).map_err(failed)?;
    let mut similar = Vec::new();
    for other in near.into_iter().filter_map(|(key, _)| memory(key)) {
        if let Some(vector) = first_vector(model, &vectors, store, other)? {
            similar.push((similarity(&own, &vector, &center), other));
        }
    }
    similar.retain(|(similarity, _)| *similarity >= SIMILARITY_MIN);
    similar.sort_by(|(one, name), (other, other_name)| {
        other.total_cmp(one).then(name.cmp(other_name))
    });
    similar.truncate(RELATED_MAX);
    let mut related = Vec::new();
    for (similarity, other) in similar {
        for row in store.list_rows(&[other])? {
            related.push(RelatedMemory {
                id: other.to_string(),
                kind: other.kind.name(),
                title: store.marks(other)?.before(&title(row.body)),
                // Rounded to two digits, so that the output does not depend on how the model is
                // packed.
                similarity: (similarity * 100.0).round() / 100.0,
            });
        }
    }
    Ok(related)
}

fn memory(key: MemoryKey) -> Option<MemoryId> {
    Kind::of_number(key.kind).map(|kind| MemoryId { kind, id: key.row })
}

/// The vector of the first window of a memory's current text. `None` while the file is being
/// truncated.
pub(super) fn first_vector(
    model: &EmbeddingModel,
    vectors: &Vectors,
    store: &Store,
    name: MemoryId,
) -> Result<Option<Vec<f32>>, Error> {
    let Some(texts) = store.embedding_texts(name)? else { return Ok(None) };
    let first = windows(model, &texts).first().map(|(digest, _)| *digest);
    Ok(first.and_then(|digest| vectors.vector(key(name), &digest).ok().flatten()))
}

/// The cosine of two vectors relative to the center.
///
/// All vectors of the model have about the same direction: relative to the origin, notes about
/// different subjects have a cosine of 0.77, and those about the same subject 0.8 to 0.9.
pub(super) fn similarity(one: &[f32], other: &[f32], center: &[f32]) -> f32 {
    let (mut product, mut squares) = (0.0, [0.0, 0.0]);
    for ((one, other), center) in one.iter().zip(other).zip(center) {
        let (one, other) = (one - center, other - center);
        product += one * other;
        squares[0] += one * one;
        squares[1] += other * other;
    }
    let lengths: f32 = squares.map(f32::sqrt).iter().product();
    if lengths > 0.0 { product / lengths } else { 0.0 }
}

fn title(body: MemoryBody) -> String {
    let text = match body {
        MemoryBody::Observation(body) => body.title.or(body.narrative),
        MemoryBody::Summary(body) => body.request.or(body.completed),
        MemoryBody::Prompt { text } => text,
    };
    text.unwrap_or_default().lines().next().unwrap_or_default().into()
}
