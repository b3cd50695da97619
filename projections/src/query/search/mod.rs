//! Search by words, and by meaning if there are vectors.
//!
//! `run.rs` calls one step after the other, from value to value: a query is parsed (`query/`), the
//! index selects candidates and ranks them (`candidates.rs`), those are scored (`score.rs`), fused
//! with memories that are near by meaning (`meaning.rs`), the memories of a turn become one hit
//! (`turns.rs`), and the page of hits is read. Age and project only count if a filter names them.
//! Words that no memory contains are compared with the vocabulary (`spelling.rs`).

mod candidates;
mod failure_terms;
mod filter;
mod hit;
mod kind;
mod meaning;
mod prompt_terms;
mod query;
mod recall;
mod run;
mod scope;
mod score;
mod sentences;
mod spelling;
mod statement;
mod stop_words;
mod text_index;
mod tokens;
mod turns;

pub(crate) use filter::Filter;
pub use hit::{Hit, has_several_clients};
pub use kind::{InvalidMemoryId, Kind, MemoryId};
pub use meaning::Meaning;
pub use query::{Query, Shape, Term};
pub use recall::{FailureRecall, Recall};
pub use score::Score;
pub use sentences::{PromptWords, sentences};
pub use statement::Statement;

use serde::Serialize;

/// A search request.
#[derive(Debug, Clone)]
pub struct Search {
    /// The query; see [`Query`]. Empty to list all rows that match the filters.
    pub query: String,
    /// Whether the query is being typed: its last word may be the start of one.
    pub is_typing: bool,
    /// Kinds of memories.
    pub kinds: Vec<Kind>,
    /// The name or the key of a project; `None` for all.
    pub project: Option<String>,
    /// Types of observations: any of them.
    pub types: Vec<String>,
    /// Concepts of observations: all of them.
    pub concepts: Vec<String>,
    /// Files or folders, any of them: a path, or the end of one.
    pub files: Vec<String>,
    /// From this time on, in microseconds since 1970.
    pub since_us: Option<u64>,
    /// Before this time.
    pub until_us: Option<u64>,
    /// The client's id of a session, or the start of it.
    pub session: Option<String>,
    /// The number of the machine that recorded it; 0 is this one.
    pub host: Option<u8>,
    /// The client of the session, such as `codex`.
    pub client: Option<String>,
    /// Maximum number of results.
    pub limit: usize,
    /// Skip this many results.
    pub offset: usize,
    /// The order of results.
    pub order: Order,
    /// Whether to explain the scores.
    pub is_explained: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self {
            query: String::new(),
            is_typing: false,
            kinds: Kind::ALL.to_vec(),
            project: None,
            types: Vec::new(),
            concepts: Vec::new(),
            files: Vec::new(),
            since_us: None,
            until_us: None,
            session: None,
            host: None,
            client: None,
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
    /// Best first.
    #[default]
    Relevance,
    /// The best 150, newest first.
    Newest,
    /// The best 150, oldest first.
    Oldest,
}

#[derive(Debug, Clone, Default)]
pub struct SearchResults {
    /// The requested hits. Of the memories of one turn, there is one; the others are in `also`.
    pub hits: Vec<Hit>,
    /// Whether more hits follow.
    pub has_more: bool,
    /// Number of memories that contain a word of the query.
    pub matched: usize,
    /// Number of hits' memories that contain no word of the query and are near by meaning. They are
    /// not counted in `matched`: every memory is near to some degree.
    pub near: usize,
    /// True if vectors were used. Otherwise the ranking is by words alone.
    pub is_by_meaning: bool,
    /// Whether `matched` is a lower bound, because counting them all would take too long.
    pub is_capped: bool,
    /// The parsed query.
    pub query: Query,
    /// What to do if there are too few results.
    pub hint: Option<String>,
    /// The query with words that no memory contains replaced by similar ones.
    pub suggestion: Option<String>,
    /// How the words were weighted, if requested: one entry per kind.
    pub explanation: Vec<Explanation>,
}

/// How the words of a query were weighted.
#[derive(Debug, Clone, Serialize)]
pub struct Explanation {
    pub kind: Kind,
    pub terms: Vec<WeightedTerm>,
    /// The FTS5 expression.
    pub expression: String,
    /// Number of rows considered.
    pub matched: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct WeightedTerm {
    /// The word.
    #[serde(flatten)]
    pub term: Term,
    /// The number of rows with it; estimated if there are many.
    pub rows: f64,
    /// Its weight: higher for rare words.
    pub worth: f64,
}

#[cfg(test)]
mod language_tests;
#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod tests;
