//! Measures recall and latency of search.

use std::{
    collections::HashMap,
    path::Path,
    time::{Duration, Instant},
};

use claude_mem_events::{Envelope, Event, Id, MemoryAdded, Project, Recorded, Seq};
use claude_mem_projections::{
    Store,
    search::{Kind, Search},
};
use serde::Serialize;

use super::set::{Document, EvalQuery, QuerySet};
use crate::commands::index::embed;
use claude_mem_core::{app::App, failure::Failure, paths::Paths, progress::Progress};
use claude_mem_memory::{
    search::{ProjectScope, search},
    semantic::Depth,
};

#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) set: String,
    pub(super) documents: usize,
    pub(super) queries: usize,
    pub(super) recall_at_5: f64,
    pub(super) recall_at_10: f64,
    pub(super) mrr_at_10: f64,
    pub(super) ndcg_at_10: f64,
    pub(super) p50_ms: f64,
    pub(super) p95_ms: f64,
}

/// Number of hits that count.
const HITS: usize = 10;
/// Documents indexed per transaction.
const BATCH: usize = 1000;

/// Indexes the documents in a temporary database, like any memory, and runs the queries. Vectors
/// are kept in a folder, because making them takes minutes.
pub(super) fn measure(
    user: &App,
    set: &QuerySet,
    vectors: Option<&Path>,
) -> Result<Figures, Failure> {
    let store = load(&set.documents)?;
    let data = vectors.map_or_else(|| user.paths.data.join("none"), |dir| dir.join(&set.name));
    let paths = Paths { home: user.paths.home.clone(), data };
    let app = App::new(user.environment.clone(), paths);
    if vectors.is_some() {
        embed(&app, &store, Depth::Texts, Duration::MAX)?;
    }
    let mut sums = [0.0; 4];
    let mut times = Vec::new();
    let progress = Progress::items("searching", set.queries.len());
    for query in &set.queries {
        progress.advance(1);
        let request = Search {
            query: query.text.clone(),
            kinds: vec![Kind::Observation],
            project: Some(key(&query.corpus)),
            limit: HITS,
            ..Search::default()
        };
        let began = Instant::now();
        let found = search(&app, &store, ProjectScope::Requested, &request)?.results;
        times.push(began.elapsed().as_secs_f64() * 1e3);
        let answers = found.hits.iter().map(|hit| &set.documents[hit.name.id as usize - 1].id);
        for (sum, figure) in sums.iter_mut().zip(grade(query, answers)) {
            *sum += figure / set.queries.len() as f64;
        }
    }
    times.sort_by(f64::total_cmp);
    let [recall_at_5, recall_at_10, mrr_at_10, ndcg_at_10] = sums;
    let at = |share: f64| times[((times.len() - 1) as f64 * share).round() as usize];
    Ok(Figures {
        set: set.name.clone(),
        documents: set.documents.len(),
        queries: set.queries.len(),
        recall_at_5,
        recall_at_10,
        mrr_at_10,
        ndcg_at_10,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
    })
}

/// Observation IDs follow the order of the documents.
fn load(documents: &[Document]) -> Result<Store, Failure> {
    let mut store = Store::in_memory()?;
    let progress = Progress::items("indexing", documents.len());
    for (batch, documents) in documents.chunks(BATCH).enumerate() {
        let event = |(at, document): (usize, &Document)| {
            let number = (batch * BATCH + at) as u64 + 1;
            let (title, text) = (document.title.clone(), document.text.clone());
            let corpus = &document.corpus;
            let project = Project { key: key(corpus), label: corpus.clone(), ..Project::default() };
            Recorded {
                seq: Seq::new(1, number),
                id: Id::new((document.ts.max(0.0) * 1e6) as u64, number << 2),
                envelope: Envelope { project, ..Envelope::default() },
                event: Event::from(MemoryAdded { title, text, ..MemoryAdded::default() }),
            }
        };
        let events: Vec<Recorded> = documents.iter().enumerate().map(event).collect();
        store.fold_events(&events)?;
        progress.advance(events.len() as u64);
    }
    Ok(store)
}

/// A project key must not be empty.
fn key(corpus: &str) -> String {
    format!("corpus:{corpus}")
}

/// Recall at 5 and 10, reciprocal rank, and nDCG.
fn grade<'a>(query: &EvalQuery, answers: impl Iterator<Item = &'a String>) -> [f64; 4] {
    let mut ranks: HashMap<&str, usize> = HashMap::new();
    for (rank, answer) in answers.enumerate() {
        ranks.entry(answer).or_insert(rank);
    }
    let mut right: Vec<usize> =
        query.gold.iter().filter_map(|gold| ranks.get(gold.as_str()).copied()).collect();
    right.sort_unstable();
    let wanted = query.gold.len().max(1) as f64;
    let among = |limit| right.iter().filter(|rank| **rank < limit).count() as f64 / wanted;
    let gain = |rank: usize| 1.0 / (rank as f64 + 2.0).log2();
    let ideal: f64 = (0..query.gold.len().clamp(1, HITS)).map(gain).sum();
    [
        among(5),
        among(HITS),
        right.first().map_or(0.0, |rank| 1.0 / (rank + 1) as f64),
        right.iter().map(|rank| gain(*rank)).sum::<f64>() / ideal,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_match_their_definitions() {
        let gold = vec!["a".into(), "b".into()];
        let query = EvalQuery { corpus: String::new(), text: String::new(), gold };
        let answers = ["x", "a", "y", "z", "w", "b"].map(String::from);
        let [recall_at_5, recall_at_10, mrr, ndcg] = grade(&query, answers.iter());
        assert!((recall_at_5 - 0.5).abs() < 1e-9 && (recall_at_10 - 1.0).abs() < 1e-9);
        assert!((mrr - 0.5).abs() < 1e-9);
        let expected = (1.0 / 3f64.log2() + 1.0 / 7f64.log2()) / (1.0 + 1.0 / 3f64.log2());
        assert!((ndcg - expected).abs() < 1e-9, "{ndcg} {expected}");
        assert!(grade(&query, [].iter()).iter().all(|figure| *figure <= 0.0));
    }
}
