//! Finding memories again.
//!
//! A query is taken apart (`query.rs`), the index says which rows come into question (`candidates.rs`),
//! those are scored with all their words (`score.rs`), and close scores are put in order of time. There is
//! no limit of age or project but those asked for.

mod candidates;
mod filter;
mod fusion;
mod hit;
mod kind;
mod query;
mod run;
mod score;
mod spans;
mod statistics;
mod stem;
mod stop_words;
mod tokens;

pub(crate) use filter::Filter;
pub use fusion::Ranker;
pub use hit::Hit;
pub use kind::{InvalidMemoryId, Kind, MemoryId};
pub use query::{Query, Shape, Term};
pub use score::Score;

use serde::Serialize;

/// What to find, and among what.
#[derive(Debug, Clone)]
pub struct Search {
    /// The words; see [`Query`]. Empty to list whatever passes the filters.
    pub query: String,
    /// Kinds of memories.
    pub kinds: Vec<Kind>,
    /// The name or the key of a project; nothing for all of them.
    pub project: Option<String>,
    /// Types of observations, any of them.
    pub types: Vec<String>,
    /// Concepts of observations, all of them.
    pub concepts: Vec<String>,
    /// Files or folders, all of them: a path, or the end of one.
    pub files: Vec<String>,
    /// From this moment, in microseconds since 1970.
    pub since_us: Option<u64>,
    /// Before this moment.
    pub until_us: Option<u64>,
    /// The watched program's id of a session, or the beginning of it.
    pub session: Option<String>,
    /// How many.
    pub limit: usize,
    /// How many to leave out before them.
    pub offset: usize,
    /// In which order.
    pub order: Order,
    /// Whether to say where scores come from.
    pub is_explained: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            query: String::new(),
            kinds: Kind::ALL.to_vec(),
            project: None,
            types: Vec::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            since_us: None,
            until_us: None,
            session: None,
            limit: 20,
            offset: 0,
            order: Order::default(),
            is_explained: false,
        }
    }
}

/// The order of hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The best first.
    #[default]
    Relevance,
    /// Of the best hundred and fifty, the newest first.
    Newest,
    /// Of the best hundred and fifty, the oldest first.
    Oldest,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct SearchResults {
    /// The hits asked for.
    pub hits: Vec<Hit>,
    /// How many memories came into question.
    pub matched: usize,
    /// How the query was understood.
    pub query: Query,
    /// What to do if that is too little.
    pub hint: Option<String>,
    /// How the words were weighed, if it was asked for: one entry for each kind.
    pub explanation: Vec<Explanation>,
}

/// How the words of a query were weighed.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    /// Among which kind.
    pub kind: Kind,
    /// The words.
    pub terms: Vec<WeightedTerm>,
    /// What was asked of the index.
    pub expression: String,
    /// How many rows came into question.
    pub matched: usize,
}

/// A word, and what it is worth.
#[derive(Debug, Clone, Serialize)]
pub struct WeightedTerm {
    /// The word.
    #[serde(flatten)]
    pub term: Term,
    /// In how many rows it is; estimated if there are many.
    pub rows: f64,
    /// What it is worth: the rarer the more.
    pub worth: f64,
}

#[cfg(test)]
mod tests;
