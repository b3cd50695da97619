//! Ranking by meaning: finds memories whose vectors are near that of the query, and combines the
//! scores of meaning and words.
//!
//! This crate knows neither vectors nor the model; [`Meaning`] is the interface. The score is
//! `cosine − usual + weight · coverage · words / best words`. If no memory contains the rarest
//! words of the query, words have less weight. The usual cosine is the median in the searched
//! projects: all memories of a project are somewhat similar.

use super::{
    Kind, MemoryId, Query, Score, Search,
    query::{Clause, without_operators},
    scope::Scope,
    score::Scored,
};
use crate::error::Result;
use std::collections::HashSet;

/// Number of memories that are found by meaning. In measurements, no later one was among the first
/// ten.
const NEAR_ROWS: usize = 100;
/// Number of the nearest memories that are filtered. If too few pass, all memories that pass the
/// filters are compared.
const TRIED_ROWS: usize = 1000;
/// A memory without a word of the query must be nearer than usual by this much.
const NEARER_THAN_USUAL: f64 = 0.05;
/// Number of the newest memories that determine the usual cosine.
const SAMPLED_ROWS: i64 = 200;
/// A smaller sample is filled up with unrelated texts.
const SAMPLE_MIN: usize = 20;
/// The weight of words relative to the model's own measure.
const WORDS_TRUST: f64 = 1.25;
/// Number of the best memories by words that determine how well the words are covered.
const COVERING_ROWS: usize = 10;

/// The nearness of memories to a query.
pub trait Meaning {
    /// The nearest of the memories that are accepted, nearest first. They may have changed since
    /// their vectors were made.
    fn nearest(
        &self,
        count: usize,
        accept: &mut dyn FnMut(MemoryId) -> bool,
    ) -> Vec<(MemoryId, f64)>;

    /// The cosine of a memory's current text; `None` without a vector for it.
    fn cosine(&self, memory: MemoryId) -> Result<Option<f64>>;

    /// The cosine of a memory's text when its vector was computed.
    fn past_cosine(&self, memory: MemoryId) -> Option<f64>;

    /// The centered cosine of two memories; `None` without vectors for both.
    fn similarity(&self, left: MemoryId, right: MemoryId) -> Result<Option<f64>>;

    /// The cosine of the query and an unrelated text.
    fn noise(&self) -> f64;

    /// The weight of words relative to the cosine.
    fn words_weight(&self) -> f64;
}

/// Combines the scores of words and meaning.
struct Fusion {
    weight: f64,
    coverage: f64,
    best_words: f64,
    usual: f64,
}

impl Fusion {
    /// Takes coverage and the best score from the memories with the best scores by words.
    fn new(weight: f64, usual: f64, scored: &[Scored]) -> Self {
        let mut by_words: Vec<&Score> = scored.iter().map(|memory| &memory.score).collect();
        by_words.retain(|score| score.words > 0.0);
        by_words.sort_by(|left, right| right.words.total_cmp(&left.words));
        let best_words = by_words.first().map_or(1.0, |best| best.words);
        let covering = by_words.iter().take(COVERING_ROWS).map(|score| score.covered);
        let coverage = covering.fold(0.0, f64::max);
        Self { weight, coverage, best_words, usual }
    }

    fn apply(&self, score: &mut Score, cosine: f64) {
        score.coverage = Some(self.coverage);
        score.total =
            cosine - self.usual + self.weight * self.coverage * score.words / self.best_words;
    }
}

impl Search {
    /// True if vectors rank this query. Quotes, `+`, `-`, `*`, a lone identifier, a word that is
    /// being typed and an order by time need exact words.
    pub fn has_meaning(&self) -> bool {
        if self.is_typing || self.order != super::Order::Relevance || self.query.trim().is_empty() {
            return false;
        }
        let text = without_operators(&self.query);
        let mut rest = &*text;
        while let Some((clause, after)) = Clause::next(rest) {
            if clause.is_operator() {
                return false;
            }
            rest = after;
        }
        !is_name(self.query.trim()) && Query::parse(&self.query).hint.is_none()
    }
}

/// True for a single identifier, path or address.
fn is_name(text: &str) -> bool {
    let is_camel = || {
        let mut pairs = text.chars().zip(text.chars().skip(1));
        pairs.any(|(left, right)| left.is_lowercase() && right.is_uppercase())
    };
    let inner = text.trim_end_matches(['.', '?', '!', ':', ',']);
    !text.contains(char::is_whitespace)
        && (inner.contains(['_', '/', '.', ':', '\\']) || is_camel())
}

/// The nearest memories that a search covers, nearest first.
pub(super) fn near(scope: &Scope<'_>, meaning: &dyn Meaning) -> Result<Vec<MemoryId>> {
    let wanted = NEAR_ROWS.max(scope.search.offset.saturating_add(scope.search.limit));
    nearest(scope, meaning, wanted)
}

pub(super) fn nearest(
    scope: &Scope<'_>,
    meaning: &dyn Meaning,
    wanted: usize,
) -> Result<Vec<MemoryId>> {
    let tried = TRIED_ROWS.max(wanted);
    let nearest = meaning.nearest(tried, &mut |memory| scope.filter(memory.kind).is_some());
    let is_all = nearest.len() < tried;
    let mut near = Vec::new();
    for (memory, _) in nearest {
        if near.len() == wanted {
            break;
        }
        if scope.passes(memory)? {
            near.push(memory);
        }
    }
    if near.len() == wanted || is_all {
        return Ok(near);
    }
    let passing: HashSet<MemoryId> = scope.all_passing()?.into_iter().collect();
    let nearest = meaning.nearest(wanted, &mut |memory| passing.contains(&memory));
    Ok(nearest.into_iter().map(|(memory, _)| memory).collect())
}

/// The median cosine in the searched projects.
pub(super) fn usual_cosine(scope: &Scope<'_>, meaning: &dyn Meaning) -> Result<f64> {
    let sql = format!(
        "select row.id from visible_observations row where 1{} order by row.at_us desc, \
         row.id desc limit ?1",
        scope.in_projects()
    );
    let mut statement = scope.store.connection.prepare_cached(&sql)?;
    let ids = statement.query_map([SAMPLED_ROWS], |row| row.get(0))?;
    let kind = Kind::Observation;
    let mut cosines = Vec::new();
    for id in ids {
        cosines.extend(meaning.past_cosine(MemoryId { kind, id: id? }));
    }
    cosines.resize(cosines.len().max(SAMPLE_MIN), meaning.noise());
    cosines.sort_by(f64::total_cmp);
    Ok(cosines[cosines.len() / 2])
}

/// Gives every memory one score of words and meaning. Those that have no word of the query and are
/// not near are left out.
pub(super) fn fuse(
    mut scored: Vec<Scored>,
    meaning: &dyn Meaning,
    usual: f64,
) -> Result<Vec<Scored>> {
    let fusion = Fusion::new(WORDS_TRUST * meaning.words_weight(), usual, &scored);
    for memory in &mut scored {
        memory.score.cosine = meaning.cosine(memory.id)?;
    }
    // A memory without a vector gets the typical cosine of others with its words.
    let with_words = scored.iter().filter(|memory| !memory.met.is_empty());
    let known: Vec<f64> = with_words.filter_map(|memory| memory.score.cosine).collect();
    let typical = match known.len() {
        0 => usual,
        count => known.iter().sum::<f64>() / count as f64,
    };
    let is_near = |cosine: f64| cosine - usual >= NEARER_THAN_USUAL;
    scored.retain(|memory| !memory.met.is_empty() || memory.score.cosine.is_some_and(is_near));
    for memory in &mut scored {
        let cosine = memory.score.cosine.unwrap_or(typical);
        fusion.apply(&mut memory.score, cosine);
    }
    Ok(scored)
}
